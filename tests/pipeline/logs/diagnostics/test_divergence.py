"""NaN losses and losses that rose for good: what is flagged, from which step on, and what is not."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.logs.diagnostics.divergence import divergence
from sweepscope.schemas.thresholds import DIVERGENCE_LAST_STEPS, DIVERGENCE_RISE_NATS
from tests.pipeline.ingest_in_memory import tables_of
from tests.pipeline.logs.steps_table import said, steps_table
from tests.properties import draws

NAN, INF = math.nan, math.inf
NOTHING_SAID = said("nan_loss")


def judged(steps: pl.DataFrame, lines: pl.DataFrame = NOTHING_SAID) -> tuple[list[tuple[object, ...]], int | None]:
    """(kind, line) of each finding, and the step from which the run had diverged."""
    found, diverged = divergence(steps, lines)
    return found.select("kind", "line_no").rows(), next(iter(diverged["diverged_at_step"].to_list()), None)


class TestNotFinite:
    def test_a_loss_that_stays_nan_diverged_at_its_first_nan(self) -> None:
        assert judged(steps_table(loss=[3.0, 2.9, NAN, NAN])) == ([("nan_loss", 30)], 3)

    def test_an_infinite_loss_counts_as_nan(self) -> None:
        assert judged(steps_table(loss=[3.0, INF])) == ([("nan_loss", 20)], 2)

    def test_a_loss_that_recovers_is_an_event_and_no_divergence(self) -> None:
        found, diverged = divergence(steps_table(loss=[3.0, NAN, NAN, 2.8]), NOTHING_SAID)
        assert found["text"].to_list() == [
            "the loss is NaN or infinite at 2 logged steps, first at step 2; it is finite again afterwards"
        ]
        assert diverged.is_empty()

    def test_the_stretch_that_stays_counts_not_an_earlier_one(self) -> None:
        assert judged(steps_table(loss=[NAN, 3.0, 2.9, NAN, NAN])) == ([("nan_loss", 10)], 4)

    def test_nan_from_the_first_step(self) -> None:
        assert judged(steps_table(loss=[NAN, NAN])) == ([("nan_loss", 10)], 1)

    def test_steps_without_a_loss_do_not_end_the_stretch(self) -> None:
        assert judged(steps_table(loss=[3.0, NAN, None])) == ([("nan_loss", 20)], 2)

    def test_a_loss_scaler_that_searches_its_scale_is_healthy(self) -> None:
        """Overflowed steps print an infinite norm now and then."""
        assert judged(steps_table(loss=[3.0, 2.9, 2.8], grad_norm=[INF, NAN, 1.0])) == ([], None)

    def test_a_norm_that_stays_nan_is_a_divergence_that_the_loss_hides(self) -> None:
        """transformers' Trainer prints 0.0 for a NaN loss (logging_nan_inf_filter)."""
        steps = steps_table(loss=[3.0, 2.9, 0.0, 0.0, 0.0], grad_norm=[1.0, 1.0, NAN, NAN, NAN])
        found, diverged = divergence(steps, NOTHING_SAID)
        assert found.select("line_no", "text").rows() == [
            (
                30,
                "the gradient norm is NaN or infinite at 3 logged steps, first at step 3; "
                "from step 3 to the last step 5 it stays so",
            )
        ]
        assert diverged.rows() == [("a", 3)]

    def test_no_steps(self) -> None:
        assert judged(steps_table(loss=[])) == ([], None)

    def test_runs_are_judged_apart(self) -> None:
        both = pl.concat([steps_table("sound", loss=[3.0, 2.0]), steps_table("sick", loss=[3.0, NAN])])
        assert divergence(both, NOTHING_SAID)[1].rows() == [("sick", 2)]


RERUN = (
    "RuntimeError: Rank 3, node n1, device 3, iteration 12: Unexpected result nan "
    "(message='found NaN in local forward loss calculation')"
)
OLD_CHECK = "AssertionError: Rank 7: found NaN in local forward loss calculation. Device: 7, node: n1"
COUNTER = "iteration 5/10 | lm loss: 3.0E+00 | number of skipped iterations:   0 | number of nan iterations:   1 |"


