"""Lines and planned number of the steps of each run."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from sweepscope.pipeline.logs.runs.summary import startup, step_lines

BEGIN = datetime(2026, 11, 20, 22, 41)


def steps(*rows: tuple[str, int, int, int | None]) -> pl.DataFrame:
    names = ["run_id", "step", "line_no", "steps_planned"]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(
        source_path=pl.format("{}.log", "run_id"), ts=pl.lit(BEGIN) + pl.duration(seconds=pl.col("line_no"))
    )


def test_first_last_and_previous_line_of_each_run() -> None:
    found = step_lines(steps(("a", 1, 10, None), ("a", 2, 20, 5), ("a", 3, 40, None), ("b", 1, 7, None)))
    assert found.rows(named=True) == [
        {
            "run_id": "a",
            "source_path": "a.log",
            "steps_planned": 5,
            "first_line": 10,
            "last_line": 40,
            "line_before": 20,
            "first_ts": BEGIN + timedelta(seconds=10),
            "last_step_ts": BEGIN + timedelta(seconds=40),
        },
        {
            "run_id": "b",
            "source_path": "b.log",
            "steps_planned": None,
            "first_line": 7,
            "last_line": 7,
            "line_before": None,
            "first_ts": BEGIN + timedelta(seconds=7),
            "last_step_ts": BEGIN + timedelta(seconds=7),
        },
    ]


def test_startup_lasts_until_the_very_first_step() -> None:
    lines = step_lines(steps(*((name, first, 90, None) for name, first in (("a", 1), ("b", 0), ("c", 7), ("d", 1)))))
    runs = pl.DataFrame(
        {
            "run_id": ["a", "b", "c", "d", "e"],
            "dialect": ["megatron", None, "megatron", "mlperf", "megatron"],
            "first_step": [1, 0, 7, 1, None],
            "started_at": [BEGIN] * 5,
        }
    )
    assert startup(lines, runs).sort("run_id").rows() == [("a", 90.0), ("b", 90.0)]
