"""Dot plot of utilisation: one row per published configuration, this store's best as diamonds."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from sweepscope.dashboard.charts.marks import beside, hovering, note, segment
from sweepscope.dashboard.format.numbers import NBSP, number, percent, plain, shortened
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.view_models.frontier import Dot

_ROW_HEIGHT = 24
_DENSE_ROW_HEIGHT = 20  # past this many rows the chart would leave the first screen
_DENSE_FROM = 26
_AXIS_HEIGHT = 46
_LEAST_HEIGHT = 116  # below that a few rows leave the axis no room
_HFU_SPAN = 0.08  # of the axis's 0 to 1 that "HFU 43.3" covers on a narrow plot
_LABEL_SPAN = 0.05  # of MFU that a value beside its dot covers


def draw(dots: Sequence[Dot], theme: Theme, *, width: str = "wide") -> go.Figure:
    """Rows from the highest value down, on one axis in percent of peak. `dots` come lowest first.

    The reason of a hollow dot is written beside it; where the window's `width` is "medium" or "narrow" it would be cut
    there, and is written after or below the name.
    """
    figure = go.Figure()
    high = _axis_end(dots)
    for row, dot in enumerate(dots):
        if dot.mfu is not None and dot.hfu is not None:
            figure.add_shape(**segment((100 * dot.mfu, row), (100 * dot.hfu, row), theme.axis, layer="between"))
        if _has_tick(dot):
            _draw_ceiling(figure, row, dot, theme)
        if dot.hfu is not None:
            _draw_hfu(figure, row, dot, theme, side="right" if width == "narrow" else _hfu_side(dot))
        if dot.mfu is not None:
            _draw_mfu(figure, row, dot, theme, at=100 * dot.mfu / high, has_reason=width == "wide")
    _draw_best_line(figure, dots, theme)
    row_height = _ROW_HEIGHT if len(dots) < _DENSE_FROM else _DENSE_ROW_HEIGHT
    figure.update_layout(
        height=max(row_height * len(dots) + _AXIS_HEIGHT, _LEAST_HEIGHT),
        hoverdistance=30,
        xaxis={"range": [0, high], "title": {"text": "Utilisation, % of peak"}, "dtick": 10, "side": "bottom"},
        yaxis={
            "range": [-0.6, len(dots) - 0.4],
            "showgrid": True,
            "tickvals": list(range(len(dots))),
            "ticktext": [_row_label(dot, theme, width) for dot in dots],
            "tickfont": {"size": 13, "color": theme.ink},
        },
    )
    return figure


def _has_tick(dot: Dot) -> bool:
    """Whether the tick of the estimate is comparable with the figure."""
    return dot.ceiling is not None and dot.kind != "other"


def _axis_end(dots: Sequence[Dot]) -> float:
    """In percent. The axis begins at 0: a dot's position shows how large its share is, not only which is larger."""
    values = [
        100 * value
        for dot in dots
        for value in (dot.mfu, dot.hfu, dot.ceiling if dot.kind != "other" else None)
        if value is not None
    ]
    return -(-(max(values) + 4) // 5) * 5


_BEFORE_REASON = {"medium": "·  ", "narrow": "<br>"}


def _row_label(dot: Dot, theme: Theme, width: str) -> str:
    name = plain(dot.name)
    name = f"<b>{name}</b>" if dot.kind == "own" else name
    small = f"<span style='font-size:11.5px;color:{theme.mute}'>"
    is_here = width in _BEFORE_REASON and dot.reason
    reason = f"{_BEFORE_REASON[width]}{small}{plain(dot.reason or '')}</span>" if is_here else ""
    return f"{name}  {small}{plain(dot.hardware)}</span>  {reason}"


def _hover(dot: Dot) -> str:
    figures = [f"MFU {percent(dot.mfu)}"] if dot.mfu is not None else []
    figures += [f"HFU {percent(dot.hfu)}"] if dot.hfu is not None else []
    lines = [f"<b>{plain(dot.name)}</b> on {plain(dot.hardware)}", " · ".join(figures)]
    if dot.reason:
        lines.append(f"not comparable: {plain(dot.reason)}")
    if dot.printed:
        lines.append(f"its log prints {plain(dot.printed)}")
    if dot.source:
        lines.append(plain(shortened(dot.source, 80)))
    return "<br>".join(lines)


def _draw_mfu(figure: go.Figure, row: int, dot: Dot, theme: Theme, *, at: float, has_reason: bool) -> None:
    """The dot of an MFU with its value beside it. `at` is its position on the axis, 0 to 1."""
    is_own, is_filled = dot.kind == "own", dot.kind != "other"
    color = theme.completed if is_own else theme.categories[0]
    value = 100 * (dot.mfu or 0)
    figure.add_scatter(
        x=[value],
        y=[row],
        mode="markers",
        **hovering([_hover(dot)]),
        marker={
            "symbol": "diamond" if is_own else "circle",
            "size": 13 if is_own else 10,
            # hollow means page-coloured, so that the grid line does not run through
            "color": color if is_filled else theme.page,
            "line": {"width": 2, "color": color},
        },
    )
    side = _label_side(dot, at)
    text = _mfu_label(dot, side, theme, has_reason=has_reason)
    _label(figure, (value, row), text, side=side, color=theme.ink, page=theme.page)


def _label_side(dot: Dot, at: float) -> str:
    """Values are left of their dot, reasons right, unless an edge, a tick or a square needs that side."""
    if dot.kind != "other":
        is_tick_there = dot.ceiling is not None and 0 < (dot.mfu or 0) - dot.ceiling < _LABEL_SPAN
        return "right" if at < 0.06 or is_tick_there else "left"
    return "left" if at > 0.72 or (dot.hfu is not None and at > 0.3) else "right"


def _mfu_label(dot: Dot, side: str, theme: Theme, *, has_reason: bool) -> str:
    value = number(100 * (dot.mfu or 0), 1)
    if dot.kind != "other":
        return f"<b>{value}</b>"
    if not has_reason:
        return value
    reason = f"<span style='color:{theme.mute}'>{plain(dot.reason or '')}</span>"
    return f"{reason}{NBSP}{NBSP}{value}" if side == "left" else f"{value}{NBSP}{NBSP}{reason}"


def _draw_ceiling(figure: go.Figure, row: int, dot: Dot, theme: Theme) -> None:
    """A tick across the row: no figure of the source, so it has neither the form nor the colour of one."""
    hover = f"<b>Estimate: at most {percent(dot.ceiling)} MFU</b><br>{plain(dot.ceiling_layout or '')}"
    figure.add_scatter(
        x=[100 * (dot.ceiling or 0)],
        y=[row],
        mode="markers",
        **hovering([hover]),
        marker={"symbol": "line-ns", "size": 16, "line": {"width": 2, "color": theme.soft}},
    )


def _draw_hfu(figure: go.Figure, row: int, dot: Dot, theme: Theme, *, side: str) -> None:
    value = 100 * (dot.hfu or 0)
    figure.add_scatter(
        x=[value],
        y=[row],
        mode="markers",
        **hovering([_hover(dot)]),
        marker={"symbol": "square", "size": 10, "color": theme.page, "line": {"width": 2, "color": theme.mute}},
    )
    _label(figure, (value, row), f"HFU {number(value, 1)}", side=side, color=theme.mute, page=theme.page)
    if dot.mfu is None:
        _label(figure, (value, row), "no MFU published", side="left", color=theme.mute, page=theme.page)


def _hfu_side(dot: Dot) -> str:
    """Right of its square, unless that would hide the tick and the line to its MFU is long enough to write on."""
    if not _has_tick(dot) or dot.mfu is None or dot.hfu is None or dot.ceiling is None:
        return "right"
    return "left" if 0 < dot.ceiling - dot.hfu < _HFU_SPAN < dot.hfu - dot.mfu else "right"


def _label(figure: go.Figure, at: tuple[float, int], text: str, *, side: str, color: str, page: str) -> None:
    figure.add_annotation(**beside(*at, -10 if side == "left" else 10), **note(text, color, page=page))


def _draw_best_line(figure: go.Figure, dots: Sequence[Dot], theme: Theme) -> None:
    best = max((dot.mfu for dot in dots if dot.kind == "own" and dot.mfu is not None), default=None)
    if best is not None:
        dotted = {"color": theme.completed, "width": 1, "dash": "dot"}
        x = 100 * best
        figure.add_shape(type="line", xref="x", yref="paper", x0=x, x1=x, y0=0, y1=1, layer="below", line=dotted)
