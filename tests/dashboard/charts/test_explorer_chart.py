"""The front: what it draws, and where the chosen layout stands on it."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from sweepscope.dashboard.charts import explorer as charts
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.view_models.explorer_layout import Answer
from sweepscope.pipeline.estimate.search.whatif import Choice

ANSWER = Answer(
    choice=Choice(),
    dp=8,
    gas=1,
    fits=True,
    mfu=0.38,
    tokens_per_s_per_gpu=1.0,
    step_time_s=1.0,
    need_bytes=40.0 * 2**30,
    card_bytes=80.0 * 2**30,
    memory=(),
    time=(),
)
FRONT = pl.DataFrame({"est_mem_reserved_bytes": [60.0 * 2**30, 20.0 * 2**30], "likely_mfu": [0.4, 0.2]})


def test_the_front_counts_what_lies_outside_the_framework() -> None:
    figure = charts.draw_front(FRONT, ["a", "b"], (ANSWER, 0.38), 2.0 * 2**30, LIGHT)
    (front,) = [trace for trace in figure.data if trace.name == "front"]
    assert list(front.x) == pytest.approx([62.0, 22.0])
    assert list(front.y) == pytest.approx([40.0, 20.0])
    assert [entry[0] for entry in front.customdata] == [0, 1]


def test_the_chosen_layout_is_the_one_bright_thing_and_hollow_when_it_does_not_fit() -> None:
    figure = charts.draw_front(FRONT, ["a", "b"], (ANSWER, 0.38), 0.0, LIGHT)
    (chosen,) = [trace for trace in figure.data if trace.name == "chosen"]
    assert (chosen.x[0], chosen.y[0]) == pytest.approx((40.0, 38.0))
    assert chosen.marker.color == LIGHT.accent
    assert chosen.marker.symbol == "circle"
    large = charts.draw_front(
        FRONT, ["a", "b"], (replace(ANSWER, fits=False, need_bytes=200.0 * 2**30), 0.38), 0.0, LIGHT
    )
    (chosen,) = [trace for trace in large.data if trace.name == "chosen"]
    assert chosen.marker.symbol == "circle-open"
    assert large.layout.xaxis.range[1] > 200


@pytest.mark.parametrize(("mfu", "is_low"), [(0.4, True), (0.1, False)])
def test_the_cards_name_stands_at_the_end_that_the_chosen_layout_leaves_free(mfu: float, is_low: bool) -> None:
    figure = charts.draw_front(FRONT, ["a", "b"], (replace(ANSWER, need_bytes=77.0 * 2**30), mfu), 0.0, LIGHT)
    (card,) = [one for one in figure.layout.annotations if one.text.startswith("card")]
    assert (card.y == 0) is is_low
    assert card.yanchor == ("bottom" if is_low else "top")
