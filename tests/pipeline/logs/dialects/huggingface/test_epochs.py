"""Steps from epochs: right where one row of steps explains them, else marked as computed."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sweepscope.pipeline.logs.dialects.huggingface.epochs import span_of, steps_of
from sweepscope.pipeline.logs.sidecars.speed_metrics import Span


def printed(epoch: float, version: int) -> str:
    """As version 4 (two decimals) or 5 (quoted, four digits) prints an epoch."""
    return f"'{epoch:.4g}'" if version == 5 else str(round(epoch, 2))


def found(steps: list[int], per_epoch: float, total: int, version: int) -> tuple[list[int], str] | None:
    over = span_of(printed(total / per_epoch, version))
    if over is None:
        return None  # less than a hundredth of an epoch: no epoch tells anything
    return steps_of([span_of(printed(step / per_epoch, version)) for step in steps], steps=total, over=over)


@pytest.mark.parametrize("version", [4, 5])
def test_a_row_of_steps(version: int) -> None:
    assert found([500, 1000, 1500], 657, 1971, version) == ([500, 1000, 1500], "epoch" if version == 4 else "step")


def test_a_few_steps_of_a_long_epoch() -> None:
    assert found([4, 8, 12, 16, 20, 24], 385, 24, 5) == ([4, 8, 12, 16, 20, 24], "step")


def test_the_first_step_was_logged_too() -> None:
    steps = [1, *range(10, 481, 10)]
    assert found(steps, 160, 480, 5) == (steps, "step")


def test_a_single_dict() -> None:
    assert found([24], 385, 24, 5) == ([24], "step")


def test_steps_in_no_row_are_those_that_the_epochs_allow() -> None:
    assert found([3, 7, 24], 100, 24, 5) == ([3, 7, 24], "step")
    vague = found([300, 700, 2400], 1000, 2400, 4)
    assert vague is not None
    assert vague[1] == "epoch"


@pytest.mark.parametrize("epochs", [["0.1", "0.1"], ["0.2", "0.1"], ["0.0", "0.1"], ["nan"], []])
def test_epochs_that_do_not_rise_tell_nothing(epochs: list[str]) -> None:
    assert steps_of([span_of(text) for text in epochs], steps=24, over=Span(0.0605, 0.0615)) is None


@st.composite
def logged(draw: st.DrawFn) -> tuple[list[int], int]:
    """Steps in a row, with the first one or without, and the number of all."""
    every, count = draw(st.integers(1, 500)), draw(st.integers(1, 60))
    first = [1] if draw(st.booleans()) and every > 1 else []
    return [*first, *range(every, every * count + 1, every)], every * count + draw(st.integers(0, 499)) % every


@example(training=([1, 2, 4], 4), per_epoch=3, version=4)
@example(training=([1], 1), per_epoch=201, version=4)
@given(logged(), st.integers(3, 5_000), st.sampled_from([4, 5]))
def test_what_is_called_a_step_is_right(training: tuple[list[int], int], per_epoch: int, version: int) -> None:
    steps, total = training
    found_steps = found(steps, per_epoch, total, version)
    assert found_steps is None or found_steps[1] == "epoch" or found_steps[0] == steps
