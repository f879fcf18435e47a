"""Scaling curves: efficiency or MFU over node counts, and the cluster's throughput beside its ideal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log2, log10
from typing import Any

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.line_labels import LABEL_GAP, name_ends, spread
from sweepscope.dashboard.charts.marks import hovering, note
from sweepscope.dashboard.format.numbers import dollars, number, plain, shortened
from sweepscope.dashboard.format.theme import MARKERS, Theme, category_colors
from sweepscope.dashboard.view_models.scaling import COST

HEIGHT = 430


@dataclass(frozen=True)
class End:
    """Where a line ends: at `size`, at `height` on the axis (log10 of it on a log axis), with `value` as text."""

    line: str
    size: int
    height: float
    value: str


_TOP, _BOTTOM = 12, 48


def draw_share(
    points: pl.DataFrame, theme: Theme, *, noun: str, column: str, lines: Sequence[str], hovers: Sequence[str]
) -> go.Figure:
    """`column` ("scaling_efficiency" or "mfu", fractions) in percent per line; 100 % is dotted for efficiency."""
    top = 50.0 if column == "mfu" else 100.0
    highest = points.select(pl.col(column).max() * 100).item()
    top = max(top, 10 * (int((highest or 0) // 10) + 1)) if (highest or 0) > top else top
    ends: list[End] = []
    figure = go.Figure()
    for line, rows, tips in _lines(points, lines, hovers):
        values = [None if value is None else value * 100 for value in rows[column]]
        _add_line(figure, line, rows["size"].to_list(), values, tips=tips, lines=lines, theme=theme)
        if values and values[-1] is not None:
            ends.append(End(line, rows["size"][-1], values[-1], number(values[-1], 1 if column == "mfu" else 0)))
    if column == "scaling_efficiency":
        figure.add_hline(y=100, line={"width": 1, "dash": "dot", "color": theme.axis})
        figure.add_annotation(x=1, xref="paper", xanchor="right", y=100, yanchor="bottom", **note("ideal", theme.mute))
    _layout(figure, points, noun)
    per_pixel = (top * 1.04) / (HEIGHT - _TOP - _BOTTOM)
    figure.update_yaxes(range=[0, top * 1.04], showgrid=True, dtick=10 if top <= 50 else 20)
    _label_ends(figure, ends, lines=lines, theme=theme, gap=LABEL_GAP * per_pixel)
    return figure


def draw_cost(
    points: pl.DataFrame, theme: Theme, *, noun: str, lines: Sequence[str], hovers: Sequence[str]
) -> go.Figure:
    """Dollars per million tokens of each line on log axes, as models differ by orders of magnitude."""
    figure = go.Figure()
    ends: list[End] = []
    for line, rows, tips in _lines(points, lines, hovers):
        values = rows[COST].to_list()
        _add_line(figure, line, rows["size"].to_list(), values, tips=tips, lines=lines, theme=theme)
        if values and values[-1]:
            ends.append(End(line, rows["size"][-1], log10(values[-1]), dollars(values[-1])))
    _layout(figure, points, noun)
    figure.update_layout(margin_r=150)  # names and prices
    known = [value for value in points.filter(pl.col("line").is_in(list(lines)))[COST].drop_nulls() if value > 0]
    if known:
        bottom, top = log10(min(known)) - 0.1, log10(max(known)) + 0.1
        shown = _log_ticks(bottom, top)
        texts = [f"${value:.3g}" for value in shown]
        figure.update_yaxes(type="log", range=[bottom, top], showgrid=True, tickvals=shown, ticktext=texts)
        _label_ends(figure, ends, lines=lines, theme=theme, gap=LABEL_GAP * (top - bottom) / (HEIGHT - _TOP - _BOTTOM))
    return figure


def draw_throughput(
    points: pl.DataFrame, theme: Theme, *, noun: str, lines: Sequence[str], hovers: Sequence[str]
) -> go.Figure:
    """Tokens/s of the whole cluster on log axes, with the ideal of each line dotted in its colour."""
    figure = go.Figure()
    ends: list[End] = []
    colors = category_colors(lines, theme)
    for line, rows, tips in _lines(points, lines, hovers):
        ideal = rows.filter(pl.col("ideal_tokens_per_s").is_not_null())
        figure.add_scatter(
            x=ideal["size"].to_list(),
            y=ideal["ideal_tokens_per_s"].to_list(),
            mode="lines",
            hoverinfo="skip",
            line={"width": 1, "dash": "dot", "color": colors[line]},
        )
        values = rows["tokens_per_s"].to_list()
        _add_line(figure, line, rows["size"].to_list(), values, tips=tips, lines=lines, theme=theme)
        if values and values[-1]:
            ends.append(End(line, rows["size"][-1], log10(values[-1]), ""))
    _layout(figure, points, noun)
    known = points.filter(pl.col("line").is_in(list(lines)))
    low = known["tokens_per_s"].min()
    high = known.select(pl.max_horizontal("tokens_per_s", "ideal_tokens_per_s").max()).item()
    if isinstance(low, float) and high:
        bottom, top = log10(low) - 0.15, log10(high) + 0.1
        shown = _log_ticks(bottom, top)
        texts = [_short(value) for value in shown]
        figure.update_yaxes(type="log", range=[bottom, top], showgrid=True, tickvals=shown, ticktext=texts)
        _label_ends(figure, ends, lines=lines, theme=theme, gap=LABEL_GAP * (top - bottom) / (HEIGHT - _TOP - _BOTTOM))
    return figure


def _lines(
    points: pl.DataFrame, lines: Sequence[str], hovers: Sequence[str]
) -> list[tuple[str, pl.DataFrame, list[str]]]:
    with_tips = points.with_columns(tip=pl.Series(hovers, dtype=pl.String))
    out = []
    for line in lines:
        rows = with_tips.filter(pl.col("line") == line).sort("size")
        out.append((line, rows, rows["tip"].to_list()))
    return out


def _add_line(
    figure: go.Figure,
    line: str,
    nodes: list[int],
    values: list[Any],
    *,
    tips: list[str],
    lines: Sequence[str],
    theme: Theme,
) -> None:
    color = category_colors(lines, theme)[line]
    figure.add_scatter(
        x=nodes,
        y=values,
        mode="lines+markers",
        name=line,
        **hovering(tips),
        line={"width": 2.2, "color": color},
        marker={"size": 8, "symbol": MARKERS[list(lines).index(line) % len(MARKERS)], "color": color},
    )


def _layout(figure: go.Figure, points: pl.DataFrame, noun: str) -> None:
    sizes = sorted(set(points["size"]))
    per_node = points.select((pl.col("num_gpus") / pl.col("num_nodes")).drop_nulls().unique())
    each = f"{number(per_node.item())} GPUs each, " if per_node.height == 1 and noun == "node" else ""
    low, high = (log2(sizes[0]), log2(sizes[-1])) if sizes else (0.0, 1.0)
    room = max((high - low) * 0.04, 0.08)
    figure.update_layout(height=HEIGHT, margin={"l": 8, "r": 118, "t": _TOP, "b": _BOTTOM}, hovermode="closest")
    figure.update_xaxes(
        type="log",
        range=[(low - room) * log10(2), (high + room) * log10(2)],
        tickvals=sizes,
        ticktext=[number(size) for size in sizes],
        title_text=f"{noun[:1].upper()}{noun[1:]}s ({each}log scale)",
    )


_STEPS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0))
"""Ticks within a power of ten, coarse to fine."""
_LEAST_TICKS = 3


def _log_ticks(bottom: float, top: float) -> list[float]:
    """Round values between two log10, as few as leave a reader enough to place a point by.

    >>> _log_ticks(3.9, 6.1), _log_ticks(5.1, 6.0)
    ([10000.0, 100000.0, 1000000.0], [200000.0, 500000.0, 1000000.0])
    """
    powers = [10.0**power for power in range(floor(bottom), ceil(top) + 1)]
    for steps in _STEPS:
        ticks = [step * power for power in powers for step in steps if bottom <= log10(step * power) <= top]
        if len(ticks) >= _LEAST_TICKS:
            return ticks
    low, high = 10**bottom, 10**top
    step = 10.0 ** floor(log10((high - low) / _LEAST_TICKS))
    step *= max(1, ceil((high - low) / step / (2 * _LEAST_TICKS)))
    return [step * place for place in range(ceil(low / step), floor(high / step) + 1)]


def _short(value: float) -> str:
    """A large round number in few letters.

    >>> _short(1e4), _short(1.5e6), _short(100)
    ('10 k', '1.5 M', '100')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return number(value)


def _label_ends(figure: go.Figure, ends: list[End], *, lines: Sequence[str], theme: Theme, gap: float) -> None:
    """Names each line at the right edge in its own colour, with its last value.

    Where a line ends before the edge, its label says at which size, and a thin line leads from its last point to it.
    """
    colors = category_colors(lines, theme)
    heights = spread([end.height for end in ends], gap)
    largest = max((end.size for end in ends), default=0)
    labels = []
    for end, height in zip(ends, heights, strict=True):
        at = "" if end.size == largest else f" at {number(end.size)}"
        labels.append((height, f"<b>{plain(shortened(end.line, 14))}</b>  {end.value}{at}", colors[end.line]))
        if at:
            to_edge = {"width": 1, "dash": "dash", "color": colors[end.line]}
            # unlike annotations and ranges, shapes take plain values on a log axis
            edge = 10 ** figure.layout.xaxis.range[1]
            begin, until = (10**y if figure.layout.yaxis.type == "log" else y for y in (end.height, height))
            figure.add_shape(type="line", x0=end.size, y0=begin, x1=edge, y1=until, layer="below", line=to_edge)
    name_ends(figure, labels, size=13)
