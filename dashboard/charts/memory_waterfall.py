"""Charts of the page on memory: a run's waterfall, peaks beside the card, fragmentation, the terms of the estimate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.layer import Layer
from sweepscope.dashboard.charts.marks import hatching, hovering, note, row_axis
from sweepscope.dashboard.format.numbers import GIB, gib, memory, percent, plain
from sweepscope.dashboard.format.symbols import STATUS
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.view_models.memory import Bar

_ROW = 27
_AXIS = 46
_MAX_LABEL = 44
_LINE = 15  # pixels that a second line of a name takes
_PART = " · "


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
        weight = ("<b>", "</b>") if part.kind == "level" else ("", "")
        _say(layer, (left + abs(part.size)) / GIB, position, f"{weight[0]}{sign}{memory(part.size)}{weight[1]}", theme)
    layer.lay_on(figure)
    ends = [end / GIB for part in parts for end in (part.begin, part.begin + part.size)]
    low, high = min([0.0, *ends]), max([0.1, *ends])
    figure.update_layout(
        height=_ROW * max(len(parts), 1) + _AXIS,
        barmode="overlay",
        margin={"t": 4, "b": _AXIS},
        xaxis={
            "range": [low * 1.05, low + (high - low) * 1.17],
            "showgrid": True,
            "title": {"text": "GiB on the fullest GPU"},
        },
        yaxis=_rows([part.name for part in parts], theme),
    )
    return figure


def draw_peaks(
    rows: pl.DataFrame, names: Sequence[str], hovers: Sequence[str], theme: Theme, picked: str | None
) -> go.Figure:
    """One track per run, as long as its card: allocated, what is reserved beyond, and a diamond for the estimate."""
    figure, layer = go.Figure(), Layer()
    widest = max([1.0, *(size / GIB for size in rows["mem_total_bytes"].drop_nulls())])
    top = widest * 1.4
    for position, row in enumerate(rows.iter_rows(named=True)):
        card, allocated = row["mem_total_bytes"], row["mem_peak_allocated_bytes"]
        reserved, used = row["mem_peak_reserved_bytes"], row["mem_used_max_bytes"]
        is_picked = row["run_id"] == picked
        if card:
            _bar(figure, position, 0, card, theme.cell, theme=theme)
        outer = max((size for size in (reserved, used) if size is not None), default=None)
        if outer is not None:
            _bar(figure, position, 0, outer, theme.hatch, theme=theme)
        if allocated is not None:
            _bar(figure, position, 0, allocated, theme.accent if is_picked else theme.axis, theme=theme)
        mark = STATUS[row["status"]]
        known = outer or allocated
        estimate = row["est_mem_bytes"]
        # Beyond the track the mark would lie behind this text, which then names it.
        far = f"~{gib(estimate, 0)}" if estimate is not None and estimate > widest * GIB else ""
        shown = "not logged" if known is None else memory(known)
        text = f"{mark.symbol} {far if far and known is None else shown}"
        _say(layer, (card or known or 0) / GIB, position, f"<b>{text}</b>" if row["status"] == "oom" else text, theme)
    layer.lay_on(figure)
    estimated = [
        (position, size) for position, size in enumerate(rows["est_mem_bytes"]) if size and size <= widest * GIB
    ]
    figure.add_scatter(
        x=[size / GIB for _, size in estimated],
        y=[position for position, _ in estimated],
        mode="markers",
        hoverinfo="skip",
        marker={"symbol": "diamond-open", "size": 9, "color": theme.ink, "line": {"width": 1.6}},
        unselected={"marker": {"opacity": 1}},
    )
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
        xaxis={"range": [0, top], "title": {"text": "GiB allocated; track = card"}, "showgrid": True},
        yaxis=_rows(wrapped, theme),
    )
    return figure


def draw_fragmentation(rows: pl.DataFrame, names: Sequence[str], hovers: Sequence[str], theme: Theme) -> go.Figure:
    """Median of eps_frag with its 10-90 % bar, a row per sweep; a ring at the estimate."""
    figure, layer = go.Figure(), Layer()
    for position, row in enumerate(rows.iter_rows(named=True)):
        layer.add_shape(
            type="line",
            x0=100 * row["eps_frag_low"],
            x1=100 * row["eps_frag_high"],
            y0=position,
            y1=position,
            line={"width": 2, "color": theme.axis},
        )
    layer.lay_on(figure)
    positions = list(range(rows.height))
    allowed = [(position, 100 * share) for position, share in enumerate(rows["est_eps_frag"]) if share is not None]
    figure.add_scatter(
        x=[share for _, share in allowed],
        y=[position for position, _ in allowed],
        mode="markers",
        hoverinfo="skip",
        marker={"symbol": "diamond-open", "size": 9, "color": theme.ink, "line": {"width": 1.6}},
    )
    figure.add_scatter(
        x=[100 * share for share in rows["eps_frag"]],
        y=positions,
        mode="markers",
        **hovering(hovers),
        marker={"size": 10, "color": theme.accent},
    )
    top = max([8.0, *(100 * share for share in rows["eps_frag_high"]), *(share for _, share in allowed)])
    figure.update_layout(
        height=_ROW * max(rows.height, 1) + _AXIS,
        hoverdistance=30,
        margin={"t": 4, "b": _AXIS},
        xaxis={
            "range": [min(0.0, *(100 * share for share in rows["eps_frag_low"])) * 1.1, top * 1.08],
            "title": {"text": "Reserved beyond allocated, %"},
            "showgrid": True,
        },
        yaxis=_rows([_shortened(name) for name in names], theme),
    )
    return figure


def draw_terms(rows: pl.DataFrame, names: Sequence[str], factors: Sequence[str], theme: Theme) -> go.Figure:
    """Share of the residuals that each term alone explains, with the factor that does it."""
    figure, layer = go.Figure(), Layer()
    shares = rows["explained_share"].to_list()
    for position, share in enumerate(shares):
        _bar(figure, position, 0, 100 * share * GIB, theme.accent if position == 0 else theme.hatch, theme=theme)
        _say(layer, 100 * share, position, f"{percent(share, 0)} · {factors[position]}", theme)
    layer.lay_on(figure)
    figure.update_layout(
        height=_ROW * max(len(shares), 1) + _AXIS,
        barmode="overlay",
        margin={"t": 4, "b": _AXIS},
        xaxis={
            "range": [0, 140],
            "tickvals": list(range(0, 101, 20)),
            "title": {"text": "Share of the residuals explained, %"},
            "showgrid": True,
        },
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


def _say(layer: Layer, x: float, position: int, text: str, theme: Theme) -> None:
    layer.add_annotation(x=x, y=position, xanchor="left", xshift=4, **note(text, theme.ink, page=theme.page))


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_LABEL else f"{text[: _MAX_LABEL - 1]}…"


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
            lines.append(_shortened(part))
    return "\n".join(lines)


def _rows(labels: Sequence[str], theme: Theme) -> dict[str, Any]:
    return row_axis(["<br>".join(plain(line) for line in label.split("\n")) for label in labels], theme)
