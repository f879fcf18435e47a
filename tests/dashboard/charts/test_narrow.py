"""Figures on a narrow screen: labels above their rows, nothing else moved."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest

from sweepscope.dashboard.charts import frontier, heatmap, narrow
from sweepscope.dashboard.charts.failures import draw_patterns
from sweepscope.dashboard.format.metrics import METRICS
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.view_models.failures import Pattern
from sweepscope.dashboard.view_models.frontier import Dot
from tests.dashboard.grid_rows import cell, empty, grid


def patterns(*names: str) -> go.Figure:
    rows = [Pattern("tp", name, 10, 5, 0.5, 0.3, 0.7, False) for name in names]
    return draw_patterns(rows, 0.4, LIGHT)


def test_long_labels_stand_above_their_rows_and_the_figure_grows() -> None:
    wide = patterns("a name of many letters", "MBS1")
    figure = narrow.fit(patterns("a name of many letters", "MBS1"), LIGHT.page)
    assert figure.layout.yaxis.showticklabels is False
    added = figure.layout.annotations[len(wide.layout.annotations) :]
    assert [(one.text, one.y, one.xref, one.x, one.xanchor) for one in added] == [
        ("a name of many letters", 0, "paper", 0, "left"),
        ("MBS1", 1, "paper", 0, "left"),
    ]
    assert all(one.yshift > 8 for one in added)
    assert figure.layout.height > wide.layout.height


def test_short_labels_stay_where_they_are() -> None:
    assert narrow.fit(patterns("MBS1", "TP8"), LIGHT.page) == patterns("MBS1", "TP8")


def test_bars_leave_room_for_the_label_above() -> None:
    figure = go.Figure(go.Bar(x=[1], y=[0], orientation="h", width=0.7))
    figure.update_layout(yaxis={"tickvals": [0], "ticktext": ["Norms, activations, launches"], "range": [0.5, -0.5]})
    assert narrow.fit(figure, LIGHT.page).data[0].width < 0.5
    assert figure.layout.yaxis.range[1] < -0.5, "the first label is not cut"


def test_a_label_of_two_lines_does_not_cover_its_bar() -> None:
    figure = go.Figure(go.Bar(x=[1], y=[0], orientation="h", width=0.7))
    figure.update_layout(yaxis={"tickvals": [0], "ticktext": ["DP2 TP8 PP4 · GAS8<br>Llama"], "range": [0.5, -0.5]})
    drawn = narrow.fit(figure, LIGHT.page)
    (label,) = drawn.layout.annotations
    begin, end = drawn.layout.yaxis.range
    row = (drawn.layout.height - 54) / abs(end - begin)  # 54: the axis
    assert label.yshift - 2 * 17 / 2 > drawn.data[0].width * row / 2 - 0.1  # 17: pixels of a line


def test_a_grid_keeps_its_rows_and_a_square_loses_its_blank_space() -> None:
    frame = grid(cell("a model of a long name", 1, params=1))
    drawn = heatmap.draw(frame, METRICS["mfu"], LIGHT, hovers=["x"])
    assert narrow.fit(go.Figure(drawn), LIGHT.page) == drawn
    square = go.Figure(layout={"height": 440, "yaxis": {"scaleanchor": "x"}})
    assert narrow.fit(square, LIGHT.page).layout.height < 440


def test_the_small_grid_shows_figures_without_unit_and_symbols_without_word() -> None:
    frame = grid(cell("1B", 1, params=1, mfu=0.45), empty("80B", 1))
    options = {"hovers": ["x", "x"], "has_layouts": False}
    figure = heatmap.draw(frame, METRICS["mfu"], LIGHT, is_narrow=True, **options).layout.annotations
    assert [one.text for one in figure[:2]] == ["<b>45.0</b>", "<b>△</b>"]


@pytest.mark.parametrize("width", ["wide", "medium", "narrow"])
def test_the_reason_of_a_hollow_dot_is_told_once(width: str) -> None:
    dot = Dot("a", "Llama", "8 × H100", "other", 0.4, None, "derived from GPU-hours", 8)
    figure = frontier.draw([dot], LIGHT, width=width)
    assert ("derived" in figure.layout.yaxis.ticktext[0]) == (width != "wide")
    assert ("derived" in figure.layout.annotations[0].text) == (width == "wide")
    assert ("<br>" in figure.layout.yaxis.ticktext[0]) == (width == "narrow")
