"""MFU of the fastest layout of each kind over cluster sizes or batches, where conditions flip, and measured runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.line_labels import LABEL_GAP, name_ends, within
from sweepscope.dashboard.charts.marks import hovering, note, segment, value_axis
from sweepscope.dashboard.format.theme import MARKERS, Theme, category_colors

HEIGHT = 340
_TOP, _BOTTOM = 26, 48


def draw(
    points: pl.DataFrame,
    runs: pl.DataFrame,
    theme: Theme,
    *,
    axis: str,
    names: dict[str, str],
    ticks: Sequence[tuple[int, str]],
    title: str,
    marks: Sequence[tuple[str, int]],
    hovers: tuple[Sequence[str], Sequence[str]],
) -> go.Figure:
    """Lines: `est_mfu` of `points` per `kind`, over the column `axis`. Hollow markers: `mfu` of `runs`, by kind too.

    Args:
        points: the fastest layouts, estimated.
        runs: the fastest runs.
        theme: colours.
        axis: column of the values across.
        names: text at the end of each kind's line, in the order of the kinds.
        ticks: values across and their texts.
        title: of the axis across.
        marks: letters over values at which something flips.
        hovers: of the points and of the runs.
    """
    colors = category_colors(list(names), theme)
    points = points.with_columns(tip=pl.Series(hovers[0], dtype=pl.String))
    runs = runs.with_columns(tip=pl.Series(hovers[1], dtype=pl.String))
    highest = max([*points["est_mfu"].drop_nulls(), *runs["mfu"].drop_nulls(), 0.0])
    top = max(50.0, 110 * highest)
    figure, ends = go.Figure(), []
    for position, (kind, name) in enumerate(names.items()):
        line = points.filter(kind=kind).sort(axis)
        if line.height:
            _add_line(figure, line, axis, name, colors[kind])
            ends.append((100 * line["est_mfu"][-1], name, colors[kind]))
        of_kind = runs.filter(kind=kind)
        if of_kind.height:
            symbol = f"{MARKERS[position % len(MARKERS)]}-open"
            _add_runs(figure, of_kind, axis, f"{name}, runs", {"symbol": symbol, "color": colors[kind]})
    _mark(figure, marks, top, theme)
    low, high = log10(ticks[0][0]), log10(ticks[-1][0])
    room = max((high - low) * 0.04, 0.03)
    figure.update_layout(height=HEIGHT, margin={"l": 8, "r": 118, "t": _TOP, "b": _BOTTOM}, hovermode="closest")
    figure.update_xaxes(
        type="log",
        range=[low - room, high + room],
        tickvals=[value for value, _ in ticks],
        ticktext=[text for _, text in ticks],
        title_text=title,
    )
    figure.update_yaxes(**value_axis(0, top, "MFU, %"))
    gap = LABEL_GAP * top / (HEIGHT - _TOP - _BOTTOM)
    heights = within([end for end, _, _ in ends], gap, top)
    labels = [(height, f"<b>{name}</b>", color) for (_, name, color), height in zip(ends, heights, strict=True)]
    name_ends(figure, labels, size=13)
    return figure


def _add_line(figure: go.Figure, line: pl.DataFrame, axis: str, name: str, color: str) -> None:
    """The fastest layouts of one kind: `est_mfu` and `tip`, in the order of `axis`."""
    figure.add_scatter(
        x=line[axis].to_list(),
        y=[100 * value for value in line["est_mfu"]],
        mode="lines",
        name=name,
        **hovering(line["tip"].to_list()),
        line={"width": 2.2, "color": color},
    )


def _add_runs(figure: go.Figure, runs: pl.DataFrame, axis: str, name: str, marker: dict[str, str]) -> None:
    """The fastest runs of one kind, as hollow markers: `mfu` and `tip`."""
    figure.add_scatter(
        x=runs[axis].to_list(),
        y=[100 * value for value in runs["mfu"]],
        mode="markers",
        name=name,
        **hovering(runs["tip"].to_list()),
        marker={"size": 9, **marker, "line": {"width": 2}},
    )


def _mark(figure: go.Figure, marks: Sequence[tuple[str, int]], top: float, theme: Theme) -> None:
    """A dotted line at each value at which something flips, under the letters of what does."""
    letters: dict[int, list[str]] = {}
    for letter, value in marks:
        letters.setdefault(value, []).append(letter)
    dotted = {"line": {"width": 1, "dash": "dot", "color": theme.axis}}
    for value, here in letters.items():
        # On a log axis shapes are placed by the value, annotations by its logarithm.
        figure.add_shape(**segment((value, 0), (value, top), theme.axis, layer="below") | dotted)
        text = note(f"<b>{' '.join(here)}</b>", theme.soft, size=12)
        figure.add_annotation(x=log10(value), y=top, yanchor="bottom", **text)
