"""Charts of measured trade-offs: Pareto front, scatter and box plots, parallel coordinates, one factor at a time."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.marks import beside, hovering, note, row_axis
from sweepscope.dashboard.format.numbers import percent, plain, shortened
from sweepscope.dashboard.format.theme import MARKERS, MFU_SCALE, Theme, category_colors
from sweepscope.dashboard.view_models.tradeoffs import NOT_LOGGED, QUANTITIES, Axis, Change, label

HEIGHT = 460
_ROW, _LEAST_ROWS = 24, 4
_MOST_WHOLE_TICKS = 10
_MOST_COLORS = 6
_OTHERS = "others"


def draw_front(
    points: pl.DataFrame, hovers: Sequence[str], axes: tuple[str, str], named: Sequence[int], theme: Theme
) -> go.Figure:
    """`points` are rows of `view_models.tradeoffs.front`, of which `axes` are gain and spend; the front in accent.

    `named` are the positions of rows whose layout is written beside them.
    """
    gain, spend = axes
    figure = go.Figure()
    xs, ys = (_values(points[name]) for name in (spend, gain))
    is_front = points["is_front"].to_list()
    for on_front in (False, True):
        chosen = [place for place, one in enumerate(is_front) if one == on_front]
        figure.add_scatter(
            x=[xs[place] for place in chosen],
            y=[ys[place] for place in chosen],
            mode="lines+markers" if on_front else "markers",
            line={"width": 1.5, "color": theme.accent, "shape": "hv"},
            marker={"size": 10 if on_front else 7, "color": theme.accent if on_front else theme.hatch},
            customdata=[[points["run_id"][place]] for place in chosen],
            unselected={"marker": {"opacity": 1}},
            **hovering([hovers[place] for place in chosen]),
        )
    for place in named:
        text = plain(shortened(str(points["layout"][place] or "layout unknown").partition(" · ")[0], 22))
        figure.add_annotation(
            **beside(xs[place] or 0.0, ys[place] or 0.0, -8), yshift=10, **note(text, theme.ink, page=theme.page)
        )
    _lay_out(figure, label(spend), label(gain))
    return figure


def draw_free(
    rows: pl.DataFrame, hovers: Sequence[str], axes: tuple[str, str], color: str | None, theme: Theme, *, is_box: bool
) -> go.Figure:
    """The second of `axes` over the first; as boxes with their points where that names categories.

    Rows without one of both are left out; of boxes, those without the second.
    """
    x, y = axes
    figure = go.Figure()
    shown = rows.with_columns(hover=pl.Series(hovers, dtype=pl.String)).drop_nulls([x, y] if not is_box else [y])
    paints = colors(rows, color, theme) if color else {}
    for place, (name, members) in enumerate(_groups(shown, color)):
        paint = paints.get(name, theme.categories[0])
        common = {
            "name": name,
            "customdata": [[run_id] for run_id in members["run_id"]],
            **hovering(members["hover"].to_list()),
        }
        if is_box:
            figure.add_box(
                x=[NOT_LOGGED if value is None else str(value) for value in members[x]],
                y=_values(members[y]),
                boxpoints="all",
                jitter=0.4,
                pointpos=0,
                marker={"size": 5, "color": paint},
                line={"width": 1, "color": paint},
                fillcolor="rgba(0,0,0,0)",
                **common,
            )
        else:
            figure.add_scatter(
                x=_values(members[x]),
                y=_values(members[y]),
                mode="markers",
                marker={"size": 7, "color": paint, "symbol": MARKERS[place % len(MARKERS)]},
                **common,
            )
    _lay_out(figure, label(x), label(y))
    if is_box:
        order = [str(value) for value in shown[x].drop_nulls().unique().sort()]
        order = [*([NOT_LOGGED] if shown[x].null_count() else []), *order]
        figure.update_layout(
            boxmode="group" if color else "overlay",
            xaxis={"type": "category", "categoryorder": "array", "categoryarray": order},
        )
    return figure


def colors(rows: pl.DataFrame, by: str, theme: Theme) -> dict[str, str]:
    """Colour by value of a column, the commonest first; the rest of them is grey."""
    named = [name for name, _ in _groups(rows, by)]
    return {
        **category_colors([name for name in named if name != _OTHERS], theme),
        **dict.fromkeys({*named} & {_OTHERS}, theme.axis),
    }


def _groups(rows: pl.DataFrame, color: str | None) -> list[tuple[str, pl.DataFrame]]:
    """Rows by the values of a column, the commonest five and the rest."""
    if color is None:
        return [("", rows)]
    named = rows.with_columns(group=pl.col(color).cast(pl.String).fill_null(NOT_LOGGED))
    common = named["group"].value_counts(sort=True)["group"].to_list()
    kept = common if len(common) <= _MOST_COLORS else common[: _MOST_COLORS - 1]
    named = named.with_columns(group=pl.when(pl.col("group").is_in(kept)).then("group").otherwise(pl.lit(_OTHERS)))
    return [(name, named.filter(group=name)) for name in [*kept, _OTHERS] if (named["group"] == name).any()]


def draw_parallel(axes: Sequence[Axis], shares: Sequence[float | None], theme: Theme) -> go.Figure:
    """A line per layout through its value on each axis, coloured by MFU as everywhere; drag along an axis to select.

    `shares` are the lines' places on the MFU scale; a line without one is drawn in the darkest colour.
    """
    scale = [[place / (len(MFU_SCALE) - 1), color] for place, color in enumerate(MFU_SCALE)]
    dimensions = []
    for axis in axes:
        dimension: dict[str, object] = {"label": axis.label, "values": list(axis.positions)}
        if axis.ticks:
            low, high = min(axis.ticks), max(axis.ticks)
            dimension |= {"tickvals": list(axis.ticks), "ticktext": list(axis.texts), "range": [low, high]}
        dimensions.append(dimension)
    figure = go.Figure(
        go.Parcoords(
            dimensions=dimensions,
            line={"color": [share or 0.0 for share in shares], "colorscale": scale, "cmin": 0, "cmax": 1},
            labelfont={"size": 13, "color": theme.ink},
            tickfont={"size": 12, "color": theme.ink},
            rangefont={"size": 12, "color": theme.page},
            unselected={"line": {"color": theme.hatch, "opacity": 0.25}},
        )
    )
    figure.update_layout(height=HEIGHT, margin={"l": 48, "r": 56, "t": 44, "b": 24})
    return figure


def draw_one_factor(changes: Sequence[Change], theme: Theme) -> go.Figure:
    """A bar per change, to the right where it is faster than the base and to the left where it is slower."""
    figure = go.Figure()
    names = [f"{label(one.factor)} {one.before} → {one.after}" for one in changes]
    gains = [100 * (one.ratio - 1) for one in changes]
    figure.add_bar(
        x=gains,
        y=list(range(len(changes))),
        orientation="h",
        marker={"color": [theme.accent if gain > 0 else theme.hatch for gain in gains]},
        width=0.62,
        customdata=[[one.run_id] for one in changes],
        **hovering([f"<b>{plain(one.layout)}</b><br>{percent(one.ratio - 1)}" for one in changes]),
    )
    for place, gain in enumerate(gains):
        figure.add_annotation(**beside(max(gain, 0), place, 6), **note(_signed(gain), theme.ink))
    low, high = min([*gains, 0]), max([*gains, 0])
    room = 0.12 * ((high - low) or 1)
    figure.update_layout(
        height=_ROW * max(len(changes), _LEAST_ROWS) + 52,
        margin={"l": 8, "r": 16, "t": 8, "b": 46},
        xaxis={
            "title": {"text": "Tokens/s/GPU against the base, %"},
            "showgrid": True,
            "range": [low - room, high + room],
        },
        yaxis=row_axis(names, theme),
    )
    return figure


def _signed(gain: float) -> str:
    return f"{'+' if gain > 0 else ''}{percent(gain / 100)}"


def _values(column: pl.Series) -> list[float | None]:
    factor = QUANTITIES[column.name].factor if column.name in QUANTITIES else 1.0
    return [None if value is None else value * factor for value in column]


def _lay_out(figure: go.Figure, x: str, y: str) -> None:
    figure.update_layout(
        height=HEIGHT,
        margin={"l": 8, "r": 24, "t": 24, "b": 46},
        hoverdistance=20,
        xaxis={"title": {"text": x}, "showgrid": True, "separatethousands": True, **_whole_ticks(figure)},
        yaxis={"title": {"text": y}, "showgrid": True, "separatethousands": True, "rangemode": "tozero"},
    )


def _whole_ticks(figure: go.Figure) -> dict[str, int]:
    """Ticks at whole numbers where a few of them are all that x is, as of 1 to 4 GPUs."""
    values = [value for trace in figure.data for value in trace.x or () if isinstance(value, (int, float))]
    is_whole = bool(values) and all(float(value).is_integer() for value in values)
    return {"dtick": 1} if is_whole and max(values) - min(values) <= _MOST_WHOLE_TICKS else {}
