from __future__ import annotations

import time

import plotly.graph_objects as go

from sweepscope.dashboard.charts.layer import Layer


def test_a_layer_is_laid_over_what_the_figure_has_in_its_order() -> None:
    figure, layer = go.Figure(), Layer()
    figure.add_annotation(text="a", x=0, y=0)
    layer.add_annotation(text="b", x=1, y=1, showarrow=False)
    layer.add_shape(type="rect", x0=0, x1=1, y0=0, y1=1)
    layer.lay_on(figure)
    assert [one.text for one in figure.layout.annotations] == ["a", "b"]
    assert [one.type for one in figure.layout.shapes] == ["rect"]


def test_many_marks_cost_no_more_each_than_few() -> None:
    def cost(marks: int) -> float:
        began, layer = time.process_time(), Layer()
        for place in range(marks):
            layer.add_shape(type="rect", x0=place, x1=place + 1, y0=0, y1=1)
        layer.lay_on(go.Figure())
        return time.process_time() - began

    cost(10)
    assert cost(400) < 40 * max(cost(40), 1e-3), (
        "one by one, plotly takes a hundred times as long for ten times as many"
    )
