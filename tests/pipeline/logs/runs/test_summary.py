"""Lines and planned number of the steps of each run."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.runs.summary import step_lines


def steps(*rows: tuple[str, int, int, int | None]) -> pl.DataFrame:
    names = ["run_id", "step", "line_no", "steps_planned"]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(source_path=pl.format("{}.log", "run_id"))


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
        },
        {
            "run_id": "b",
            "source_path": "b.log",
            "steps_planned": None,
            "first_line": 7,
            "last_line": 7,
            "line_before": None,
        },
    ]
