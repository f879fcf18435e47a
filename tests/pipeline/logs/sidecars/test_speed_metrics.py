"""Planned steps and batch from the speed that transformers' Trainer states: never wrong, and mostly found."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.logs.sidecars.speed_metrics import Span, Speed, clock, rounded


def speed_of(samples: float, steps: int, runtime_s: float, epoch: float, *, version: int, unit: int = 1) -> Speed:
    """What version 4 (plain numbers) or 5 (four significant digits) prints of a training."""

    def shown(value: float, decimals: int) -> Span | None:
        value = round(value, decimals)
        return rounded(float(f"{value:.4g}"), decimals, 4) if version == 5 else rounded(value, decimals)

    return Speed(
        runtime_s=shown(runtime_s, 4),
        samples_per_s=shown(samples / runtime_s, 3),
        steps_per_s=shown(steps / runtime_s, 3),
        epoch=shown(epoch, 4 if version == 5 else 2),
        unit=unit,
    )


@st.composite
def trainings(draw: st.DrawFn) -> tuple[Speed, int, int]:
    """What a training states, its steps and its batch, as trainer.py computes them."""
    examples = draw(st.integers(50, 200_000))
    micro, gas, ranks = (draw(st.sampled_from([1, 2, 3, 4, 8, 16, 64])) for _ in range(3))
    batch = micro * gas * ranks
    drops = draw(st.booleans())
    batches = max(examples // (micro * ranks) if drops else math.ceil(examples / (micro * ranks)), 1)
    per_epoch = max(batches // gas if draw(st.booleans()) else math.ceil(batches / gas), 1)
    if draw(st.booleans()):
        steps = draw(st.integers(1, 20_000))
        samples, epoch = steps * batch, steps * gas / batches
    else:
        epochs = draw(st.sampled_from([0.5, 1, 1.5, 2, 3, 10]))
        steps = math.ceil(epochs * per_epoch)
        samples, epoch = examples * epochs, epochs
    runtime_s = steps * draw(st.floats(0.05, 40))
    unit = draw(st.sampled_from([1, micro, micro * gas]))
    return speed_of(samples, steps, runtime_s, epoch, version=draw(st.sampled_from([4, 5])), unit=unit), steps, batch


@given(trainings())
def test_what_is_concluded_is_right(training: tuple[Speed, int, int]) -> None:
    speed, steps, batch = training
    assert speed.steps_planned() in (None, steps)
    assert speed.total_batch() in (None, batch)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(("steps", "batch", "runtime_s"), [(24, 8, 22.86), (1000, 64, 812.5), (200, 16, 500.0)])
def test_a_training_of_max_steps_tells_both(version: int, steps: int, batch: int, runtime_s: float) -> None:
    speed = speed_of(steps * batch, steps, runtime_s, 0.0625, version=version)
    assert (speed.steps_planned(), speed.total_batch()) == (steps, batch)


def test_epochs_of_many_steps_tell_the_batch_though_their_last_one_is_smaller() -> None:
    speed = speed_of(3 * 52_002, 3 * 813, 7_000.0, 3.0, version=4)  # 812.5 batches of 64 an epoch
    assert speed.total_batch() == 64


def test_epochs_of_a_few_steps_tell_no_batch() -> None:
    assert speed_of(1000, 4, 20.0, 1.0, version=4).total_batch() is None


def test_printed_steps_make_the_batch_surer() -> None:
    stated = {"runtime_s": rounded(59_901.5, 4), "samples_per_s": rounded(0.131, 3), "steps_per_s": rounded(0.033, 3)}
    vague = Speed(**stated, epoch=rounded(0.9, 2))
    assert (vague.steps_planned(), vague.total_batch()) == (None, 4)
    larger = {**stated, "samples_per_s": rounded(4.209, 3)}
    assert Speed(**larger, epoch=rounded(0.9, 2)).total_batch() is None
    assert Speed(**larger, epoch=rounded(0.9, 2), steps=1970).total_batch() == 128
    assert Speed(**larger, epoch=rounded(0.9, 2), unit=16).total_batch() == 128


def test_numbers_as_they_are_printed() -> None:
    assert clock("1 day, 1:00:00.50") == Span(90000.5, 90000.51)
    assert rounded(12_350.0, 4, 4) == Span(12_345.0, 12_355.0)
    assert rounded(0.0, 3) is rounded(-1.0, 3) is rounded(math.inf, 3) is rounded(math.nan, 3) is clock("12") is None
