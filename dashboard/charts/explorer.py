"""The Pareto front of a search: throughput against memory, with the chosen layout on it or beside it."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.marks import beside, hovering, note, value_axis
from sweepscope.dashboard.format.numbers import GIB, gib, percent
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.view_models.explorer_layout import Answer

HEIGHT = 236


def draw_front(
    front: pl.DataFrame, hovers: Sequence[str], chosen: tuple[Answer, float], outside_bytes: float, theme: Theme
) -> go.Figure:
    """`likely_mfu` against what the card must hold. Grey: layouts that nothing beats on both. Accent: the chosen one.

    `chosen` is a layout with its MFU by the same measure. `outside_bytes` is what lies outside the framework's
    reservation; it counts for every layout alike.
    """
    needs = [(value + outside_bytes) / GIB for value in front["est_mem_reserved_bytes"]]
    rates = [100 * value for value in front["likely_mfu"]]
    figure = go.Figure()
    figure.add_scatter(
        x=needs, y=rates, mode="lines", line={"color": theme.rule, "width": 2, "shape": "vh"}, hoverinfo="skip"
    )
    figure.add_scatter(
        x=needs,
        y=rates,
        mode="markers",
        **hovering(hovers),
        customdata=[[position] for position in range(front.height)],
        name="front",
        marker={"size": 9, "color": theme.axis},
        unselected={"marker": {"opacity": 1}},
    )
    estimate, mfu = chosen
    x, y = estimate.need_bytes / GIB, 100 * mfu
    figure.add_scatter(
        x=[x],
        y=[y],
        mode="markers",
        hoverinfo="skip",
        name="chosen",
        unselected={"marker": {"opacity": 1}},
        marker={
            "size": 14,
            "color": theme.accent,
            "symbol": "circle" if estimate.fits else "circle-open",
            "line": {"width": 0 if estimate.fits else 2, "color": theme.accent},
        },
    )
    card = estimate.card_bytes / GIB
    right = max(card, x) * 1.06
    gap = -12 if x > 0.7 * right else 12
    label = note(f"<b>{percent(mfu)}</b>", theme.accent, size=13, page=theme.page)
    figure.add_annotation(**beside(x, y, gap), yshift=10, **label)
    top = max([*rates, y, 1.0]) * 1.15
    figure.add_vline(x=card, line={"width": 1, "color": theme.ink})
    text = note(f"card {gib(estimate.card_bytes)}", theme.mute, page=theme.page)
    # at the end of the line that the chosen layout, often near the card's size, leaves free
    height, anchor = (0.0, "bottom") if y > top / 2 else (top, "top")
    figure.add_annotation(**beside(card, height, -4), yanchor=anchor, **text)
    figure.update_layout(
        height=HEIGHT,
        hoverdistance=20,
        xaxis=value_axis(0, right, "Memory per GPU, estimated, GiB"),
        yaxis=value_axis(0, top, "MFU, estimated, %"),
    )
    return figure
