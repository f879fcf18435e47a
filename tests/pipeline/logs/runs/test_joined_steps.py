"""Steps of two readings of a run in one: what counts something else is none of the other's steps."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.facts import STEP_FACTS
from sweepscope.pipeline.logs.runs.joined_steps import join_steps
from sweepscope.pipeline.logs.runs.readings import DECISIONS

CSV = [(step, 8 - step / 10) for step in (1, 3, 5, 7, 9)]


def steps_of(reading: int, rows: list[tuple[int, float]], basis: str | None) -> pl.DataFrame:
    base = pl.DataFrame(schema=STEP_FACTS)
    new = pl.DataFrame(rows, schema={"step": pl.Int64, "loss": pl.Float64}, orient="row").with_columns(
        source=pl.lit(reading, pl.Int64), line_no="step", step_basis=pl.lit(basis, STEP_FACTS["step_basis"])
    )
    return pl.concat([base, new], how="diagonal").with_columns(reading=pl.lit(reading, pl.Int64))


def joined(bar: list[tuple[int, float]], basis: str | None, *, bar_first: bool) -> list[tuple[int, str | None]]:
    target, other = (0, 1) if bar_first else (1, 0)
    columns = {"reading": other, "target": target, "by_order": False}
    decisions = pl.DataFrame({name: [columns.get(name)] for name in DECISIONS}, schema=DECISIONS)
    whole = join_steps(pl.concat([steps_of(0, bar, basis), steps_of(1, CSV, None)]), decisions).steps
    return whole.select("step", "step_basis").rows()


def test_a_bar_of_batches_adds_no_step() -> None:
    for first in (True, False):
        for basis in ("batch", "ordinal"):
            assert joined([(10, 6.786)], basis, bar_first=first) == [(step, None) for step, _ in CSV]


def test_a_bar_that_agrees_counts_steps() -> None:
    for first in (True, False):
        steps = joined([(9, 7.1), (10, 6.786)], "batch", bar_first=first)
        assert steps == [(step, None) for step in (1, 3, 5, 7, 9, 10)]


def test_steps_and_steps_of_epochs_are_kept() -> None:
    for first in (True, False):
        assert joined([(10, 6.786)], None, bar_first=first)[-1] == (10, None)
        assert joined([(10, 6.786)], "epoch", bar_first=first)[-1] == (10, "epoch")
