"""Rows of the table `steps` and of findings, for tests of the pure functions that look for ailments."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import polars as pl

from sweepscope.pipeline.logs.diagnostics.finding import FINDING
from sweepscope.schemas.registry import TABLES

BEGIN = datetime(2025, 2, 3, 4, 0)


def steps_table(run: str = "a", **columns: Sequence[float | None]) -> pl.DataFrame:
    """One run's logged steps from 1; step n stands in line 10 n. `at_s`: seconds after BEGIN, for `ts`."""
    n = len(next(iter(columns.values())))
    at_s = columns.pop("at_s", None)
    data: dict[str, Sequence[object]] = {
        "run_id": [run] * n,
        "source_path": [f"{run}.log"] * n,
        "step": list(range(1, n + 1)),
        "line_no": [10 * step for step in range(1, n + 1)],
        **columns,
    }
    if at_s is not None:
        data["ts"] = [None if at is None else BEGIN + timedelta(seconds=at) for at in at_s]
    schema = TABLES["steps"].polars_schema
    return TABLES["steps"].conform(pl.DataFrame(data, schema={name: schema[name] for name in data}))


def said(kind: str, *texts: str, run: str = "a", ts: datetime | None = None) -> pl.DataFrame:
    """Lines of a log that hold evidence of one kind: line 1, 2, ..."""
    rows = [
        {"run_id": run, "source_path": f"{run}.log", "line_no": place, "ts": ts, "kind": kind, "text": text}
        for place, text in enumerate(texts, 1)
    ]
    return pl.DataFrame(rows, schema=FINDING)
