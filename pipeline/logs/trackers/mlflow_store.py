"""MLflow's tracking store in SQLite (`mlflow.db`): every run that was logged into it.

Format: mlflow/store/tracking/dbmodels/models.py (SqlRun, SqlMetric, SqlParam; `metrics.is_nan` since 1.2),
mlflow/store/tracking/sqlalchemy_store.py log_metric (infinite values are kept as the largest numbers, NaN as 0 with
`is_nan`), mlflow/entities/run_status.py. Times are milliseconds since 1970. Deleted runs are left out.
"""

from __future__ import annotations

import ast
import json
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

from sweepscope.pipeline.logs.trackers.sqlite_image import missing
from sweepscope.pipeline.logs.trackers.tracked_run import Row, TrackedRun, settings_of

TABLES = {
    "runs": ("run_uuid", "name", "status", "lifecycle_stage"),
    "metrics": ("run_uuid", "key", "value", "timestamp", "step", "is_nan"),
    "params": ("run_uuid", "key", "value"),
}
_MARK = {"runs", "metrics", "params", "alembic_version"}
_LARGEST = 1.7976931348623157e308
_ENDED = {"FINISHED": "completed", "FAILED": "fail", "KILLED": "cancelled"}
_LONGEST_VALUE = 8_000

_METRICS = (
    "SELECT key, step, timestamp, CASE WHEN is_nan THEN NULL ELSE value END FROM metrics "
    "WHERE run_uuid = ? AND key IN (SELECT value FROM json_each(?)) ORDER BY step, timestamp, rowid"
)


def is_store(tables: dict[str, set[str]]) -> bool:
    """Whether a database with these tables is MLflow's."""
    return tables.keys() >= _MARK


def read(
    connection: sqlite3.Connection, tables: dict[str, set[str]], is_wanted: Callable[[str], bool]
) -> Iterator[TrackedRun]:
    """Its runs in the order in which they were begun. Raises ValueError for a store of an unknown version.

    Args:
        connection: to the database.
        tables: names of the columns of its tables.
        is_wanted: whether a metric of that name is read.
    """
    if lacking := missing(tables, TABLES):
        raise ValueError(f"a store of MLflow of an unknown version: it has no {', '.join(lacking)}")
    runs = connection.execute("SELECT run_uuid, name, status, lifecycle_stage FROM runs ORDER BY rowid").fetchall()
    for number, (uuid, name, status, stage) in enumerate(runs, 1):
        if stage == "deleted":
            continue
        keys = connection.execute("SELECT DISTINCT key FROM metrics WHERE run_uuid = ?", [uuid])
        wanted = json.dumps([key for (key,) in keys if is_wanted(key)])
        metrics = connection.execute(_METRICS, [uuid, wanted])
        params = connection.execute("SELECT key, value FROM params WHERE run_uuid = ?", [uuid])
        config = config_of(params)
        yield TrackedRun(
            list(rows_of(metrics)),
            config,
            settings_of(config),
            name=str(name or uuid),
            number=number,
            ended=ended(status),
        )


def ended(status: object) -> str:
    """How a run of a status ended, as `status_file` has it; "" while it goes on."""
    return _ENDED.get(str(status), "")


def rows_of(metrics: Iterable[tuple[str, int, int, float | None]]) -> Iterator[Row]:
    """A row for the metrics of each step, two where one of them was logged twice.

    Args:
        metrics: name, step, milliseconds and value (None for NaN), ordered by step.
    """
    number = 0
    for step, logged in groupby(metrics, key=itemgetter(1)):
        scalars: dict[str, float] = {}
        seconds = 0.0
        for key, _, milliseconds, value in logged:
            if key in scalars:
                number += 1
                yield Row(number, step, seconds, scalars)
                scalars = {}
            if not scalars:
                seconds = milliseconds / 1e3
            scalars[key] = _number(value)
        number += 1
        yield Row(number, step, seconds, scalars)


def config_of(params: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The parameters by name, numbers and the like as what they are: MLflow keeps their texts."""
    return {str(key): _value(str(value)) for key, value in params}


def _value(text: str) -> Any:
    """
    >>> _value("2"), _value("1e-4"), _value("True"), _value("gpt2"), _value("{'tp': 2}")
    (2, 0.0001, True, 'gpt2', {'tp': 2})
    """
    if len(text) > _LONGEST_VALUE or text[:1] not in "0123456789+-.[{TFN":
        return text
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _number(value: float | None) -> float:
    if value is None:
        return math.nan
    return math.copysign(math.inf, value) if abs(value) >= _LARGEST else float(value)
