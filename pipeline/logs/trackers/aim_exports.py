"""Tables of metrics that Aim's own API makes: a row for each value that was tracked.

Form: `metric.dataframe(include_run=True, include_name=True, include_context=True)` of one metric, or those of several
concatenated as `repo.query_metrics(...).dataframe()` does, written by pandas as CSV (aim/sdk/sequences/metric.py,
aim/sdk/sequence_collection.py): `step`, `value`, `time`, `run.hash`, `run.PARAMETER`, `metric.name` and
`metric.context.NAME`. Aim's repository itself is a RocksDB, which only Aim's own library opens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import polars as pl

from sweepscope.pipeline.logs.trackers.mlflow_store import config_of
from sweepscope.pipeline.logs.trackers.tracked_run import Row, TrackedRun, is_wanted, settings_of

_RUN, _NAME, _SUBSET = "run.hash", "metric.name", "metric.context.subset"
_NEEDED = frozenset({"step", "value", _RUN, _NAME})
_PARAMETERS = ("run.hparams.", "run.")
"""Before a parameter's name; `run["hparams"]` is where Aim's callbacks and guides keep a configuration."""


def is_export(header: Sequence[str]) -> bool:
    """Whether a table has the columns of such an export."""
    return {*header} >= _NEEDED


def read(table: pl.DataFrame) -> Iterator[TrackedRun]:
    """The runs of a table of texts, numbered in the order in which they begin."""
    for number, ((name,), rows) in enumerate(table.partition_by(_RUN, as_dict=True, maintain_order=True).items(), 1):
        config = config_of(_parameters(rows))
        yield TrackedRun(list(_rows(rows)), config, settings_of(config), name=str(name), number=number)


def _parameters(rows: pl.DataFrame) -> Iterator[tuple[str, str]]:
    for column in rows.columns:
        prefix = next((one for one in _PARAMETERS if column.startswith(one)), None)
        value = rows[column].drop_nulls().first() if prefix and column != _RUN else None
        if prefix and isinstance(value, str):
            yield column.removeprefix(prefix), value


def _rows(rows: pl.DataFrame) -> Iterator[Row]:
    """A row for each step, its scalars under `SUBSET/NAME` where the context names a subset, as `train/loss`."""
    named = pl.col(_NAME)
    if _SUBSET in rows.columns:
        named = pl.concat_str(pl.col(_SUBSET), named, separator="/", ignore_nulls=True)
    time = pl.col("time").str.to_datetime(strict=False) if "time" in rows.columns else pl.lit(None, pl.Datetime)
    values = rows.select(
        name=named,
        step=pl.col("step").cast(pl.Float64, strict=False),
        # Only numbers are tracked: pandas leaves the cell of a NaN empty.
        value=pl.col("value").cast(pl.Float64, strict=False).fill_null(math.nan),
        time=time,
    ).drop_nulls(["name", "step"])
    of_steps: dict[int, tuple[float | None, dict[str, float]]] = {}
    for name, step, value, moment in values.iter_rows():
        if is_wanted(name):
            of_steps.setdefault(int(step), (_seconds(moment), {}))[1].setdefault(name, value)
    for number, step in enumerate(sorted(of_steps), 1):
        seconds, scalars = of_steps[step]
        yield Row(number, step, seconds, scalars)


def _seconds(moment: datetime | None) -> float | None:
    """Aim's frames have the clock of the machine that made them, without a zone: it is kept as logs print it."""
    return None if moment is None else moment.replace(tzinfo=UTC).timestamp()
