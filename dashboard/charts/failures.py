"""Charts of the page on failures: endings as stacked bars, failure rates as dots with intervals, GPU-hours as bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.marks import beside, hovering, note, row_axis, segment, value_axis
from sweepscope.dashboard.format.numbers import number, part_of, percent, plain, shortened
from sweepscope.dashboard.format.symbols import OUTCOME, Mark
from sweepscope.dashboard.format.theme import Theme, text_on
from sweepscope.dashboard.view_models.failures import Pattern, hours_figure

_ROW_HEIGHT = 30
_MARGINS = 16  # px above and below the bars, without which one bar alone would be a hairline
_AXIS_HEIGHT = 48
_MAX_LABEL = 30
_RATE_AXIS_END = 136  # room for the counts right of 100 %
_MIN_LABELLED = 0.055  # share of the longest bar from which a segment holds its number
_SEGMENTS = tuple(name for name in OUTCOME if name != "running")


def draw_endings(rows: pl.DataFrame, labels: Sequence[str], hovers: Sequence[str], theme: Theme) -> go.Figure:
    """One bar per row of `failures.endings_by`, cut by how its runs ended: completed first, then the failures."""
    figure = go.Figure()
    longest = int(rows["runs_tried"].max() or 1)  # type: ignore[arg-type]  # polars types max() for any dtype
    positions = list(range(rows.height))
    base = [0] * rows.height
    for name in _SEGMENTS:
        counts = rows[name].to_list()
        mark = OUTCOME[name]
        color = getattr(theme, mark.color)
        figure.add_bar(
            x=counts,
            y=positions,
            base=list(base),
            orientation="h",
            width=0.72,
            **hovering(hovers),
            marker={"color": color, "line": {"width": 0}, "pattern": _hatch(mark, theme)},
        )
        for position, (start, count) in enumerate(zip(base, counts, strict=True)):
            if count / longest >= _MIN_LABELLED:
                text = note(f"{mark.symbol} {number(count)}", text_on(color), page=color if mark.hatch else None)
                figure.add_annotation(x=start + count / 2, y=position, **text)
        base = [start + count for start, count in zip(base, counts, strict=True)]
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
    figure = go.Figure()
    figure.add_vline(x=100 * overall, line={"width": 1, "dash": "dot", "color": theme.axis})
    for position, pattern in enumerate(patterns):
        color = theme.failed if pattern.is_above else theme.soft
        figure.add_shape(**segment((100 * pattern.low, position), (100 * pattern.high, position), color, width=2))
        fill = color if pattern.is_above else theme.page
        figure.add_scatter(
            x=[100 * pattern.rate],
            y=[position],
            mode="markers",
            **hovering([_pattern_hover(pattern)]),
            marker={"size": 10, "color": fill, "line": {"width": 2, "color": color}},
        )
        text = note(f"{number(pattern.failed)} of {number(pattern.judged)}", theme.mute, page=theme.page)
        figure.add_annotation(x=_RATE_AXIS_END, y=position, xanchor="right", **text)
    figure.update_layout(
        height=_ROW_HEIGHT * max(len(patterns), 1) + _AXIS_HEIGHT,
        hoverdistance=30,
        xaxis=value_axis(0, _RATE_AXIS_END, "Failure rate, %; dotted line: all runs", tickvals=list(range(0, 101, 20))),
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
    figure = go.Figure()
    for position, row in enumerate(endings):
        mark, hours = OUTCOME[row["outcome"]], row["gpu_hours"]
        figure.add_bar(
            x=[hours or 0],
            y=[position],
            orientation="h",
            width=0.6,
            hoverinfo="skip",
            marker={"color": getattr(theme, mark.color), "line": {"width": 0}, "pattern": _hatch(mark, theme)},
        )
        share = f" · {part_of((hours or 0) / known)}" if known and hours is not None else ""
        without = row["runs_without_gpu_hours"]
        unknown = f" · unknown for {number(without)} of {number(row['runs'])}" if without else ""
        known_hours = "" if hours is None else f"<b>{hours_figure(hours)}</b>{share}{unknown}"
        text = known_hours or f"unknown for all {number(row['runs'])}"
        figure.add_annotation(**beside(hours or 0, position, 6), **note(text, theme.soft))
    figure.update_layout(
        height=_ROW_HEIGHT * max(len(endings), 1) + _MARGINS,
        xaxis={"range": [0, longest * 2.2], "visible": False},
        yaxis=row_axis([plain(OUTCOME[row["outcome"]].text) for row in endings], theme),
    )
    return figure


def _hatch(mark: Mark, theme: Theme) -> dict[str, Any]:
    """Hatch lines in the page's colour over the bar's own."""
    return {"shape": mark.hatch, "fillmode": "overlay", "fgcolor": theme.page, "size": 6, "solidity": 0.25}
