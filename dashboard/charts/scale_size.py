"""Scale by size: the regions in which documents advise one kind of layout, and the store's best runs in them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.format.theme import Theme
from sweepscope.pipeline.estimate.advice.branches import LARGE_MODEL, LARGE_SCALE, SMALL_MODEL

HEIGHT = 320
_GPUS = (4.0, 32_768.0)
_PARAMS = (0.1e9, 1.6e12)
REGIONS = (
    ("TP or DP", (_GPUS[0], LARGE_SCALE), (_PARAMS[0], SMALL_MODEL)),
    ("TP + PP, TP + DP or ZeRO-3", (_GPUS[0], LARGE_SCALE), (SMALL_MODEL, LARGE_MODEL)),
    ("?", (_GPUS[0], LARGE_SCALE), (LARGE_MODEL, _PARAMS[1])),
    ("TP + DP + PP", (LARGE_SCALE, _GPUS[1]), _PARAMS),
)
"""The slides' regions: what is advised, between how many GPUs, between how many parameters."""


def draw(points: pl.DataFrame, hovers: Sequence[str], here: tuple[int, float], theme: Theme) -> go.Figure:
    """Best runs as dots over the regions; a star marks the question (GPUs, parameters).

    `points` are rows of `queries.explorer.by_scale`; published ones are hollow.
    """
    figure = go.Figure()
    for number, (words, gpus, params) in enumerate(REGIONS):
        figure.add_shape(
            type="rect",
            x0=gpus[0],
            x1=gpus[1],
            y0=params[0],
            y1=params[1],
            layer="below",
            fillcolor=theme.surface if number % 2 == 0 else theme.page,
            line={"color": theme.rule, "width": 1},
        )
        figure.add_annotation(
            x=math.log10(gpus[0]),  # a logarithmic axis takes an annotation's place as an exponent
            y=math.log10(params[1]),
            xanchor="left",
            yanchor="top",
            xshift=6,
            yshift=-4,
            text=words,
            showarrow=False,
            font={"color": theme.mute, "size": 26 if words == "?" else 13},
        )
    for is_published in (True, False):
        rows = [index for index, origin in enumerate(points["origin"]) if (origin == "published") is is_published]
        part = points[rows]
        figure.add_scatter(
            x=part["num_gpus"],
            y=part["params"],
            mode="markers",
            marker={
                "size": 8,
                "symbol": "circle-open" if is_published else "circle",
                "color": theme.mute if is_published else theme.accent,
            },
            hovertext=[hovers[index] for index in rows],
            hovertemplate="%{hovertext}<extra></extra>",
        )
    figure.add_scatter(
        x=[here[0]],
        y=[here[1]],
        mode="markers",
        marker={"size": 15, "symbol": "star", "color": theme.failed, "line": {"color": theme.page, "width": 1}},
        hovertemplate="this question<extra></extra>",
    )
    figure.update_layout(height=HEIGHT, showlegend=False, margin={"l": 62, "r": 8, "t": 8, "b": 44})
    figure.update_xaxes(
        type="log", range=_log(_GPUS), title="GPUs", tickvals=_TICKS, ticktext=[f"{n:,}" for n in _TICKS]
    )
    figure.update_yaxes(
        type="log",
        range=_log(_PARAMS),
        title="Parameters",
        tickvals=[1e9, 1e10, 1e11, 1e12],
        ticktext=["1B", "10B", "100B", "1T"],
    )
    return figure


_TICKS = (8, 64, 512, 4096, 32_768)


def _log(span: tuple[float, float]) -> list[float]:
    return [math.log10(end) for end in span]
