"""The log of a Delta table: which files a version has, from its entries and checkpoints alone.

delta-rs opens a table in 3 to 10 ms of processor time, most of it in threads of its own; one ingest asks for the files
of fifty versions. Replaying as many entries of a local log takes a sixth of that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl

_CHECKPOINT = ".checkpoint.parquet"
_BEFORE = -1
"""Stands for the commit of files that a checkpoint has."""


def file_names(log: Path, version: int) -> list[str]:
    """Names of the data files of one version, those of newer commits first, as delta-rs lists them.

    Raises:
        OSError: an entry since the newest checkpoint in one file is missing or cannot be read.
        ValueError, KeyError: an entry is damaged.
        pl.exceptions.PolarsError: the checkpoint is damaged.
    """
    checkpoints = (log_version(path) for path in log.glob(f"*{_CHECKPOINT}"))
    start = max((found for found in checkpoints if found <= version), default=None)
    commits = {} if start is None else dict.fromkeys(_of_checkpoint(log / f"{start:020}{_CHECKPOINT}"), _BEFORE)
    for number in range(0 if start is None else start + 1, version + 1):
        for action in _actions(log / f"{number:020}.json"):
            if "remove" in action:
                commits.pop(unquote(action["remove"]["path"]), None)
            elif "add" in action:
                commits[unquote(action["add"]["path"])] = number
    return sorted(commits, key=lambda name: commits[name], reverse=True)  # stable: within a commit in its order


def is_log_file(path: Path) -> bool:
    """Whether a file of the log is an entry, or a checkpoint of all up to one."""
    return path.name[:20].isdigit()


def log_version(path: Path) -> int:
    """The version that such a file belongs to."""
    return int(path.name[:20])


def added_files(entry: Path) -> list[str]:
    """Names of the data files that a log entry (JSON) adds."""
    return [unquote(action["add"]["path"]) for action in _actions(entry) if "add" in action]


def _actions(entry: Path) -> Iterator[dict[str, Any]]:
    # Not splitlines: statistics quote texts of logs, which may have separators of lines that JSON does not escape.
    return (json.loads(line) for line in entry.read_text(encoding="utf-8").split("\n") if line)


def _of_checkpoint(path: Path) -> list[str]:
    added = pl.read_parquet(path, columns=["add"])["add"].struct.field("path").drop_nulls()
    return [unquote(name) for name in added]
