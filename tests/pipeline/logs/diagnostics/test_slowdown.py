"""Runs that stretched: from which step on, by how much, and what is no slow-down."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.logs.diagnostics import slowdown
from sweepscope.pipeline.logs.diagnostics.slowdown import slowdowns
from sweepscope.schemas.thresholds import SLOWDOWN_FACTOR
from tests.pipeline.ingest_in_memory import tables_of
from tests.pipeline.logs.steps_table import steps_table
from tests.properties import draws


def jitter(n: int, seed: int = 0) -> list[float]:
    return [float(value) for value in np.random.default_rng(seed).uniform(0.95, 1.05, n)]


def slow(n_before: int, n_after: int, factor: float, seed: int = 0) -> list[float]:
    return [*jitter(n_before, seed), *(factor * value for value in jitter(n_after, seed + 1))]


def test_a_jump_has_its_step_its_factor_and_its_cost() -> None:
    found = slowdowns(steps_table(step_time_s=[5.0] + [1.0] * 29 + [2.0] * 30))
    assert found.select("kind", "line_no", "text").rows() == [
        (
            "slowdown",
            310,
            "from step 31 on a step takes 2.0 s, before it 1.0 s: 2.0 times as long (medians of 30 and 27 logged steps); "
            "it cost about 0.5 min",
        )
    ]


def test_the_cost_counts_the_steps_between_two_log_lines() -> None:
    steps = steps_table(step_time_s=[1.0] * 30 + [3.0] * 30).with_columns(pl.col("step") * 100)
    assert slowdowns(steps)["text"].str.contains("it cost about 100.0 min", literal=True).to_list() == [True]


def test_a_creep_is_told_from_a_jump() -> None:
    (text,) = slowdowns(steps_table(step_time_s=[1 + step / 40 for step in range(100)]))["text"]
    assert "rose gradually rather than at once" in text
    assert "crept" not in slowdowns(steps_table(step_time_s=slow(40, 40, 1.8)))["text"][0]


def test_throughput_tells_where_no_step_time_is_printed() -> None:
    (text,) = slowdowns(steps_table(tokens_per_s_per_gpu=[9000.0] * 30 + [4500.0] * 30))["text"]
    assert text == "from step 31 on tokens/s are 1/2.0 of those before (medians of 30 and 27 logged steps)"


def test_a_batch_that_grows_is_no_slow_down() -> None:
    """Megatron's --rampup-batch-size: a step takes longer because it does more."""
    steps = steps_table(step_time_s=[1.0] * 30 + [4.0] * 30, tokens_per_s=[8000.0] * 30 + [8100.0] * 30)
    assert slowdowns(steps).is_empty()


def test_checkpoints_evaluations_and_a_slow_start_are_no_slow_down() -> None:
    times = [60.0, 8.0, *jitter(98)]
    times[9::10] = [30.0] * 10
    assert slowdowns(steps_table(step_time_s=times)).is_empty()


def test_a_run_that_gets_faster_is_none() -> None:
    assert slowdowns(steps_table(step_time_s=[3.0] * 40 + [1.0] * 40)).is_empty()


def test_a_few_steps_are_no_proof() -> None:
    assert slowdowns(steps_table(step_time_s=[1.0] * 9 + [3.0] * 9)).is_empty()
    assert slowdowns(steps_table(step_time_s=[1.0] * 40 + [9.0] * 4)).is_empty()


def test_nothing_logged_and_no_steps() -> None:
    assert slowdowns(steps_table(loss=[1.0] * 50)).is_empty()
    assert slowdowns(steps_table(loss=[])).is_empty()


def test_impossible_times_are_left_out() -> None:
    times = [float("nan"), 0.0, -1.0, *slow(40, 40, 2.0)]
    assert slowdowns(steps_table(step_time_s=times))["line_no"].to_list() == [440]


def test_runs_are_judged_apart() -> None:
    runs = [steps_table("b", step_time_s=slow(40, 40, 2.0)), steps_table("a", step_time_s=jitter(80))]
    assert slowdowns(pl.concat(runs))["run_id"].to_list() == ["b"]


@settings(max_examples=draws(100))
@given(seed=st.integers(0, 2**32), n=st.integers(0, 300), spread=st.floats(0.0, 0.4))
def test_noise_alone_is_no_slow_down(seed: int, n: int, spread: float) -> None:
    times = np.random.default_rng(seed).lognormal(0, spread, n)
    assert slowdowns(steps_table(step_time_s=[float(value) for value in times])).is_empty()


@example(seed=172, before=124, after=25, factor=2.0)
@settings(max_examples=draws(100))
@given(
    seed=st.integers(0, 2**32),
    before=st.integers(25, 150),
    after=st.integers(25, 150),
    factor=st.floats(SLOWDOWN_FACTOR * 1.15, 20),
)
def test_a_jump_is_found_at_its_step(seed: int, before: int, after: int, factor: float) -> None:
    found = slowdowns(steps_table(step_time_s=slow(before, after, factor, seed)))
    assert found["line_no"].to_list() == [10 * (before + 1)]


def test_the_line_is_an_event_of_its_run() -> None:
    line = (
        " [2025-02-03 04:{:02d}:{:02d}] iteration {:8d}/      60 | consumed samples: {:12d} | elapsed time per iteration "
        "(ms): {:.1f} | learning rate: 1.0E-04 | global batch size:   256 | lm loss: 5.0E+00 | loss scale: 1.0 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )
    text = "".join(line.format(n // 60, n % 60, n, 256 * n, 812.5 if n <= 30 else 1650.0) for n in range(1, 61))
    events = tables_of({"train.log": text})["events"].filter(kind="slowdown")
    assert events.select("source_path", "line_no").rows() == [("train.log", 31)]
    assert events["ts"].dt.strftime("%H:%M:%S").to_list() == ["04:00:31"]


def test_a_very_long_run_is_judged_by_steps_from_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slowdown, "SLOWDOWN_MOST_STEPS", 100)
    found = slowdowns(steps_table(step_time_s=slow(700, 300, 2.0)))
    assert found["text"].str.starts_with("from step 701 on").to_list() == [True]
    assert found["text"].str.contains("medians of 30 and 69 ", literal=True).to_list() == [True]
