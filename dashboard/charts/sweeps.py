"""Throughput of one sweep over that of another, layout by layout."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.marks import hovering, note, segment
from sweepscope.dashboard.format.numbers import plain, shortened
from sweepscope.dashboard.format.theme import Theme

_HEIGHT, _ROOM = 430, 1.08
_NAME_CHARS = 40


def draw_pairs(both: pl.DataFrame, hovers: Sequence[str], names: tuple[str, str], theme: Theme) -> go.Figure:
    """`both` are rows of `queries.sweeps.pairs` that both sweeps have; equal axes, the line of equals dotted."""
    xs, ys = both["tokens_per_s_per_gpu"].to_list(), both["other_tokens_per_s_per_gpu"].to_list()
    high = _ROOM * max([*xs, *ys, 1.0])
    figure = go.Figure()
    figure.add_shape(**{**segment((0, 0), (high, high), theme.axis), "line": {"dash": "dot", "color": theme.axis}})
    figure.add_annotation(x=high, y=high, xanchor="right", yanchor="top", **note("equal", theme.mute))
    figure.add_scatter(
        x=xs,
        y=ys,
        mode="markers",
        marker={"size": 8, "color": [theme.accent if y > x else theme.axis for x, y in zip(xs, ys, strict=True)]},
        **hovering(list(hovers)),
    )
    first, second = (plain(shortened(name, _NAME_CHARS)) for name in names)
    axis = {"range": [0, high], "showgrid": True}
    figure.update_layout(
        height=_HEIGHT,
        margin={"l": 8, "r": 16, "t": 8, "b": 46},
        hoverdistance=20,
        xaxis={**axis, "title": {"text": f"{first}, tokens/s/GPU"}},
        yaxis={**axis, "title": {"text": f"{second}, tokens/s/GPU"}},
    )
    return figure
