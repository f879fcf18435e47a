"""Charts of the page on one hang: when each rank waited, and its state in the collectives around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.marks import beside, box, hovering, note
from sweepscope.dashboard.format.numbers import number, plain, seconds, shortened
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.view_models.hang import STEP_STATE, Sequence2D, Span
from sweepscope.dashboard.view_models.network import RANK_STATE

_ROW, _AXIS = 20, 48
_NAMED_RANKS = 40
"""Ranks up to which each row carries its number."""
_TICKS = 16
"""Numbered rows at most where there are more ranks."""
_HEIGHT = 560


def draw_timeline(spans: Sequence[Span], ranks: Sequence[int], theme: Theme) -> go.Figure:
    """A row per rank: from when it began to wait to when it gave up; a rank without a line is labelled as empty."""
    figure = go.Figure()
    positions = {rank: position for position, rank in enumerate(sorted(ranks))}
    for state, mark in RANK_STATE.items():
        in_state = [span for span in spans if span.state == state and span.rank in positions]
        if not in_state:
            continue
        color = getattr(theme, mark.color)
        xs: list[float | None] = []
        ys: list[float | None] = []
        for span in in_state:
            if span.begin_s is not None:
                xs += [span.begin_s, span.end_s, None]
                ys += [positions[span.rank], positions[span.rank], None]
        line = theme.soft if state == "waited" else color
        figure.add_scatter(x=xs, y=ys, mode="lines", line={"width": 4, "color": line}, hoverinfo="skip")
        figure.add_scatter(
            x=[span.end_s for span in in_state],
            y=[positions[span.rank] for span in in_state],
            mode="markers",
            marker={"symbol": "line-ns", "size": 12, "line": {"width": 2.5, "color": line}},
            **hovering([_span_hover(span) for span in in_state]),
        )
    quiet = sorted(set(positions) - {span.rank for span in spans})
    for rank in quiet if len(positions) <= _NAMED_RANKS else ():
        text = note("no line with a time", theme.mute)
        figure.add_annotation(**beside(0, positions[rank], 6), xref="paper", **text)
    _lay_out(figure, positions, "Seconds from the first time in the lines; the stroke is the timeout")
    figure.update_layout(hoverdistance=30, xaxis={"rangemode": "tozero"})
    return figure


def draw_activity(activity: pl.DataFrame, states: pl.DataFrame, theme: Theme) -> go.Figure:
    """A row per rank with a dot per collective that it enqueued; the last one in the colour of the rank's state.

    `activity` and `states` are frames of the functions of the same names in `view_models.hang`.
    """
    figure = go.Figure()
    positions = {rank: position for position, rank in enumerate(states["rank"].sort())}
    state_of = dict(states.select("rank", "state").iter_rows())
    shown = [row for row in activity.iter_rows(named=True) if row["rank"] in positions]
    colors = {state: getattr(theme, mark.color) for state, mark in RANK_STATE.items()} | {"waited": theme.soft}
    hovers = [
        f"<b>Rank {row['rank']}</b>: {plain(str(row['op']))} seq {row['seq']}<br>at {seconds(row['at_s'])}"
        for row in shown
    ]
    figure.add_scatter(
        x=[row["at_s"] for row in shown],
        y=[positions[row["rank"]] for row in shown],
        mode="markers",
        marker={
            "symbol": "circle",
            "size": [11 if row["is_last"] else 6 for row in shown],
            "color": [colors[state_of[row["rank"]]] if row["is_last"] else theme.hatch for row in shown],
        },
        **hovering(hovers),
    )
    _lay_out(figure, positions, "Seconds from the first of these collectives")
    figure.update_layout(hoverdistance=20)
    return figure


def _lay_out(figure: go.Figure, positions: Mapping[int, int], title: str) -> None:
    """Height, margins and axes of a figure with time to the right and a row per rank."""
    figure.update_layout(
        height=min(_ROW * max(len(positions), 3) + _AXIS + 8, _HEIGHT),
        margin={"l": 8, "r": 16, "t": 8, "b": _AXIS},
        xaxis={"title": {"text": title}, "showgrid": True},
        yaxis=_rank_axis(positions),
    )


def _rank_axis(positions: Mapping[int, int]) -> dict[str, Any]:
    """An axis with a row per rank, of many only some with their number; `positions` in the order of the ranks."""
    ranks = list(positions)
    ticks = ranks if len(ranks) <= _NAMED_RANKS else ranks[:: -(-len(ranks) // _TICKS)]
    return {
        "range": [len(ranks) - 0.4, -0.6],
        "tickvals": [positions[rank] for rank in ticks],
        "ticktext": [f"rank {rank}" for rank in ticks],
        "ticklabelstandoff": 6,
    }


def _span_hover(span: Span) -> str:
    waited = "" if span.begin_s is None else f"<br>waited {seconds(span.end_s - span.begin_s)}"
    return f"<b>Rank {span.rank}</b>: {plain(span.text)}{waited}<br>gave up at {seconds(span.end_s)}"


def draw_sequence(steps: Sequence2D, hang_seq: int, theme: Theme) -> go.Figure:
    """Ranks down, collectives across; the column of the hang is framed."""
    figure = go.Figure()
    columns = {seq: position for position, seq in enumerate(steps.seqs)}
    rows = {rank: position for position, rank in enumerate(steps.ranks)}
    for state, mark in STEP_STATE.items():
        in_state = [(rank, seq) for rank in steps.ranks for seq in steps.seqs if steps.cells[rank][seq] == state]
        if not in_state:
            continue
        color = getattr(theme, mark.color)
        is_hollow = state in ("absent", "lost")
        figure.add_scatter(
            x=[columns[seq] for _, seq in in_state],
            y=[rows[rank] for rank, _ in in_state],
            mode="markers",
            marker={
                "symbol": {"waits": "square", "differs": "diamond"}.get(state, "circle"),
                "size": 5 if state == "lost" else 13,
                "color": theme.page if is_hollow else color,
                "line": {"width": 2, "color": color},
            },
            **hovering([_cell_hover(steps, rank, seq) for rank, seq in in_state]),
        )
    if hang_seq in columns:
        column, frame = columns[hang_seq], {"width": 2, "color": theme.ink}
        figure.add_shape(**box((column - 0.5, -0.5), (column + 0.5, len(rows) - 0.5), line=frame, layer="below"))
    figure.update_layout(
        height=min((_ROW + 6) * max(len(rows), 2) + 60, _HEIGHT + 80),
        margin={"l": 8, "r": 8, "t": 8, "b": 44},
        hoverdistance=30,
        xaxis={
            "range": [-0.7, len(columns) - 0.3],
            "tickvals": list(columns.values()),
            "ticktext": [f"{seq}<br>{_short(steps.names[seq])}" for seq in columns],
            "tickangle": 0,
            "title": {"text": ""},
        },
        yaxis=_rank_axis(rows),
    )
    return figure


def _short(op: str) -> str:
    """An operation's name in the width of a column."""
    return plain(shortened(op.strip("_"), 12))


def _cell_hover(steps: Sequence2D, rank: int, seq: int) -> str:
    word = STEP_STATE[steps.cells[rank][seq]].word
    row = steps.records.get((rank, seq))
    if row is None:
        return f"<b>Rank {rank}, seq {seq}</b><br>{word}"
    shape = plain(f"{row['op']} {row['input_sizes'] or ''} {row['input_dtypes'] or ''}".strip())
    return f"<b>Rank {rank}, seq {seq}</b>: {word}<br>{shape}<br>{plain(str(row['op_state']))}"


def states_alt(states: pl.DataFrame) -> str:
    """The counts of ranks by state, for a screen reader."""
    return ", ".join(f"{number(rows)} {state}" for state, rows in states["detail"].value_counts(sort=True).iter_rows())
