"""Which files may hold runs of a tracker, by their paths: databases, folders of a run, histories as Parquet."""

from __future__ import annotations

import re

from sweepscope.pipeline.logs.trackers.folders import run_folder

DATABASES = (".db", ".sqlite", ".sqlite3")
LOG = "-wal"
"""Behind a database's name: its write-ahead log, where the newest rows are while a program writes."""


_TABLE = re.compile(r"(?i)(?:history|wandb)[^/]*(?:/[^/]*)?\.parquet$")
"""Parquet is what data sets are made of: only files, or those in folders, that are named after a history."""


def is_table(path: str) -> bool:
    """Whether a file may be a history as Parquet.

    >>> is_table("/s/run-1-history:v0/0000.parquet"), is_table("/data/train/0000.parquet")
    (True, False)
    """
    return _TABLE.search(path) is not None


def is_log(path: str) -> bool:
    """Whether a file is the write-ahead log of a database."""
    return path.lower().endswith(tuple(f"{suffix}{LOG}" for suffix in DATABASES))


def unit_of(path: str) -> str:
    """What a file is read with, as a path: its database, or the folder of its run; "" for a file of no tracker.

    >>> unit_of("/s/mlflow.db"), unit_of("/s/trackio/sweep.db-wal"), unit_of("/s/train.log")
    ('/s/mlflow.db', '/s/trackio/sweep.db', '')
    """
    if is_log(path):
        return path[: -len(LOG)]
    if path.lower().endswith(DATABASES) or is_table(path):
        return path
    return run_folder(path)
