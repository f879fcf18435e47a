"""Charts of the page on a snapshot: levels over the record, the stack of categories, the flame graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.line_labels import LABEL_GAP, name_ends, within
from sweepscope.dashboard.charts.marks import hovering
from sweepscope.dashboard.format.numbers import GIB, memory, number, percent, plain, shortened
from sweepscope.dashboard.format.theme import Theme, category_colors, text_on
from sweepscope.dashboard.view_models.snapshot import CATEGORIES, Node, category_name, short_frame

HEIGHT = 250
_AXIS = 44
_FLAME_HEIGHT = 380
_ROOM = 1.06
_MAX_LABEL = 34
_CURVES = (
    ("reserved_bytes", "reserved", "axis", 1.6),
    ("requested_active_bytes", "active", "ink", 1.6),
    ("allocated_bytes", "allocated", "ink", 1.6),
    ("requested_allocated_bytes", "allocated", "accent", 2.0),
)


def draw_timeline(rows: pl.DataFrame, point: int | None, span: tuple[int, int], theme: Theme) -> go.Figure:
    """Reserved, active and allocated bytes after so many events; a line where the chosen instant is."""
    figure = go.Figure()
    tops = rows.select(column for column, *_ in _CURVES).max().row(0)
    highest = max((float(top) for top in tops if top is not None), default=1.0)
    unit, name_of_unit = _unit(highest)
    hovers = [_point_hover(row) for row in rows.iter_rows(named=True)]
    drawn: list[tuple[str, str, float]] = []
    for column, name, color, width in _CURVES:
        values = rows[column]
        if not values.count() or name in (known for known, _, _ in drawn):
            continue
        if name == "active" and values.equals(rows["requested_allocated_bytes"]):
            continue  # nothing was ever pending: the two are one curve
        shown = getattr(theme, color)
        figure.add_scatter(
            x=rows["point"].to_list(),
            y=[None if size is None else size / unit for size in values],
            mode="lines",
            line={"shape": "hv", "width": width, "color": shown},
            hovertext=hovers,
            hovertemplate="%{hovertext}<extra></extra>" if not drawn else None,
            hoverinfo=None if not drawn else "skip",
        )
        drawn.append((name, shown, float(values.drop_nulls()[-1]) / unit))
    _ends(figure, drawn, highest / unit, theme)
    _layout(figure, span, highest / unit, title=name_of_unit)
    _mark(figure, point, theme)
    return figure


def draw_categories(
    points: Sequence[int], levels: Mapping[str, Sequence[int]], point: int | None, span: tuple[int, int], theme: Theme
) -> go.Figure:
    """Stacked levels of the categories over the events."""
    figure = go.Figure()
    colors = colors_of(theme)
    highest = max((sum(values) for values in zip(*levels.values(), strict=True)), default=0)
    unit, name_of_unit = _unit(highest)
    for name in (name for name in CATEGORIES if name in levels):
        figure.add_scatter(
            x=list(points),
            y=[size / unit for size in levels[name]],
            mode="lines",
            stackgroup="alive",
            hoverinfo="skip",
            line={"shape": "hv", "width": 0, "color": colors[name]},
            fillcolor=colors[name],
        )
    _layout(figure, span, highest / unit, title=name_of_unit)
    figure.update_xaxes(title_text="Events since the record began")
    _mark(figure, point, theme)
    return figure


def colors_of(theme: Theme) -> dict[str, str]:
    """Colour of each category: the first six have one, the rest is grey."""
    return category_colors(list(CATEGORIES), theme)


def draw_flame(nodes: Sequence[Node], theme: Theme) -> go.Figure:
    """Icicle of what was alive: category on top, then frames from the outer to the inner; a click opens a branch."""
    colors = [theme.surface if not node.parent else colors_of(theme)[node.category] for node in nodes]
    text_colors = [text_on(color) if node.parent else theme.ink for node, color in zip(nodes, colors, strict=True)]
    whole = nodes[0].bytes if nodes else 1
    hovers = [
        f"<b>{plain(_name(node, is_whole=True))}</b><br>"
        f"{memory(node.bytes)}, {percent(node.bytes / whole)} of what was alive"
        for node in nodes
    ]
    figure = go.Figure(
        go.Icicle(
            ids=[node.id for node in nodes],
            parents=[node.parent for node in nodes],
            labels=[plain(shortened(_name(node), _MAX_LABEL)) for node in nodes],
            values=[node.bytes for node in nodes],
            branchvalues="total",
            sort=False,
            leaf={"opacity": 1},
            tiling={"orientation": "v"},
            pathbar={"visible": False},
            marker={"colors": colors, "line": {"width": 1, "color": theme.page}},
            textfont={"size": 12, "color": text_colors},
            **hovering(hovers),
        )
    )
    # Text that would have to shrink is left out: the hover has it.
    figure.update_layout(
        height=_FLAME_HEIGHT, margin={"l": 0, "r": 0, "t": 4, "b": 4}, uniformtext={"minsize": 11, "mode": "hide"}
    )
    return figure


def _layout(figure: go.Figure, span: tuple[int, int], highest: float, *, title: str) -> None:
    # Dragging zooms the events; the slider above does the same from the keyboard.
    figure.update_layout(
        height=HEIGHT,
        hovermode="x",
        dragmode="zoom",
        margin={"l": 8, "r": 84, "t": 6, "b": _AXIS},
        xaxis={"range": list(span), "tickformat": ",d", "fixedrange": False, "nticks": 8},
        yaxis={"range": [0, highest * _ROOM or 1], "showgrid": True, "title": {"text": title}},
    )


def _ends(figure: go.Figure, curves: Sequence[tuple[str, str, float]], highest: float, theme: Theme) -> None:
    """Names at the right end, pushed apart."""
    ordered = sorted(curves, key=lambda curve: curve[2])
    top = highest * _ROOM or 1
    heights = within([level for _, _, level in ordered], LABEL_GAP * top / (HEIGHT - _AXIS), top)
    labels = [
        (height, f"<b>{name}</b>", theme.soft if color == theme.axis else color)
        for (name, color, _), height in zip(ordered, heights, strict=True)
    ]
    name_ends(figure, labels)


def _name(node: Node, *, is_whole: bool = False) -> str:
    """What a rectangle is called: a category by its name, a frame without its directories unless `is_whole`."""
    if node.is_category:
        return category_name(node.label)
    return node.label if is_whole else short_frame(node.label)


def _unit(highest: float) -> tuple[int, str]:
    """The unit in which a curve is drawn."""
    return (GIB, "GiB") if highest >= GIB / 2 else (1 << 20, "MiB")


def _mark(figure: go.Figure, point: int | None, theme: Theme) -> None:
    if point is not None:
        figure.add_vline(x=point, line={"width": 1.5, "dash": "dot", "color": theme.ink})


def _point_hover(row: Mapping[str, object]) -> str:
    lines = [f"<b>after {number(row['point'])} events</b>"]  # type: ignore[arg-type]  # an integer column
    levels = (
        ("allocated", "requested_allocated_bytes"),
        ("allocated", "allocated_bytes"),
        ("active", "requested_active_bytes"),
        ("reserved", "reserved_bytes"),
    )
    lines += [f"{word} {memory(size)}" for word, column in levels if isinstance(size := row[column], int)]
    if row["phase"]:
        lines.append(plain(str(row["phase"])))
    return "<br>".join(lines)
