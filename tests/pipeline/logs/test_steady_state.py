"""Steady-state figures of a run, from its logged steps."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.logs.facts import STEP_FACTS
from sweepscope.pipeline.logs.steady_state import MAX_WARMUP_STEPS, summarise, warmup_steps


def steps(*rows: dict[str, object], run_id: str = "a") -> pl.DataFrame:
    """Step rows of one run; unknown unless given."""
    schema = {"run_id": pl.String(), **STEP_FACTS}
    return pl.DataFrame([{"run_id": run_id, **row} for row in rows], schema=schema)


def summary(*rows: dict[str, object]) -> dict[str, object]:
    return summarise(steps(*rows)).row(0, named=True)


def timed(*seconds: float | None) -> list[dict[str, object]]:
    return [{"step": number, "step_time_s": value} for number, value in enumerate(seconds, 1)]


def test_no_steps_no_rows() -> None:
    assert summarise(steps()).is_empty()


def test_a_single_step_is_not_dropped() -> None:
    row = summary(*timed(5.0))
    assert (row["steps_logged"], row["warmup_steps_dropped"], row["step_time_s"], row["warmup_step_time_s"]) == (
        1,
        0,
        5,
        5,
    )


def test_the_first_of_two_is_warm_up() -> None:
    row = summary(*timed(50.0, 2.0))
    assert (row["warmup_steps_dropped"], row["step_time_s"], row["warmup_step_time_s"]) == (1, 2.0, 50.0)


@pytest.mark.parametrize(("logged", "dropped"), [(0, 0), (1, 0), (2, 1), (5, 1), (9, 1), (10, 2), (15, 3), (1000, 3)])
def test_how_many_are_left_out(logged: int, dropped: int) -> None:
    assert pl.select(warmup_steps(pl.lit(logged))).item() == dropped


def test_steps_in_any_order_give_the_same() -> None:
    rows = timed(9.0, 1.0, 2.0, 3.0, 4.0)
    assert summary(*rows) == summary(*rows[::-1])


def test_what_was_not_logged_or_is_no_number_is_left_out() -> None:
    row = summary(*timed(9.0, None, 2.0, math.nan, 4.0))
    assert (row["step_time_s"], row["step_time_p10_s"], row["step_time_p90_s"]) == (3.0, 2.2, 3.8)


def test_a_quantity_that_nobody_logged_is_unknown() -> None:
    row = summary({"step": 1}, {"step": 2})
    assert row["step_time_s"] is row["tokens_per_s"] is row["last_loss"] is row["mem_peak_reserved_bytes"] is None


def test_the_last_loss_is_the_last_finite_one() -> None:
    rows: list[dict[str, object]] = [
        {"step": 1, "loss": 9.0},
        {"step": 2, "loss": 8.0},
        {"step": 3, "loss": math.nan},
        {"step": 4, "loss": math.inf},
        {"step": 5},
    ]
    row = summary(*rows)
    assert (row["last_loss"], row["first_step"], row["last_step"]) == (8.0, 1, 5)


def test_a_run_is_as_sure_of_its_steps_as_of_the_least_sure_one() -> None:
    rows: list[dict[str, object]] = [{"step": 1}, {"step": 2, "step_basis": "epoch"}, {"step": 3}]
    assert summary({"step": 1}, {"step": 2})["step_basis"] == "step"
    assert summary(*rows)["step_basis"] == "epoch"
    assert summary(*rows, {"step": 4, "step_basis": "ordinal"})["step_basis"] == "ordinal"


def test_a_median_of_steps_is_called_so() -> None:
    assert summary(*timed(9.0, 1.0))["step_time_basis"] == "steps"
    assert summary(*timed(9.0, None))["step_time_basis"] is None


def test_peaks_count_the_warm_up_too() -> None:
    row = summary({"step": 1, "mem_reserved_bytes": 9}, {"step": 2, "mem_reserved_bytes": 5}, {"step": 3})
    assert row["mem_peak_reserved_bytes"] == 9


@pytest.mark.slow
@given(st.lists(st.lists(st.floats(0.01, 100), min_size=1, max_size=12), min_size=1, max_size=4))
def test_runs_are_summarised_apart(runs: list[list[float]]) -> None:
    frames = [steps(*timed(*values), run_id=str(number)) for number, values in enumerate(runs)]
    together = summarise(pl.concat(frames)).sort("run_id")
    apart = pl.concat(summarise(frame) for frame in frames)
    assert together.equals(apart)
    dropped = together["warmup_steps_dropped"]
    assert (dropped <= MAX_WARMUP_STEPS).all()
    assert (dropped < together["steps_logged"]).all()
