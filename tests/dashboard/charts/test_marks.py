from __future__ import annotations

import plotly.graph_objects as go

from sweepscope.dashboard.charts.marks import hatching, hovering, note, row_axis
from sweepscope.dashboard.format.theme import LIGHT


def test_a_note_has_a_patch_only_on_a_page() -> None:
    assert note("8B", LIGHT.mute) == {"text": "8B", "showarrow": False, "font": {"size": 12, "color": LIGHT.mute}}
    assert note("8B", LIGHT.mute, size=13, page=LIGHT.page)["bgcolor"] == LIGHT.page


def test_plotly_takes_the_marks() -> None:
    figure = go.Figure()
    figure.add_bar(x=[1, 2], y=[0, 1], orientation="h", marker={"pattern": hatching(LIGHT)}, **hovering(["a", "b"]))
    figure.add_annotation(x=1, y=0, **note("8B", LIGHT.mute, page=LIGHT.page))
    figure.update_layout(yaxis=row_axis(["first", "second"], LIGHT))
    assert list(figure.data[0].hovertext) == ["a", "b"]
    assert figure.layout.yaxis.range == (1.5, -0.5)


def test_rows_without_names_keep_the_height_of_one() -> None:
    assert row_axis([], LIGHT)["range"] == [0.5, -0.5]
