"""The picture of one communicator: hosts as discs, ranks on them, links coloured and dashed by transport."""

from __future__ import annotations

import math
from collections.abc import Sequence

import plotly.graph_objects as go

from sweepscope.dashboard.charts.marks import hovering, note
from sweepscope.dashboard.format.numbers import plain, shortened
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.view_models.topology import DASH, TRANSPORT
from sweepscope.dashboard.view_models.topology_picture import Edge, Picture

_WIDTH = 640  # about that of its column, in pixels
_MOST_HEIGHT, _LEAST_HEIGHT = 620, 230
_ASIDE = 0.38  # of the way from the middle: from there on a point is left or right, above or below
_MAX_ARROWS = 200
_NAMED_HOSTS = 40


def draw_topology(found: Picture, theme: Theme) -> go.Figure:
    """Links under the nodes; arrows where a ring or tree is shown."""
    figure = go.Figure()
    for name, (x, y), radius in found.hosts:
        figure.add_shape(
            type="circle",
            x0=x - radius,
            x1=x + radius,
            y0=y - radius,
            y1=y + radius,
            layer="below",
            fillcolor=theme.cell,
            line={"width": 1, "color": theme.rule},
        )
        label = note(f"<b>{plain(shortened(name, 22, keeps_end=True))}</b>", theme.soft)
        figure.add_annotation(x=x, y=y + radius, yanchor="top", yshift=-2, **label)
    for kind, mark in TRANSPORT.items():
        edges = [edge for edge in found.edges if edge.kind == kind]
        if edges:
            _draw_edges(figure, edges, getattr(theme, mark.color), DASH.get(kind, "solid"), is_wide=found.is_by_host)
    if found.is_directed and len(found.edges) <= _MAX_ARROWS:
        _draw_arrows(figure, found, theme)
    is_named = not found.is_by_host or len(found.nodes) <= _NAMED_HOSTS
    size = 24 if not found.is_by_host else 18 if is_named else 12
    figure.add_scatter(
        x=[node.point[0] for node in found.nodes],
        y=[node.point[1] for node in found.nodes],
        mode="markers+text" if is_named else "markers",
        text=[plain(shortened(node.name, 14, keeps_end=True)) for node in found.nodes],
        textfont={"size": 12, "color": theme.ink},
        textposition=_outwards([node.point for node in found.nodes]) if found.is_by_host else "middle center",
        marker={
            "symbol": "circle" if not found.is_by_host else "square",
            "size": size,
            "color": theme.page,
            "opacity": 1,
            "line": {"width": 1.5, "color": theme.axis},
        },
        **hovering([plain(node.hover) for node in found.nodes]),
    )
    xs = [node.point[0] for node in found.nodes] + [x for _, (x, _), _ in found.hosts]
    ys = [node.point[1] for node in found.nodes] + [y for _, (_, y), _ in found.hosts]
    room = 1.2
    wide, high = max(xs) - min(xs) + 2 * room, max(ys) - min(ys) + 2 * room
    figure.update_layout(
        height=int(min(max(_WIDTH * high / wide, _LEAST_HEIGHT), _MOST_HEIGHT)),
        margin={"l": 4, "r": 4, "t": 4, "b": 4},
        hoverdistance=20,
        xaxis={"range": [min(xs) - room, max(xs) + room], "visible": False},
        yaxis={"range": [max(ys) + room + 0.15, min(ys) - room], "visible": False, "scaleanchor": "x"},
    )
    return figure


def _outwards(positions: Sequence[tuple[float, float]]) -> list[str]:
    """Position of the name of each point: away from the middle, where the lines run. y grows downwards.

    >>> _outwards([(0, 0), (2, 0), (1, 1), (1, -1)])
    ['middle left', 'middle right', 'bottom center', 'top center']
    """
    middle_x, middle_y = (sum(axis) / len(positions) for axis in zip(*positions, strict=True))
    reach = max(math.hypot(x - middle_x, y - middle_y) for x, y in positions) or 1.0
    found = []
    for x, y in positions:
        across, down = (x - middle_x) / reach, (y - middle_y) / reach
        row = "top" if down < -_ASIDE else "bottom" if down > _ASIDE else "middle"
        column = "left" if across < -_ASIDE else "right" if across > _ASIDE else "center"
        found.append("bottom center" if (row, column) == ("middle", "center") else f"{row} {column}")
    return found


def _draw_edges(figure: go.Figure, edges: Sequence[Edge], color: str, dash: str, *, is_wide: bool) -> None:
    """All edges of a kind as one line with gaps, and a point in the middle of each for its hover."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for edge in edges:
        xs += [edge.start[0], edge.end[0], None]
        ys += [edge.start[1], edge.end[1], None]
    width = 2.5 if is_wide else 2
    figure.add_scatter(x=xs, y=ys, mode="lines", line={"width": width, "color": color, "dash": dash}, hoverinfo="skip")
    figure.add_scatter(
        x=[(edge.start[0] + edge.end[0]) / 2 for edge in edges],
        y=[(edge.start[1] + edge.end[1]) / 2 for edge in edges],
        mode="markers",
        marker={"size": 9, "opacity": 0, "color": color},
        **hovering([plain(edge.hover) for edge in edges]),
    )


def _draw_arrows(figure: go.Figure, found: Picture, theme: Theme) -> None:
    """An arrow head on each edge, short of the node that it points at."""
    for edge in found.edges:
        (x0, y0), (x1, y1) = edge.start, edge.end
        length = math.hypot(x1 - x0, y1 - y0)
        if not length:
            continue
        back = max(length - 0.24, length * 0.6) / length
        figure.add_annotation(
            x=x0 + (x1 - x0) * back,
            y=y0 + (y1 - y0) * back,
            ax=x0 + (x1 - x0) * back * 0.9,
            ay=y0 + (y1 - y0) * back * 0.9,
            xref="x",
            yref="y",
            axref="x",
            ayref="y",
            text="",
            showarrow=True,
            arrowhead=2,
            arrowsize=1.1,
            arrowwidth=2,
            arrowcolor=getattr(theme, TRANSPORT[edge.kind].color),
        )
