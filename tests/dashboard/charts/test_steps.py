"""The step curve's figure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from sweepscope.dashboard.charts.steps import draw
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.view_models.curves import MEASURES, curve
from tests.dashboard.view_models.test_curves import points


def figure(times_s: Sequence[float], *, warmup: int = 2, median: float | None = 2.93) -> Any:
    return draw(curve(points(times_s), MEASURES["time"], warmup_steps=warmup, median=median), LIGHT)


def annotations(drawn: Any) -> str:
    return "\n".join(annotation.text for annotation in drawn.layout.annotations).replace("\xa0", " ")


def test_shades_the_warm_up_and_names_what_is_off_the_axis() -> None:
    drawn = figure([58.6, 2.87, 2.93, 2.91, 2.95])
    assert drawn.layout.shapes[0].x1 == 2.5
    assert "warm-up, not counted" in annotations(drawn)
    assert "↑ step 1: 58.6 s" in annotations(drawn)
    assert list(drawn.data[0].x) == [2, 3, 4, 5]


def test_draws_the_median_the_run_reports() -> None:
    assert "median<br>2.93 s" in annotations(figure([3.0, 3.0, 3.0]))
    assert "median" not in annotations(figure([3.0, 3.0, 3.0], median=None))


def test_a_warm_up_too_short_to_see_is_not_labelled() -> None:
    assert "warm-up" not in annotations(figure([3.0] * 400))


def test_few_points_are_marked_and_each_step_has_its_tick() -> None:
    few, many = figure([3.0] * 10), figure([3.0] * 200)
    assert few.data[0].mode == "lines+markers"
    assert few.layout.xaxis.dtick == 1
    assert many.data[0].mode == "lines"


def test_ticks_have_as_many_decimals_as_they_need() -> None:
    assert figure([3.0, 3.0, 3.0, 3.1]).layout.yaxis.tickformat == ",.2f"
    assert figure([300.0, 300.0, 300.0, 350.0]).layout.yaxis.tickformat == ",.0f"


def test_a_run_that_only_warmed_up_still_has_a_figure() -> None:
    assert len(figure([50.0, 3.0], warmup=2).data) == 1


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 1e308, -1e308, 1e99, 1e-308, 0.0])
@pytest.mark.parametrize("measure", list(MEASURES))
def test_any_value_makes_a_figure_that_a_browser_can_draw(measure: str, value: float) -> None:
    values = [1.0, value, value]
    rows = points(values, loss=values, tokens_per_s_per_gpu=values, mem_reserved_bytes=values)
    drawn = draw(curve(rows, MEASURES[measure], warmup_steps=0, median=value), LIGHT)
    assert all(abs(end) < 1e150 for end in drawn.layout.yaxis.range)
    assert len(drawn.layout.yaxis.tickformat) < 10
    json.loads(drawn.to_json(), parse_constant=pytest.fail)
