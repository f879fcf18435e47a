"""Tables that W&B exports: the history of a run, a chart of several runs, and the table of runs.

Forms: `run.history()` and `scan_history()` written by pandas as CSV or Parquet, as are the files of a history artifact
(`_step`, `_timestamp`, `_runtime`; wandb/apis/public/runs.py); the CSV of a panel (`Step`, `RUN - METRIC`, and the same
with `__MIN` and `__MAX`); the CSV of the table of runs (`Name`, `State`, ..., configuration and summary side by side);
and the frame of names, summaries and configurations that W&B's guide to exports makes (`summary`, `config`, `name`).
A table of runs has the last values of each only: they are its one step.
"""

from __future__ import annotations

import ast
import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from sweepscope.pipeline.logs.trackers.mlflow_store import config_of
from sweepscope.pipeline.logs.trackers.tracked_run import Row, TrackedRun, is_wanted, numbers, settings_of

_CHART = re.compile(r"(?P<run>.+) - (?P<metric>.+?)(?P<edge>__MIN|__MAX)?")
_STEP, _TIME = "_step", "_timestamp"
_RUN_NAMES = ("run_id", "run_name", "run", "_run_id", "name")
_OF_RUNS = {"ID", "Runtime", "Created", "User", "Tags", "Notes", "Sweep"}
_ENDED = {"finished": "completed", "failed": "fail", "crashed": "fail", "killed": "cancelled"}
"""States of W&B; a run that `crashed` stopped sending, for whatever reason."""


def read_parquet(data: bytes, name: str, *, most_cells: int) -> list[TrackedRun]:
    """The run of a history as Parquet, called `name` where the table names none; `most_cells` are read of a table.

    Raises ValueError for another table, or a damaged one.
    """
    try:
        schema = pl.read_parquet_schema(io.BytesIO(data))
        columns = [one for one in schema if one in (_STEP, _TIME, *_RUN_NAMES) or is_wanted(one)]
        if _STEP not in schema:
            raise ValueError("not a history that W&B exports: it has no column _step")
        rows = pl.scan_parquet(io.BytesIO(data)).select(pl.len()).collect().item()
        if rows * len(columns) > most_cells:
            raise ValueError(f"its {rows:,} rows are more than are read of such a table. Split it.")
        table = pl.read_parquet(io.BytesIO(data), columns=columns)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"damaged Parquet: {str(error).splitlines()[0]}") from error
    return list(_history(table, name))


def form_of(header: Sequence[str]) -> Callable[[pl.DataFrame, str], Iterator[TrackedRun]] | None:
    """What makes runs of a table with such a header and the name of a run that it does not name; None for others."""
    names = {*header}
    if _STEP in names and names & {_TIME, "_runtime"}:
        return _history
    if {"summary", "config", "name"} <= names:
        return _summaries
    if is_of_runs(header):
        return _runs
    is_chart = len(header) > 1 and "step" in header[0].lower() and all(map(_CHART.fullmatch, header[1:]))
    return _chart if is_chart else None


def is_of_runs(header: Sequence[str]) -> bool:
    """Whether a header is that of W&B's table of runs: names, states, configurations and last values."""
    return {"Name", "State"} <= {*header} and bool({*header} & _OF_RUNS)


def _history(table: pl.DataFrame, name: str) -> Iterator[TrackedRun]:
    key = next((one for one in _RUN_NAMES if one in table.columns and table[one].dtype == pl.String), None)
    parts = table.partition_by(key, as_dict=True, maintain_order=True) if key else {(name,): table}
    for number, ((own,), rows) in enumerate(parts.items(), 1):
        yield TrackedRun(list(_rows(rows, _STEP)), name=str(own or name), number=number)


def _rows(table: pl.DataFrame, counter: str, time: str = _TIME) -> Iterator[Row]:
    """A row for each of the table's that has a step and a scalar."""
    wanted = [one for one in table.columns if one not in (counter, time) and is_wanted(one)]
    columns = [one for one in (counter, time, *wanted) if one in table.columns]
    values = table.select(pl.col(columns).cast(pl.Float64, strict=False))
    for number, row in enumerate(values.iter_rows(named=True), 1):
        step, seconds = row.pop(counter), row.pop(time, None)
        scalars = {one: value for one, value in row.items() if value is not None}
        if scalars and step is not None and math.isfinite(step):
            yield Row(number, int(step), seconds, scalars)


def _chart(table: pl.DataFrame, _name: str) -> Iterator[TrackedRun]:
    counter, *others = table.columns
    of_runs: dict[str, dict[str, str]] = {}
    for column in others:
        found = _CHART.fullmatch(column)
        if found and not found["edge"]:
            of_runs.setdefault(found["run"], {})[column] = found["metric"]
    for number, (run, columns) in enumerate(of_runs.items(), 1):
        renamed = {column: metric for column, metric in columns.items() if metric != counter}
        yield TrackedRun(list(_rows(table.select(counter, *renamed).rename(renamed), counter)), name=run, number=number)


def _runs(table: pl.DataFrame, _name: str) -> Iterator[TrackedRun]:
    for number, row in enumerate(table.iter_rows(named=True), 1):
        values = config_of((one, value) for one, value in row.items() if value is not None and one not in _OF_RUNS)
        name, state = str(values.pop("Name", number)), str(values.pop("State", "")).lower()
        # Configuration and summary stand side by side: what a step logs is of the latter.
        config = {one: value for one, value in values.items() if not is_wanted(one)}
        yield _summarised(name, number, values, config, _ENDED.get(state, ""))


def _summaries(table: pl.DataFrame, _name: str) -> Iterator[TrackedRun]:
    for number, row in enumerate(table.select("name", "summary", "config").iter_rows(), 1):
        name, summary, config = row
        yield _summarised(str(name), number, _literal(summary), _literal(config), "")


def _summarised(
    name: str, number: int, summary: Mapping[str, Any], config: Mapping[str, Any], ended: str
) -> TrackedRun:
    """A run of which the last values are known."""
    scalars = dict(numbers("", summary))
    step, seconds = scalars.pop(_STEP, 0), scalars.pop(_TIME, None)
    settings = {one: value for one, value in config.items() if not one.startswith("_")}
    known = {one: float(value) for one, value in scalars.items() if is_wanted(one)}
    return TrackedRun(
        [Row(1, int(step), seconds, known)], settings, settings_of(settings), ended=ended, name=name, number=number
    )


def _literal(text: str | None) -> dict[str, Any]:
    # Python writes NaN as a name, which is no literal.
    plain = re.sub(r"(?<=: )(nan|inf|-inf)(?=[,}])", "None", text or "")
    try:
        found = ast.literal_eval(plain)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
