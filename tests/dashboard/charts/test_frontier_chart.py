"""The dot plot: marks by kind, labels as text, nothing read as a tag."""

from __future__ import annotations

import pytest

from sweepscope.dashboard.charts.frontier import draw
from sweepscope.dashboard.format.theme import DARK, LIGHT, Theme
from sweepscope.dashboard.view_models.frontier import Dot, Kind


def dot(kind: Kind = "comparable", mfu: float | None = 0.41, hfu: float | None = None, **changes: object) -> Dot:
    values = {"run_id": "a", "name": "Llama", "hardware": "8 × H100", "reason": None, "num_gpus": 8}
    return Dot(kind=kind, mfu=mfu, hfu=hfu, **{**values, **changes})  # type: ignore[arg-type]


def texts(*dots: Dot) -> list[str]:
    return [annotation.text for annotation in draw(dots, LIGHT).layout.annotations]


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_kinds_differ_by_shape_and_fill_not_by_colour_alone(theme: Theme) -> None:
    figure = draw([dot(), dot("other", 0.38, reason="FP8"), dot("other", None, 0.5), dot("own", 0.2)], theme)
    marks = [(trace.marker.symbol, trace.marker.color == theme.page) for trace in figure.data]
    assert marks == [("circle", False), ("circle", True), ("square", True), ("diamond", False)]


def test_a_hollow_dot_says_why_and_a_square_alone_says_what_is_missing() -> None:
    found = texts(dot("other", 0.38, reason="FP8 mixed"), dot("other", None, 0.5))
    assert any("FP8 mixed" in text for text in found)
    assert {"HFU 50.0", "no MFU published"} <= set(found)


def test_mfu_and_hfu_of_one_row_are_joined() -> None:
    lines = [shape for shape in draw([dot(mfu=0.46, hfu=0.58)], LIGHT).layout.shapes if shape.yref != "paper"]
    assert [(line.x0, line.x1) for line in lines] == [pytest.approx((46.0, 58.0))]


def test_the_best_here_is_a_line_across_all_rows() -> None:
    figure = draw([dot(), dot("own", 0.2), dot("own", 0.3)], LIGHT)
    assert [shape.x0 for shape in figure.layout.shapes if shape.yref == "paper"] == [30.0]


def test_names_and_reasons_are_text_and_never_tags() -> None:
    figure = draw([dot("other", 0.3, name="<b>x", reason="a<script>", source="<i>")], LIGHT)
    drawn = [*figure.layout.yaxis.ticktext, *texts(dot("other", 0.3, reason="a<script>")), *figure.data[0].hovertext]
    assert "&lt;b&gt;x" in drawn[0]
    assert all("<script>" not in text and "<i>" not in text for text in drawn)


def test_a_dot_near_the_left_edge_has_its_value_on_the_right() -> None:
    figure = draw([dot("own", 0.005), dot(mfu=0.5)], LIGHT)
    sides = {annotation.text: annotation.xanchor for annotation in figure.layout.annotations}
    assert (sides["<b>0.5</b>"], sides["<b>50.0</b>"]) == ("left", "right")


def test_many_rows_stay_on_one_screen() -> None:
    assert draw([dot() for _ in range(32)], LIGHT).layout.height < 700


def test_every_point_lies_inside_the_axis() -> None:
    figure = draw([dot(mfu=0.005), dot("other", 0.66, 0.9, reason="x")], LIGHT)
    low, high = figure.layout.xaxis.range
    assert all(low <= x <= high for trace in figure.data for x in trace.x)


def test_shares_begin_at_zero() -> None:
    assert draw([dot(mfu=0.41), dot(mfu=0.6)], LIGHT).layout.xaxis.range[0] == 0


def test_a_single_row_leaves_its_axis_room() -> None:
    assert draw([dot("own")], LIGHT).layout.height > 100


@pytest.mark.parametrize(("ceiling", "side"), [(0.47, "right"), (0.6, "left"), (None, "left")])
def test_the_value_of_hfu_hides_no_tick(ceiling: float | None, side: str) -> None:
    """`side`: the edge of the text that is nearest to the square."""
    notes = draw([dot(mfu=0.32, hfu=0.43, ceiling=ceiling)], LIGHT).layout.annotations
    assert [note.xanchor for note in notes if note.text.startswith("HFU")] == [side]


def test_a_tick_shows_what_the_estimate_allows_beside_figures_that_it_may_be_held_against() -> None:
    figure = draw([dot(ceiling=0.5, ceiling_layout="DP8 <b>"), dot("other", 0.3, ceiling=0.5), dot("own", 0.2)], LIGHT)
    ticks = [trace for trace in figure.data if trace.marker.symbol == "line-ns"]
    assert [(tick.x[0], tick.y[0]) for tick in ticks] == [(50.0, 0)]
    assert "at most 50.0" in ticks[0].hovertext[0]
    assert "&lt;b&gt;" in ticks[0].hovertext[0]


@pytest.mark.parametrize(("ceiling", "side"), [(0.40, "left"), (0.42, "right"), (0.30, "right"), (None, "right")])
def test_a_value_stands_where_no_tick_is(ceiling: float | None, side: str) -> None:
    """`side`: the edge of the text that is nearest to the dot."""
    (label,) = draw([dot(mfu=0.41, ceiling=ceiling)], LIGHT).layout.annotations
    assert label.xanchor == side
