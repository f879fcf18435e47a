"""What a step curve draws, and what it names instead of drawing."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import pytest

from sweepscope.dashboard.format.numbers import NBSP
from sweepscope.dashboard.view_models.curves import MEASURES, Curve, beyond_in_words, curve, offered


def points(times_s: Sequence[float | None], **columns: object) -> pl.DataFrame:
    steps = list(range(1, len(times_s) + 1))
    frame = pl.DataFrame(
        {
            "step": steps,
            "place": steps,
            "steps_in_row": [1] * len(steps),
            "step_time_s": times_s,
            "step_time_max_s": times_s,
            "slowest_step": steps,
            "loss": [None] * len(steps),
            "tokens_per_s_per_gpu": [None] * len(steps),
            "mem_reserved_bytes": [None] * len(steps),
        },
        schema_overrides={
            "step_time_s": pl.Float64,
            "step_time_max_s": pl.Float64,
            "loss": pl.Float64,
            "tokens_per_s_per_gpu": pl.Float64,
            "mem_reserved_bytes": pl.Float64,
        },
    )
    return frame.with_columns(pl.Series(name, values) for name, values in columns.items())  # type: ignore[arg-type]


def time_curve(times_s: Sequence[float | None], warmup: int = 2) -> Curve:
    return curve(points(times_s), MEASURES["time"], warmup_steps=warmup, median=None)


def test_a_slow_first_step_is_named_and_does_not_stretch_the_axis() -> None:
    shown = time_curve([58.6, 2.87, 2.93, 2.91, 2.95])
    assert shown.points["step"].to_list() == [2, 3, 4, 5]
    assert shown.high < 3.2
    assert beyond_in_words(shown) == f"step 1: 58.6{NBSP}s"


def test_a_slightly_slow_warm_up_step_leaves_the_axis_too() -> None:
    assert [point.step for point in time_curve([4.0, 3.1, 3.0, 3.0, 3.0]).beyond] == [1]


def test_a_steady_step_that_is_somewhat_slow_is_drawn() -> None:
    shown = time_curve([3.0, 3.0, 3.0, 6.0, 3.0])
    assert shown.beyond == ()
    assert shown.high > 6.0


def test_many_stragglers_are_counted_with_the_slowest() -> None:
    shown = time_curve([1.0] * 20 + [10.0, 30.0, 20.0])
    assert beyond_in_words(shown) == f"3 steps above the axis, slowest step 22: 30.0{NBSP}s"


def test_a_point_of_many_steps_names_its_slowest() -> None:
    frame = points([1.0] * 30).with_columns(
        steps_in_row=pl.lit(100),
        step_time_max_s=pl.when(pl.col("step") == 9).then(12.0).otherwise(1.1),
        slowest_step=pl.col("step") * 100,
    )
    shown = curve(frame, MEASURES["time"], warmup_steps=1, median=None)
    assert shown.points.height == 30
    assert beyond_in_words(shown) == f"slowest step 900: 12.0{NBSP}s"


def test_warm_up_ends_halfway_to_the_first_steady_step() -> None:
    assert time_curve([3.0] * 5).warmup_until == 2.5
    assert time_curve([3.0] * 5, warmup=0).warmup_until is None
    assert time_curve([3.0, 3.0], warmup=2).warmup_until == 2.0


def test_equal_values_still_get_an_axis_with_room() -> None:
    shown = time_curve([3.0] * 5)
    assert shown.low < 3.0 < shown.high


def test_missing_values_are_left_out() -> None:
    assert time_curve([3.0, None, 3.1]).points["step"].to_list() == [1, 3]


def test_all_warm_up_is_still_a_curve() -> None:
    assert time_curve([3.0, 3.1], warmup=5).points.height == 2


def test_loss_is_drawn_to_its_top() -> None:
    frame = points([1.0, 1.0, 1.0], loss=[11.0, 2.0, 2.0])
    shown = curve(frame, MEASURES["loss"], warmup_steps=1, median=3.0)
    assert (shown.beyond, shown.median) == ((), None)
    assert shown.high > 11.0


def test_memory_is_shown_in_gib() -> None:
    frame = points([1.0, 1.0], mem_reserved_bytes=[2.0**30, 2.0**31])
    shown = curve(frame, MEASURES["memory"], warmup_steps=0, median=None)
    assert shown.points["value"].to_list() == [1.0, 2.0]


@pytest.mark.parametrize(("times", "keys"), [([], []), ([1.0], []), ([1.0, 2.0], ["time"])])
def test_a_measure_needs_two_steps_to_be_offered(times: list[float], keys: list[str]) -> None:
    assert [measure.key for measure in offered(points(times))] == keys


INFINITE, NOT_A_NUMBER = float("inf"), float("nan")


def loss_curve(losses: Sequence[float | None]) -> Curve:
    return curve(points([1.0] * len(losses), loss=losses), MEASURES["loss"], warmup_steps=0, median=None)


@pytest.mark.parametrize("value", [INFINITE, -INFINITE, NOT_A_NUMBER, 1e308, -1e308, 1.7976931348623157e308])
def test_what_no_axis_can_hold_is_named_and_the_rest_is_drawn(value: float) -> None:
    shown = loss_curve([2.0, value, 1.5, 1.0])
    assert shown.points["step"].to_list() == [1, 3, 4]
    assert 0.5 < shown.low < shown.high < 2.5
    named = {INFINITE: "∞", -INFINITE: "−∞", 1e308: "1e308", -1e308: "−1e308"}.get(value, "")
    assert beyond_in_words(shown).startswith(f"step 2: {named}")
    assert len(beyond_in_words(shown)) < 20


def test_a_loss_that_diverged_names_the_first_step_without_one() -> None:
    shown = loss_curve([2.0, 1.5, *[NOT_A_NUMBER] * 50])
    assert beyond_in_words(shown) == "50 steps off the axis, first step 3: NaN"


@pytest.mark.parametrize("value", [INFINITE, NOT_A_NUMBER, 1e308])
@pytest.mark.parametrize("measure", list(MEASURES))
def test_nothing_but_such_values_has_an_axis_too(measure: str, value: float) -> None:
    values = [value] * 3
    rows = points(values, loss=values, tokens_per_s_per_gpu=values, mem_reserved_bytes=values)
    shown = curve(rows, MEASURES[measure], warmup_steps=1, median=value)
    assert shown.points.is_empty()
    assert shown.low < shown.high < 1e101
    assert shown.median is None


def test_large_figures_that_can_be_drawn_are() -> None:
    shown = loss_curve([1e30, 2e30, 1.5e30])
    assert shown.points.height == 3
    assert shown.high > 2e30
