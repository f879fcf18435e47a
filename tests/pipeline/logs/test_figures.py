"""Figures of runs are the same however their steps are cut into slices."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from sweepscope.pipeline.logs import figures
from sweepscope.pipeline.logs.diagnostics.divergence import divergence
from sweepscope.pipeline.logs.diagnostics.finding import FINDING
from sweepscope.pipeline.logs.diagnostics.silence import pauses, silent_pauses
from sweepscope.pipeline.logs.runs.summary import step_lines
from sweepscope.pipeline.logs.steady_state import in_runs, summarise
from tests.properties import draws

BEGIN = datetime(2026, 11, 20, 22, 41)


def steps_of(lengths: list[int]) -> pl.DataFrame:
    """Runs of those lengths, with gaps in what they log, pauses, and a loss that rises in the end."""
    rows = []
    for run, length in enumerate(lengths):
        clock = BEGIN
        for step in range(length):
            clock += timedelta(seconds=4000 if step == 7 else 2 + step % 3)
            rows.append(
                {
                    "run_id": f"run{run}",
                    "source_path": f"{run}.log",
                    "line_no": 10 * step if step % 5 else None,
                    "ts": clock,
                    "step": step,
                    "steps_planned": length if step == 3 else None,
                    "step_basis": "step",
                    "loss": 3.0 - 0.01 * step + (9 if run % 2 and step > length - 25 else 0),
                    "grad_norm": 1.0,
                    "step_time_s": None if step % 4 == 1 else 1 + 0.1 * (step % 7),
                    "tokens_per_s": 100.0 + step % 11,
                    "tokens_per_s_per_gpu": None,
                    "tflops_per_gpu_logged": None,
                    "mfu_logged": None,
                    "mem_allocated_bytes": step,
                    "mem_reserved_bytes": None,
                }
            )
    return in_runs(pl.DataFrame(rows, infer_schema_length=None))


@settings(max_examples=draws(200), deadline=None)
@given(lengths=st.lists(st.integers(1, 90), min_size=1, max_size=4), size=st.integers(1, 60))
def test_slices_of_any_size_give_the_figures_of_the_whole(lengths: list[int], size: int) -> None:
    steps, no_lines = steps_of(lengths), pl.DataFrame(schema=FINDING)

    def everything() -> list[pl.DataFrame]:
        found = [summarise(steps), step_lines(steps), pauses(steps), silent_pauses(steps)]
        return [*found, *divergence(steps, no_lines)]

    whole = everything()
    with pytest.MonkeyPatch.context() as patch:
        for module in ("figures", "diagnostics.divergence"):
            patch.setattr(f"sweepscope.pipeline.logs.{module}.SLICE_ROWS", size)
        for one, other in zip(everything(), whole, strict=True):
            assert_frame_equal(one, other, check_exact=True)


def test_a_median_of_very_many_steps_is_one_of_some_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every hundredth step saves a checkpoint; drawing each hundredth would find nothing but these."""
    monkeypatch.setattr(figures, "DRAWN_STEPS", 200)
    monkeypatch.setattr(figures, "SLICE_ROWS", 3_000)
    time_s = (
        pl.int_range(20_000, eager=True)
        .to_frame("step")
        .with_columns(
            run=pl.lit(0), time_s=pl.when(pl.col("step") % 100 == 0).then(60.0).otherwise(1 + pl.col("step") / 1e5)
        )
    )
    drawn = figures.of_runs(time_s, median=figures.drawn(pl.col("time_s"), pl.Expr.median))["median"].item()
    assert abs(drawn - time_s["time_s"].median()) < 0.01


@pytest.mark.parametrize(("number", "prime"), [(1, 1), (2, 3), (4, 7), (5, 7), (100, 101)])
def test_what_is_drawn_falls_on_no_round_number(number: int, prime: int) -> None:
    assert figures._prime_from(number) == prime
