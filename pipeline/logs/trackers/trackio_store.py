"""trackio's database of a project (`PROJECT.db`): every run of it.

Format: trackio/sqlite_storage.py (init_db: `metrics` and `configs`, JSON in their last columns; runs had no `run_id`
before 0.20), trackio/utils.py serialize_values (NaN and infinities as texts). Nothing says how a run ended.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

from sweepscope.pipeline.logs.trackers.sqlite_image import missing
from sweepscope.pipeline.logs.trackers.tracked_run import Row, TrackedRun, numbers, settings_of

TABLES = {"metrics": ("run_name", "timestamp", "step", "metrics"), "configs": ("run_name", "config")}
_TEXTS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def is_store(tables: dict[str, set[str]]) -> bool:
    """Whether a database with these tables is trackio's."""
    return {"metrics", "configs"} <= tables.keys() and "run_name" in tables["metrics"]


def read(
    connection: sqlite3.Connection, tables: dict[str, set[str]], is_wanted: Callable[[str], bool]
) -> Iterator[TrackedRun]:
    """Its runs in the order in which they first logged. Raises ValueError for a database of an unknown version.

    Arguments as of `mlflow_store.read`.
    """
    if lacking := missing(tables, TABLES):
        raise ValueError(f"a database of trackio of an unknown version: it has no {', '.join(lacking)}")
    run = "run_id" if "run_id" in tables["metrics"] and "run_id" in tables["configs"] else "run_name"
    runs = connection.execute(f"SELECT {run}, MIN(run_name) FROM metrics GROUP BY 1 ORDER BY MIN(rowid)")
    for number, (key, name) in enumerate(runs.fetchall(), 1):
        logged = connection.execute(
            f"SELECT step, timestamp, metrics FROM metrics WHERE {run} IS ? ORDER BY step, rowid",
            [key],
        )
        rows = [_row(at, one, is_wanted) for at, one in enumerate(logged, 1)]
        kept = connection.execute(f"SELECT config FROM configs WHERE {run} IS ?", [key]).fetchone()
        config = {name: value for name, value in _document(kept[0] if kept else b"{}").items() if name[:1] != "_"}
        yield TrackedRun(rows, config, settings_of(config), name=str(name), number=number)


def _row(number: int, logged: tuple[object, object, object], is_wanted: Callable[[str], bool]) -> Row:
    step, moment, metrics = logged
    values = {
        name: _TEXTS.get(value, value) if isinstance(value, str) else value
        for name, value in _document(metrics).items()
    }
    scalars = {name: float(value) for name, value in numbers("", values) if is_wanted(name)}
    return Row(number, step if isinstance(step, int) else None, _seconds(moment), scalars)


def _document(text: object) -> dict[str, Any]:
    try:
        found = json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _seconds(moment: object) -> float | None:
    try:
        at = datetime.fromisoformat(str(moment))
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
