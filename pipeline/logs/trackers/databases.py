"""Databases in which trackers keep many runs. A tracker more is a module beside, and a line in `_STORES`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from sweepscope.pipeline.logs.trackers import mlflow_store, trackio_store
from sweepscope.pipeline.logs.trackers.sqlite_image import columns_of, opened
from sweepscope.pipeline.logs.trackers.tracked_run import TrackedRun, is_wanted

_STORES = (mlflow_store, trackio_store)


def read_database(
    data: bytes, wal: bytes = b"", *, wanted: Callable[[str], bool] = is_wanted
) -> list[TrackedRun] | None:
    """The runs in a database of SQLite and its write-ahead log; None for one of another program.

    Raises ValueError for what is no database, is damaged, or of an unknown version of its tracker.
    """
    with opened(data, wal) as connection:
        return read_runs(connection, columns_of(connection), wanted)


def read_runs(
    connection: sqlite3.Connection, tables: dict[str, set[str]], wanted: Callable[[str], bool] = is_wanted
) -> list[TrackedRun] | None:
    """`read_database` of an opened one. Raises ValueError for an unknown version of its tracker."""
    for store in _STORES:
        if store.is_store(tables):
            return list(store.read(connection, tables, wanted))
    return None
