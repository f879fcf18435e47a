"""Charts of the page on the estimator: measured against estimated, residuals by pattern, and where MFU is lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.layer import Layer
from sweepscope.dashboard.charts.marks import beside, hatching, hovering, note, row_axis, segment, value_axis
from sweepscope.dashboard.format.numbers import GIB, NBSP, count, number, percent, plain, points
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.view_models.estimator import FITTED, UNEXPLAINED, Hover, Loss, times
from sweepscope.schemas.thresholds import PENALISED_RATIO

_ROW_HEIGHT = 28
_AXIS_HEIGHT = 48
_PARITY_HEIGHT = 440
_WEBGL_FROM = 300  # points: each is an element of SVG, which a browser lays out one by one
_TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)
_FINE_TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.5, 2, 2.5, 3, 4)
_FINE_BELOW = 4.0  # times between the ends of the axis


_HOVER = (
    f"<b>%{{customdata[1]}}</b><br>%{{customdata[2]}}<br>%{{customdata[3]}}{NBSP}s per step, estimated "
    f"%{{customdata[4]}}{NBSP}s: %{{customdata[5]}}{NBSP}×<br>MFU %{{customdata[6]}}{NBSP}%, estimated "
    f"%{{customdata[7]}}{NBSP}%<br>%{{customdata[8]}}<extra></extra>"
)
_DRAWN_DECIMALS = 2  # of an axis in % or GiB: a fifth of a pixel


def draw_mfu(runs: pl.DataFrame, hovers: Sequence[Hover], theme: Theme, *, picked: str | None = None) -> go.Figure:
    """Measured against estimated MFU on equal axes. Needs `mfu`, `est_mfu`, `is_penalised`, `fit`, `run_id`.

    Filled: within PENALISED_RATIO times of the estimate; hollow: slower. A diamond: constants that were not fitted
    on the study.
    """
    shown = runs.with_columns(pl.col("est_mfu", "mfu") * 100)
    figure = _parity(shown, ("est_mfu", "mfu"), hovers, theme, picked)
    top = _top([100 * value for name in ("est_mfu", "mfu") for value in runs[name].to_list()])
    _line(figure, top, top, "equal", theme, dash=None, shift=-14)
    _line(figure, top, top / PENALISED_RATIO, f"{PENALISED_RATIO:g}{NBSP}× slower", theme, dash="dash", shift=14)
    _equal_axes(figure, top, "MFU, %")
    return figure


def draw_memory(runs: pl.DataFrame, hovers: Sequence[Hover], theme: Theme) -> go.Figure:
    """Measured against estimated peak of allocated memory per GPU in GiB, on equal axes; only runs that logged it."""
    logged = runs.with_row_index("hover").filter(pl.col("mem_peak_allocated_bytes").is_not_null())
    shown = logged.with_columns(
        est=pl.col("est_mem_bytes") / GIB, measured=pl.col("mem_peak_allocated_bytes") / GIB, is_penalised=pl.lit(False)
    )
    chosen = [hovers[position] for position in logged["hover"]]
    figure = _parity(shown, ("est", "measured"), chosen, theme)
    top = _top([*shown["est"].to_list(), *shown["measured"].to_list()])
    _line(figure, top, top, "equal", theme, dash=None, shift=-14)
    _equal_axes(figure, top, "peak allocated, GiB")
    return figure


def _parity(
    runs: pl.DataFrame, axes: tuple[str, str], hovers: Sequence[Hover], theme: Theme, picked: str | None = None
) -> go.Figure:
    x, y = axes
    figure = go.Figure()
    kind = go.Scatter if runs.height < _WEBGL_FROM else go.Scattergl
    marked = runs.with_columns(
        pl.col(axes).round(_DRAWN_DECIMALS), position=pl.int_range(pl.len()), is_fitted=pl.col("fit") == FITTED
    )
    for is_slow, is_fitted in product((True, False), (True, False)):
        part = marked.filter(pl.col("is_penalised") == is_slow, pl.col("is_fitted") == is_fitted)
        if part.is_empty():
            continue
        shape, size = ("circle", 6) if is_fitted else ("diamond", 9)
        positions = part.select("run_id", "position").rows()
        trace = kind(
            x=part[x].to_list(),
            y=part[y].to_list(),
            mode="markers",
            hovertemplate=_HOVER,
            customdata=[[run_id, *hovers[position]] for run_id, position in positions],
            name="slow" if is_slow else "healthy",
            unselected={"marker": {"opacity": 0.6}},
            marker={
                "symbol": f"{shape}-open" if is_slow else shape,
                "color": theme.categories[1 if is_slow else 0],
                "size": size,
                "opacity": 0.6,
                "line": {"width": 1 if is_slow else 0},
            },
        )
        figure.add_trace(trace)
    chosen = marked.filter(pl.col("run_id") == pl.lit(picked, pl.String))
    if not chosen.is_empty():
        figure.add_scatter(
            x=chosen[x].to_list(),
            y=chosen[y].to_list(),
            mode="markers",
            hoverinfo="skip",
            name="picked",
            marker={"symbol": "circle-open", "size": 16, "color": theme.ink, "line": {"width": 2}},
        )
    return figure


def _top(values: Sequence[float]) -> float:
    """End of both axes: the next round figure above the largest value."""
    largest = max(values, default=1.0) * 1.04
    step = 10.0 ** math.floor(math.log10(largest)) / 2
    return float(math.ceil(largest / step) * step)


def _line(figure: go.Figure, x: float, y: float, text: str, theme: Theme, *, dash: str | None, shift: int) -> None:
    style = {"width": 1, "color": theme.axis, "dash": dash}
    figure.add_shape(type="line", x0=0, y0=0, x1=x, y1=y, layer="below", line=style)
    figure.add_annotation(
        x=0.93 * x,
        y=0.93 * y,
        xanchor="right" if shift < 0 else "center",
        yshift=-shift,
        **note(text, theme.mute, page=theme.page),
    )


def _equal_axes(figure: go.Figure, top: float, what: str) -> None:
    axis = {"range": [0, top], "showgrid": True, "nticks": 7, "constrain": "domain"}
    figure.update_layout(
        height=_PARITY_HEIGHT,
        hoverdistance=12,
        xaxis={**axis, "title": {"text": f"Estimated {what}"}},
        yaxis={**axis, "title": {"text": f"Measured {what}"}, "scaleanchor": "x"},
    )


def draw_patterns(patterns: pl.DataFrame, theme: Theme) -> go.Figure:
    """Measured over estimated step time by pattern on a log axis: median as a dot, 10th to 90th percentile as a bar."""
    figure, layer = go.Figure(), Layer()
    low = min(0.9, *patterns["time_ratio_p10"].to_list())
    high = max(PENALISED_RATIO, *patterns["time_ratio_p90"].to_list())
    figure.add_vline(x=1, line={"width": 1, "color": theme.axis})
    for position, row in enumerate(patterns.iter_rows(named=True)):
        is_slow = row["time_ratio"] > PENALISED_RATIO
        color = theme.categories[1 if is_slow else 0]
        low_end, high_end = (row["time_ratio_p10"], position), (row["time_ratio_p90"], position)
        layer.add_shape(**segment(low_end, high_end, color, width=3, opacity=0.6))
        figure.add_scatter(
            x=[row["time_ratio"]],
            y=[position],
            mode="markers",
            **hovering([_pattern_hover(row)]),
            marker={"size": 11, "color": theme.page if is_slow else color, "line": {"width": 2, "color": color}},
        )
        text = f"<b>{times(row['time_ratio'])}</b> {count(row['runs'], 'run')}"
        right = beside(math.log10(row["time_ratio_p90"]), position, 8)
        layer.add_annotation(**right, **note(text, theme.soft, page=theme.page))
    layer.lay_on(figure)
    offered = _FINE_TICKS if high / low < _FINE_BELOW else _TICKS
    ticks = [tick for tick in offered if low * 0.99 <= tick <= high * 1.01]
    span = math.log10(high / low)
    figure.update_layout(
        height=_ROW_HEIGHT * max(patterns.height, 2) + _AXIS_HEIGHT,  # of one row the ticks would lie under the title
        hoverdistance=30,
        xaxis=value_axis(
            math.log10(low) - 0.03 * span,
            math.log10(high) + 0.4 * span,  # room for the last count
            "Measured over estimated step time (log scale)",
            type="log",
            tickvals=ticks,
            ticktext=[f"{tick:g}{NBSP}×" for tick in ticks],
        ),
        yaxis=row_axis([plain(name) for name in patterns["pattern"]], theme),
    )
    return figure


def _pattern_hover(row: dict[str, Any]) -> str:
    return "<br>".join(
        [
            f"<b>{plain(row['pattern'])}</b>, {count(row['runs'], 'run')}",
            f"median {times(row['time_ratio'])}",
            f"10th to 90th percentile {times(row['time_ratio_p10'])} to {times(row['time_ratio_p90'])}",
            f"{number(row['penalised'])} more than {PENALISED_RATIO:g}{NBSP}× slower than estimated",
        ]
    )


def draw_waterfall(losses: Sequence[Loss], end: float, theme: Theme, *, name: str = "Measured MFU") -> go.Figure:
    """From 100 % of peak down to `end`, which `name` names; what the estimate does not account for is hatched."""
    figure, layer = go.Figure(), Layer()
    _bar(figure, 0, (0.0, 1.0), theme.hatch)
    _label(layer, 100.0, 0, f"100{NBSP}%", theme, is_inside=True)
    for position, loss in enumerate(losses, start=1):
        after = loss.before - loss.share
        left = min(loss.before, after)
        pattern = hatching(theme)
        _bar(figure, position, (left, abs(loss.share)), theme.axis, pattern if loss.name == UNEXPLAINED else None)
        level = 100 * loss.before
        layer.add_shape(**segment((level, position - 1), (level, position), theme.rule, layer="below"))
        text = points(-loss.share)
        _label(layer, 100 * left, position, text.replace("0.0", "0") if abs(loss.share) < 5e-4 else text, theme)
    last = len(losses) + 1
    _bar(figure, last, (0.0, end), theme.accent)
    layer.add_annotation(**beside(100 * end, last, 6), **note(f"<b>{percent(end)}</b>", theme.ink))
    layer.lay_on(figure)
    lowest = min(0.0, *(100 * (loss.before - loss.share) for loss in losses))
    highest = max(100.0, *(100 * loss.before for loss in losses))
    figure.update_layout(
        height=_ROW_HEIGHT * (last + 1) + _AXIS_HEIGHT,
        barmode="overlay",
        xaxis=value_axis(lowest - 9 if lowest < 0 else 0, highest * 1.01, "Share of the measured step time, %"),
        yaxis=row_axis(["Peak", *(loss.name for loss in losses), name], theme),
    )
    return figure


def _bar(
    figure: go.Figure, position: int, span: tuple[float, float], color: str, pattern: dict[str, Any] | None = None
) -> None:
    """A bar from `span[0]` over a length of `span[1]`, as shares."""
    start, length = span
    figure.add_bar(
        x=[100 * length],
        base=[100 * start],
        y=[position],
        orientation="h",
        width=0.66,
        hoverinfo="skip",
        marker={"color": color, "line": {"width": 0}, **({"pattern": pattern} if pattern else {})},
    )


def _label(layer: Layer, x: float, position: int, text: str, theme: Theme, *, is_inside: bool = False) -> None:
    """A figure left of `x`; where the bar begins at the axis, right inside of it."""
    gap = -6 if is_inside or x > 9 else 6
    label = note(text, theme.ink) if is_inside else note(text, theme.soft, page=theme.page)
    layer.add_annotation(**beside(x, position, gap), **label)