class TestSaid:
    def test_a_check_that_names_its_iteration(self) -> None:
        assert judged(steps_table(loss=[3.0] * 11), said("nan_loss", RERUN)) == ([("nan_loss", 1)], 12)

    def test_a_check_that_does_not_stopped_the_run_after_its_last_step(self) -> None:
        assert judged(steps_table(loss=[3.0] * 11), said("nan_loss", OLD_CHECK)) == ([("nan_loss", 1)], 11)

    def test_a_counter_is_an_event_and_the_run_went_on(self) -> None:
        found, diverged = divergence(steps_table(loss=[3.0] * 5), said("nan_loss", COUNTER, COUNTER))
        assert found["text"].to_list() == [f"2 step lines count iterations with NaN, first: {COUNTER}"]
        assert diverged.is_empty()

    def test_the_step_line_says_more_than_the_counter(self) -> None:
        assert judged(steps_table(loss=[3.0, NAN]), said("nan_loss", COUNTER)) == ([("nan_loss", 20)], 2)


def falling(n: int, noise: float, seed: int, draw: str = "normal") -> list[float]:
    """A loss that falls from 10.5 to 2.5 with noise of that scale on it."""
    jitter = getattr(np.random.default_rng(seed), draw)(0, noise, n)
    return [2.5 + 8 * math.exp(-step / 20) + float(jitter[step]) for step in range(n)]


class TestRising:
    def test_a_loss_that_runs_away(self) -> None:
        losses = falling(100, 0.02, 1) + [2.6 + 0.2 * step for step in range(30)]
        found, diverged = divergence(steps_table(loss=losses), NOTHING_SAID)
        (kind, line, text) = found.select("kind", "line_no", "text").row(0)
        assert (kind, line) == ("diverged", 10 * diverged["diverged_at_step"][0])
        assert 101 <= diverged["diverged_at_step"][0] <= 110
        assert text.startswith("the loss (median of 5 logged steps) rose from its best 2.5")
        assert "is 8.0 at the last step 130" in text

    def test_a_loss_that_jumps_and_stays(self) -> None:
        assert judged(steps_table(loss=[3.0] * 40 + [7.0] * 15)) == ([("diverged", 430)], 43)

    def test_a_spike_that_recovers_is_none(self) -> None:
        assert judged(steps_table(loss=[3.0] * 40 + [9.0] * 30 + [3.1] * 10)) == ([], None)

    def test_a_rise_at_the_very_end_may_still_recover(self) -> None:
        assert judged(steps_table(loss=[3.0] * 40 + [9.0] * (DIVERGENCE_LAST_STEPS - 1))) == ([], None)

    def test_a_few_steps_are_no_curve(self) -> None:
        assert judged(steps_table(loss=[3.0] * 5 + [9.0] * 12)) == ([], None)

    def test_an_objective_below_zero_is_no_cross_entropy(self) -> None:
        assert judged(steps_table(loss=[-5.0] * 40 + [4.0] * 20)) == ([], None)

    @settings(max_examples=draws(150))
    @given(
        seed=st.integers(0, 2**32),
        n=st.integers(1, 400),
        noise=st.floats(0.0, 1.0),
        draw=st.sampled_from(["normal", "logistic", "laplace"]),
    )
    def test_a_falling_loss_with_noise_never_diverges(self, seed: int, n: int, noise: float, draw: str) -> None:
        assert judged(steps_table(loss=falling(n, noise, seed, draw)))[1] is None

    @settings(max_examples=draws(80))
    @given(
        seed=st.integers(0, 2**32),
        n=st.integers(30, 200),
        noise=st.floats(0.0, 0.05),
        after=st.integers(DIVERGENCE_LAST_STEPS + 3, 60),
        jump=st.floats(4.0, 20.0),
    )
    def test_a_jump_that_stays_is_found_within_three_logged_steps(
        self, seed: int, n: int, noise: float, after: int, jump: float
    ) -> None:
        before = falling(n, noise, seed)
        jitter = np.random.default_rng(seed + 1).normal(min(before) + DIVERGENCE_RISE_NATS + jump, noise, after)
        losses = [*before, *map(float, jitter)]
        at = judged(steps_table(loss=losses))[1]
        if max(before) < min(losses[n:]):  # else the first losses were no lower
            assert at is not None
            assert n + 1 <= at <= n + 3


@pytest.mark.parametrize("loss", ["nan", "NaN", "inf"])
def test_the_step_stands_in_the_run_and_its_line_among_the_events(loss: str) -> None:
    line = "{{'loss': {}, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': {:.2f}}}\n"
    text = "  Num Epochs = 1\n  Total optimization steps = 4\n" + "".join(
        line.format(value, step / 4) for step, value in enumerate(["2.5", "2.4", loss, loss], 1)
    )
    tables = tables_of({"train.log": text})
    assert tables["runs"]["diverged_at_step"].to_list() == [3]
    assert tables["events"].filter(kind="nan_loss").select("line_no", "source_path").rows() == [(5, "train.log")]
