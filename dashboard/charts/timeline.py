"""The chart of a run's timeline: a lane per kind of file, time to the right, shape and colour by grade."""

from __future__ import annotations

import plotly.graph_objects as go

from sweepscope.dashboard.charts.marks import hovering, row_axis
from sweepscope.dashboard.format.entry_kinds import kind_name
from sweepscope.dashboard.format.numbers import plain, shortened
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.view_models.timeline import GRADES, LANES, Point, Timeline

_LANE, _AXIS = 46, 46
_LEVEL = 0.14  # of a lane, between entries that come at once
_LIFT = 0.28  # of a lane, by which the lowest level lies below its middle
_HOVER_CHARS = 110
_SHAPES = {"failure": "x", "warning": "triangle-up", "context": "circle"}


def draw(timeline: Timeline, theme: Theme) -> go.Figure:
    """Entries as marks; hollow where the time is that of another line. Wheel and drag zoom along the time."""
    figure = go.Figure()
    for grade, mark in reversed(GRADES.items()):
        points = [point for point in timeline.points if point.grade == grade]
        if not points:
            continue
        color = getattr(theme, mark.color)
        figure.add_scatter(
            x=[point.at for point in points],
            y=[point.lane + _LIFT - _LEVEL * point.level for point in points],
            mode="markers",
            marker={
                "symbol": [f"{_SHAPES[grade]}{'' if point.entry['is_time_printed'] else '-open'}" for point in points],
                "size": 10 if grade != "context" else 8,
                "color": color,
                "line": {"width": 1.5, "color": color},
            },
            **hovering([_hover(point) for point in points]),
        )
    figure.update_layout(
        height=_LANE * max(len(timeline.lanes), 2) + _AXIS,
        margin={"l": 8, "r": 12, "t": 8, "b": _AXIS},
        dragmode="zoom",
        hoverdistance=20,
        xaxis={"range": [timeline.begin, timeline.end], "showgrid": True, "type": "date", "nticks": 8},
        yaxis={**row_axis([LANES[name] for name in timeline.lanes], theme), "fixedrange": True},
    )
    return figure


def _hover(point: Point) -> str:
    entry = point.entry
    where = ", ".join(
        part for part in (None if entry["rank"] is None else f"rank {entry['rank']}", entry["host"]) if part
    )
    about = "" if entry["is_time_printed"] else " or later: the line has no time of its own"
    text = plain(shortened(str(entry["text"] or ""), _HOVER_CHARS))
    lines = [f"<b>{plain(kind_name(entry['entry_kind']))}</b>{f' · {plain(where)}' if where else ''}", text]
    return "<br>".join([*lines, f"{point.at:%d %b %H:%M:%S}{about}"])
