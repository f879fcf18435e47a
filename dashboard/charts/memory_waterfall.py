"""Charts of the page on memory: a run's waterfall, peaks beside the card, fragmentation, the terms of the estimate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.layer import Layer
from sweepscope.dashboard.charts.marks import beside, hatching, hovering, note, row_axis, segment, value_axis
from sweepscope.dashboard.format.numbers import GIB, gib, memory, percent, plain, shortened
from sweepscope.dashboard.format.symbols import STATUS
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.view_models.memory import Bar

_ROW = 27
_AXIS = 46
_MAX_LABEL = 44
_LINE = 15  # pixels that a second line of a name takes
_PART = " · "

_Track = tuple[int, float, str]
"""Row, bytes and colour of a bar."""


def draw_waterfall(parts: Sequence[Bar], theme: Theme) -> go.Figure:
    """From the estimate to the card: levels from 0, gaps between them; what nothing explains is hatched."""
    figure, layer = go.Figure(), Layer()
    for position, part in enumerate(parts):
        left = min(part.begin, part.begin + part.size)
        color = {"level": theme.soft, "gap": theme.axis, "estimated": theme.hatch, "measured": theme.hatch}[part.kind]
        if part.part == "allocated":
            color = theme.accent
        elif part.part == "card":
            color = theme.rule
        _bar(figure, position, left, abs(part.size), color, is_hatched=part.is_unexplained, theme=theme)
        sign = "+" if part.kind == "gap" and part.size > 0 else ""
        text = f"{sign}{memory(part.size)}"
        text = f"<b>{text}</b>" if part.kind == "level" else text
        _label(layer, (left + abs(part.size)) / GIB, position, text, theme)
    layer.lay_on(figure)
    ends = [end / GIB for part in parts for end in (part.begin, part.begin + part.size)]
    low, high = min([0.0, *ends]), max([0.1, *ends])
    figure.update_layout(
        height=_ROW * max(len(parts), 1) + _AXIS,
        barmode="overlay",
        margin={"t": 4, "b": _AXIS},
        xaxis=value_axis(low * 1.05, low + (high - low) * 1.17, "GiB on the fullest GPU"),
        yaxis=_rows([part.name for part in parts], theme),
    )
    return figure


def draw_peaks(
    rows: pl.DataFrame, names: Sequence[str], hovers: Sequence[str], theme: Theme, picked: str | None
) -> go.Figure:
    """One track per run, as long as its card: allocated, what is reserved beyond, and a diamond for the estimate."""
    figure, layer = go.Figure(), Layer()
    widest = max([1.0, *(size / GIB for size in rows["mem_total_bytes"].drop_nulls())])
    cards: list[_Track] = []
    reached: list[_Track] = []
    inner: list[_Track] = []
    for position, row in enumerate(rows.iter_rows(named=True)):
        card, allocated = row["mem_total_bytes"], row["mem_peak_allocated_bytes"]
        reserved, used = row["mem_peak_reserved_bytes"], row["mem_used_max_bytes"]
        is_picked = row["run_id"] == picked
        if card:
            cards.append((position, card, theme.cell))
        outer = max((size for size in (reserved, used) if size is not None), default=None)
        if outer is not None:
            reached.append((position, outer, theme.hatch))
        if allocated is not None:
            inner.append((position, allocated, theme.accent if is_picked else theme.axis))
        mark = STATUS[row["status"]]
        known = outer or allocated
        estimate = row["est_mem_bytes"]
        # Beyond the track the mark would lie behind this text, which then names it.
        far = f"~{gib(estimate, 0)}" if estimate is not None and estimate > widest * GIB else ""
        shown = "not logged" if known is None else memory(known)
        text = f"{mark.symbol} {far if far and known is None else shown}"
        text = f"<b>{text}</b>" if row["status"] == "oom" else text
        _label(layer, (card or known or 0) / GIB, position, text, theme)
    for tracks in (cards, reached, inner):  # each over the one before
        _tracks(figure, tracks)
    layer.lay_on(figure)
    estimates = enumerate(rows["est_mem_bytes"])
    _diamonds(figure, [(position, size / GIB) for position, size in estimates if size and size <= widest * GIB], theme)
    figure.add_scatter(
        x=[widest / 2] * rows.height,
        y=list(range(rows.height)),
        mode="markers",
        customdata=rows["run_id"].to_list(),
        **hovering(hovers),
        marker={"size": 18, "opacity": 0},
        selected={"marker": {"opacity": 0}},
        unselected={"marker": {"opacity": 0}},
    )
    wrapped = [_wrapped(name) for name in names]
    row_height = _ROW + _LINE * max((name.count("\n") for name in wrapped), default=0)
    figure.update_layout(
        height=row_height * max(rows.height, 1) + _AXIS,
        barmode="overlay",
        hoverdistance=-1,
        clickmode="event+select",
        margin={"t": 4, "b": _AXIS},
        xaxis=value_axis(0, widest * 1.4, "GiB allocated; track = card"),
        yaxis=_rows(wrapped, theme),
    )
    return figure


def draw_fragmentation(rows: pl.DataFrame, names: Sequence[str], hovers: Sequence[str], theme: Theme) -> go.Figure:
    """Median of eps_frag with its 10-90 % bar, a row per sweep; a ring at the estimate."""
    figure, layer = go.Figure(), Layer()
    for position, row in enumerate(rows.iter_rows(named=True)):
        low, high = (100 * row["eps_frag_low"], position), (100 * row["eps_frag_high"], position)
        layer.add_shape(**segment(low, high, theme.axis, width=2))
    layer.lay_on(figure)
    allowed = [(position, 100 * share) for position, share in enumerate(rows["est_eps_frag"]) if share is not None]
    _diamonds(figure, allowed, theme)
    figure.add_scatter(
        x=[100 * share for share in rows["eps_frag"]],
        y=list(range(rows.height)),
        mode="markers",
        **hovering(hovers),
        marker={"size": 10, "color": theme.accent},
    )
    left = min(0.0, *(100 * share for share in rows["eps_frag_low"]))
    right = max([8.0, *(100 * share for share in rows["eps_frag_high"]), *(share for _, share in allowed)])
    figure.update_layout(
        height=_ROW * max(rows.height, 1) + _AXIS,
        hoverdistance=30,
        margin={"t": 4, "b": _AXIS},
        xaxis=value_axis(left * 1.1, right * 1.08, "Reserved beyond allocated, %"),
        yaxis=_rows([shortened(name, _MAX_LABEL) for name in names], theme),
    )
    return figure


def draw_terms(rows: pl.DataFrame, names: Sequence[str], factors: Sequence[str], theme: Theme) -> go.Figure:
    """Share of the residuals that each term alone explains, with the factor that does it."""
    figure, layer = go.Figure(), Layer()
    shares = rows["explained_share"].to_list()
    for position, share in enumerate(shares):
        _bar(figure, position, 0, 100 * share * GIB, theme.accent if position == 0 else theme.hatch, theme=theme)
        _label(layer, 100 * share, position, f"{percent(share, 0)} · {factors[position]}", theme)
    layer.lay_on(figure)
    figure.update_layout(
        height=_ROW * max(len(shares), 1) + _AXIS,
        barmode="overlay",
        margin={"t": 4, "b": _AXIS},
        xaxis=value_axis(0, 140, "Share of the residuals explained, %", tickvals=list(range(0, 101, 20))),
        yaxis=_rows(list(names), theme),
    )
    return figure


def _bar(
    figure: go.Figure, position: int, left: float, size: float, color: str, *, theme: Theme, is_hatched: bool = False
) -> None:
    pattern = hatching(theme)
    figure.add_bar(
        x=[size / GIB],
        y=[position],
        base=[left / GIB],
        orientation="h",
        width=0.66,
        hoverinfo="skip",
        marker={"color": color, "line": {"width": 0}, **({"pattern": pattern} if is_hatched else {})},
        unselected={"marker": {"opacity": 1}},
    )


def _tracks(figure: go.Figure, tracks: Sequence[_Track]) -> None:
    """Bars from 0, as one trace: one for each would cost the browser more."""
    if not tracks:
        return
    positions, sizes, colors = zip(*tracks, strict=True)
    figure.add_bar(
        x=[size / GIB for size in sizes],
        y=list(positions),
        orientation="h",
        width=0.66,
        hoverinfo="skip",
        marker={"color": list(colors), "line": {"width": 0}},
        unselected={"marker": {"opacity": 1}},
    )


def _diamonds(figure: go.Figure, points: Sequence[tuple[int, float]], theme: Theme) -> None:
    """Marks of estimates: row and position on the axis of each."""
    figure.add_scatter(
        x=[x for _, x in points],
        y=[position for position, _ in points],
        mode="markers",
        hoverinfo="skip",
        marker={"symbol": "diamond-open", "size": 9, "color": theme.ink, "line": {"width": 1.6}},
        unselected={"marker": {"opacity": 1}},
    )


def _label(layer: Layer, x: float, position: int, text: str, theme: Theme) -> None:
    layer.add_annotation(**beside(x, position, 4), **note(text, theme.ink, page=theme.page))


def _wrapped(text: str) -> str:
    """A long name in as many lines as it needs, parted between its parts: the model at its end would be cut off in one.

    >>> _wrapped("DP2 TP8 PP4 · GAS8 MBS16 · Z1 · Llama 8.86B · 8 nodes")
    'DP2 TP8 PP4 · GAS8 MBS16 · Z1\\nLlama 8.86B · 8 nodes'
    """
    if len(text) <= _MAX_LABEL:
        return text
    lines: list[str] = []
    for part in text.split(_PART):
        if lines and len(lines[-1]) + 2 * len(_PART) + len(part) <= _MAX_LABEL:
            lines[-1] += _PART + part
        else:
            lines.append(shortened(part, _MAX_LABEL))
    return "\n".join(lines)


def _rows(labels: Sequence[str], theme: Theme) -> dict[str, Any]:
    return row_axis(["<br>".join(plain(line) for line in label.split("\n")) for label in labels], theme)
