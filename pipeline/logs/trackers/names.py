"""Which files may hold runs of a tracker, by their paths: databases of SQLite, and the folders of MLflow."""

from __future__ import annotations

from sweepscope.pipeline.logs.trackers.mlflow_folder import run_folder

DATABASES = (".db", ".sqlite", ".sqlite3")
LOG = "-wal"
"""Behind a database's name: its write-ahead log, where the newest rows are while a program writes."""


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
    return path if path.lower().endswith(DATABASES) else run_folder(path)
