"""Charts of the page on failures: endings as stacked bars, failure rates as dots with intervals, GPU-hours as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.layer import Layer
from sweepscope.dashboard.charts.marks import hovering, note, row_axis, segment, value_axis
from sweepscope.dashboard.format.numbers import number, part_of, percent, plain, shortened
from sweepscope.dashboard.format.symbols import OUTCOME
from sweepscope.dashboard.format.theme import Theme, text_on
from sweepscope.dashboard.view_models.failures import Pattern, hours_figure

_ROW_HEIGHT = 30
_MARGINS = 16  # px above and below the bars, without which one bar alone would be a hairline
_AXIS_HEIGHT = 48
_MAX_LABEL = 30
_RATE_AXIS_START = -2  # a dot at 0 % is whole
_RATE_AXIS_END = 136  # room for the counts right of 100 %
_MIN_LABELLED = 0.055  # share of the longest bar from which a segment holds its number
_SEGMENTS = tuple(name for name in OUTCOME if name != "running")


def draw_endings(rows: pl.DataFrame, labels: Sequence[str], hovers: Sequence[str], theme: Theme) -> go.Figure:
    """One bar per row of `failures.endings_by`, cut by how its runs ended: completed first, then the failures."""
    figure, layer = go.Figure(), Layer()
    longest = int(rows["runs_tried"].max() or 1)  # type: ignore[arg-type]  # polars types max() for any dtype
    base = [0] * rows.height
    for name in _SEGMENTS:
        counts = rows[name].to_list()
        # a bar of no length is an element that nobody sees
        seen = [position for position, count in enumerate(counts) if count]
        if not seen:
            continue
        mark = OUTCOME[name]
        color = getattr(theme, mark.color)
        figure.add_bar(
            x=[counts[position] for position in seen],
            y=seen,
            base=[base[position] for position in seen],
            orientation="h",
            width=0.72,
            **hovering([hovers[position] for position in seen]),
            marker={"color": color, "line": {"width": 0}, "pattern": _hatching(mark.hatch, theme)},
        )
        for position in seen:
            start, count = base[position], counts[position]
            if count / longest >= _MIN_LABELLED:
                text = note(f"{mark.symbol} {number(count)}", text_on(color), page=color if mark.hatch else None)
                layer.add_annotation(x=start + count / 2, y=position, **text)
        base = [start + count for start, count in zip(base, counts, strict=True)]
    layer.lay_on(figure)
    figure.update_layout(
        barmode="overlay",
        height=_ROW_HEIGHT * max(rows.height, 1) + _AXIS_HEIGHT,
        margin={"t": 8, "b": _AXIS_HEIGHT},
        xaxis=value_axis(0, longest * 1.02, "Run attempts", tickformat=",d", nticks=min(longest + 1, 8)),
        yaxis=row_axis([plain(shortened(label, _MAX_LABEL)) for label in labels], theme),
    )
    return figure


def draw_patterns(patterns: Sequence[Pattern], overall: float, theme: Theme) -> go.Figure:
    """Failure rate of each pattern with its 95 % interval; filled where all of it is above the overall rate."""
    figure, layer = go.Figure(), Layer()
    figure.add_vline(x=100 * overall, line={"width": 1, "dash": "dot", "color": theme.axis})
    colors = [theme.failed if pattern.is_above else theme.soft for pattern in patterns]
    fills = [theme.failed if pattern.is_above else theme.page for pattern in patterns]
    for position, (pattern, color) in enumerate(zip(patterns, colors, strict=True)):
        layer.add_shape(**segment((100 * pattern.low, position), (100 * pattern.high, position), color, width=2))
        text = note(f"{number(pattern.failed)} of {number(pattern.judged)}", theme.mute, page=theme.page)
        layer.add_annotation(x=_RATE_AXIS_END, y=position, xanchor="right", **text)
    layer.lay_on(figure)
    figure.add_scatter(
        x=[100 * pattern.rate for pattern in patterns],
        y=list(range(len(patterns))),
        mode="markers",
        **hovering([_pattern_hover(pattern) for pattern in patterns]),
        marker={"size": 10, "color": fills, "line": {"width": 2, "color": colors}},
    )
    figure.update_layout(
        height=_ROW_HEIGHT * max(len(patterns), 1) + _AXIS_HEIGHT,
        hoverdistance=30,
        xaxis=value_axis(
            _RATE_AXIS_START, _RATE_AXIS_END, "Failure rate, %; dotted line: all runs", tickvals=list(range(0, 101, 20))
        ),
        yaxis=row_axis([plain(shortened(pattern.name, _MAX_LABEL)) for pattern in patterns], theme),
    )
    return figure


def _pattern_hover(pattern: Pattern) -> str:
    return (
        f"<b>{plain(pattern.name)}</b><br>{number(pattern.failed)} of {number(pattern.judged)} failed: "
        f"{percent(pattern.rate, 0)}<br>95 % interval {percent(pattern.low, 0)} to {percent(pattern.high, 0)}"
    )


def draw_hours(endings: Sequence[Mapping[str, Any]], theme: Theme) -> go.Figure:
    """GPU-hours by ending, one zero-based bar each, with their share of what is known."""
    known = sum(row["gpu_hours"] or 0 for row in endings)
    longest = max((row["gpu_hours"] or 0 for row in endings), default=0) or 1
    marks = [OUTCOME[row["outcome"]] for row in endings]
    figure, layer = go.Figure(), Layer()
    figure.add_bar(
        x=[row["gpu_hours"] or 0 for row in endings],
        y=list(range(len(endings))),
        orientation="h",
        width=0.6,
        hoverinfo="skip",
        marker={
            "color": [getattr(theme, mark.color) for mark in marks],
            "line": {"width": 0},
            "pattern": _hatching([mark.hatch for mark in marks], theme),
        },
    )
    for position, row in enumerate(endings):
        # not as the bar's own text, which is shrunk to fit what is left of the plot
        text = note(_hours_text(row, known), theme.soft)
        layer.add_annotation(x=row["gpu_hours"] or 0, y=position, xanchor="left", xshift=4, **text)
    layer.lay_on(figure)
    figure.update_layout(
        height=_ROW_HEIGHT * max(len(endings), 1) + _MARGINS,
        xaxis={"range": [0, longest * 2.6], "visible": False},
        yaxis=row_axis([plain(OUTCOME[row["outcome"]].text) for row in endings], theme),
    )
    return figure


def _hours_text(row: Mapping[str, Any], known: float) -> str:
    """GPU-hours of an ending, their share of what is known of all, and of how many of its runs they are unknown."""
    hours, without = row["gpu_hours"], row["runs_without_gpu_hours"]
    if hours is None:
        return f"unknown for all {number(row['runs'])}"
    share = f" · {part_of(hours / known)}" if known else ""
    unknown = f" · unknown for {number(without)} of {number(row['runs'])}" if without else ""
    return f"<b>{hours_figure(hours)}</b>{share}{unknown}"


def _hatching(shape: str | Sequence[str], theme: Theme) -> dict[str, Any]:
    """Hatch lines in the page's colour over the bars' own; their shape, or one per bar."""
    return {"shape": shape, "fillmode": "overlay", "fgcolor": theme.page, "size": 6, "solidity": 0.25}
