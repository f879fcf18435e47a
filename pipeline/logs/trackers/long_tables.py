"""Tables with a row for each value that was logged: of many metrics, with their names, or of one that names the file.

Columns are known by their names in any of the usual spellings: Comet's export (`experimentKey, metricName, metricValue,
step, timestamp`), MLflow's table `metrics` (`run_uuid, key, value, step, timestamp`), what Neptune's `fetch_values()`
gives (`step, value, timestamp`), and a chart of TensorBoard's under a name of one's own (`Wall time, Step, Value`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import NamedTuple

import polars as pl

from sweepscope.pipeline.logs.synonyms import words
from sweepscope.pipeline.logs.trackers.tracked_run import LAST_SECOND, Row, TrackedRun, is_of_steps, is_wanted

_NAMES = ("metric name", "metric", "name", "key", "tag")
_VALUES = ("metric value", "value")
_STEPS = ("step", "global step", "iteration", "iter")
_TIMES = ("timestamp", "wall time", "time")
_RUNS = ("experiment key", "run uuid", "run id", "run name", "run", "sys id")


class _Columns(NamedTuple):
    """Names of a table's columns; None where it has none of a kind."""

    step: str
    value: str
    name: str | None
    run: str | None
    time: str | None
    others: int


def is_long(header: Sequence[str], name: str) -> bool:
    """Whether a table has a row for each value.

    >>> is_long(["metricName", "metricValue", "step"], "export"), is_long(["Wall time", "Step", "Value"], "train_loss")
    (True, True)
    >>> is_long(["Date", "Step", "Value"], "prices"), is_long(["step", "loss"], "train")
    (False, False)
    """
    columns = _columns(header)
    if columns is None:
        return False
    return columns.name is not None or (not columns.others and is_of_steps(name))


def read(table: pl.DataFrame, name: str) -> Iterator[TrackedRun]:
    """The runs of a table of texts with values of a training's steps, in the order in which they begin.

    Args:
        table: of which `is_long` holds.
        name: of the file, without suffix.
    """
    columns = _columns(table.columns)
    if columns is None:
        return
    values = table.select(
        run=pl.col(columns.run) if columns.run else pl.lit(name),
        name=pl.col(columns.name) if columns.name else pl.lit(name),
        step=pl.col(columns.step).cast(pl.Float64, strict=False),
        value=pl.col(columns.value).cast(pl.Float64, strict=False).fill_null(math.nan),
        time=_seconds(columns.time),
    ).drop_nulls(["run", "name", "step"])
    number = 0
    for (run,), own in values.partition_by("run", as_dict=True, maintain_order=True).items():
        if rows := list(_rows(own)):
            number += 1
            yield TrackedRun(rows, name=str(run), number=number)


def _rows(values: pl.DataFrame) -> Iterator[Row]:
    """A row for each step; of two values of one name and step the later one counts."""
    of_steps: dict[int, tuple[float | None, dict[str, float]]] = {}
    for name, step, value, time in values.select("name", "step", "value", "time").iter_rows():
        if is_wanted(name) and math.isfinite(step):
            of_steps.setdefault(int(step), (time, {}))[1][name] = value
    for number, step in enumerate(sorted(of_steps), 1):
        time, scalars = of_steps[step]
        yield Row(number, step, time, scalars)


def _columns(header: Sequence[str]) -> _Columns | None:
    """The columns of a table with a row for each value; None for another table."""
    by_words = {words(name): name for name in header}
    step, value, name, run, time = (
        next((by_words[one] for one in names if one in by_words), None)
        for names in (_STEPS, _VALUES, _NAMES, _RUNS, _TIMES)
    )
    if step is None or value is None:
        return None
    return _Columns(step, value, name, run, time, len({*header} - {step, value, name, run, time}))


def _seconds(column: str | None) -> pl.Expr:
    """Seconds since 1970 of a column of seconds, milliseconds or dates; a date without a zone is UTC."""
    if column is None:
        return pl.lit(None, pl.Float64)
    number = pl.col(column).cast(pl.Float64, strict=False)
    date = pl.col(column).str.to_datetime(strict=False, time_zone=UTC.tzname(None)).dt.timestamp("ms") / 1e3
    return pl.coalesce(pl.when(number > LAST_SECOND).then(number / 1e3).otherwise(number), date)
