"""Charts of the page on the network: bandwidth by size, initialisation times, the ranks of one hang."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

import plotly.graph_objects as go
import polars as pl

from sweepscope.dashboard.charts.line_labels import LABEL_GAP, name_ends, within
from sweepscope.dashboard.charts.marks import hovering, note, row_axis, segment, value_axis
from sweepscope.dashboard.format.numbers import number, plain, shortened
from sweepscope.dashboard.format.theme import MARKERS, Theme, category_colors
from sweepscope.dashboard.view_models.network import RANK_STATE, size_text

HEIGHT = 380
_TOP, _BOTTOM = 12, 48
_ROW_HEIGHT = 34
_LABEL = 26  # letters that fit right of the plot
_SQUARE = 30  # pixels from one rank to the next
_MAX_TICKS = 7
_NUMBERED = 512  # ranks up to which each square holds its number


def draw_bandwidth(
    rows: pl.DataFrame,
    lines: Sequence[str],
    hovers: Sequence[str],
    theme: Theme,
    peaks: Sequence[tuple[str, float]] = (),
) -> go.Figure:
    """Bus bandwidth over message size, named at the right end; `rows` of `network.bandwidth_lines`, `hovers` theirs.

    `peaks` of links are dotted lines, named at the left.
    """
    figure = go.Figure()
    colors = category_colors(lines, theme)
    drawn = rows.with_columns(hover=pl.Series(hovers, dtype=pl.String)).filter(pl.col("line").is_in(list(lines)))
    ends = []
    for position, line in enumerate(lines):
        points = drawn.filter(pl.col("line") == line).sort("message_bytes")
        speeds = (points["busbw_bytes_per_s"] / 1e9).to_list()
        figure.add_scatter(
            x=points["message_bytes"].to_list(),
            y=speeds,
            mode="lines+markers",
            **hovering(points["hover"].to_list()),
            line={"width": 2.2, "color": colors[line]},
            marker={"size": 7, "symbol": MARKERS[position % len(MARKERS)], "color": colors[line]},
        )
        ends.append((line, speeds[-1]))
    highest = max((value / 1e9 for value in drawn["best_busbw_bytes_per_s"]), default=1.0) or 1.0
    top = max([highest, *(value / 1e9 for _, value in peaks)]) * 1.06
    _draw_peaks(figure, peaks, theme)
    sizes = drawn["message_bytes"].to_list() or [1, 2]
    figure.update_layout(height=HEIGHT, margin={"l": 8, "r": 182, "t": _TOP, "b": _BOTTOM}, hovermode="closest")
    figure.update_xaxes(title_text="Message size (log scale)", **_size_axis(min(sizes), max(sizes)))
    figure.update_yaxes(range=[0, top], showgrid=True, title_text="Bus bandwidth, GB/s")
    heights = within([value for _, value in ends], LABEL_GAP * top / (HEIGHT - _TOP - _BOTTOM), top)
    # in full in the hover and the table: a fabric's name may be as long as a file's
    labels = [
        (height, f"<b>{plain(shortened(line, _LABEL))}</b>", colors[line])
        for (line, _), height in zip(ends, heights, strict=True)
    ]
    name_ends(figure, labels, size=13)
    return figure


def _draw_peaks(figure: go.Figure, peaks: Sequence[tuple[str, float]], theme: Theme) -> None:
    for name, value in peaks:
        height = value / 1e9
        dotted = {"width": 1, "dash": "dot", "color": theme.soft}
        figure.add_shape(type="line", xref="paper", x0=0, x1=1, y0=height, y1=height, layer="below", line=dotted)
        text = note(plain(f"{name}: {number(height)}"), theme.soft)
        figure.add_annotation(x=0, xref="paper", xanchor="left", y=height, yanchor="bottom", **text)


def draw_by_nodes(
    measured: pl.DataFrame,
    published: pl.DataFrame,
    hovers: Sequence[str],
    published_hovers: Sequence[str],
    theme: Theme,
) -> go.Figure:
    """Bandwidth over nodes at one size: measured points filled, published ones hollow with their 5-95 % bar.

    `measured` are rows of `queries.network.by_nodes`, `published` of `published_bandwidths`, each with its hovers.
    """
    figure = go.Figure()
    low, usual, high = (published[f"bandwidth_{name}bytes_per_s"] / 1e9 for name in ("p5_", "", "p95_"))
    figure.add_scatter(
        x=published["num_nodes"].to_list(),
        y=usual.to_list(),
        mode="lines+markers",
        line={"width": 1.5, "dash": "dash", "color": theme.axis},
        marker={"size": 9, "color": theme.page, "line": {"width": 2, "color": theme.soft}},
        error_y={
            "type": "data",
            "symmetric": False,
            "color": theme.axis,
            "thickness": 1,
            "width": 3,
            "array": (high - usual).to_list(),
            "arrayminus": (usual - low).to_list(),
        },
        **hovering(published_hovers),
    )
    figure.add_scatter(
        x=measured["num_nodes"].to_list(),
        y=(measured["busbw_bytes_per_s"] / 1e9).to_list(),
        mode="markers",
        marker={"size": 10, "color": theme.accent},
        **hovering(hovers),
    )
    nodes = sorted({*measured["num_nodes"], *published["num_nodes"]})
    room = 0.08 * max(log10(max(nodes)) - log10(min(nodes)), 0.5)
    shown = [node for position, node in enumerate(nodes) if position == 0 or node >= nodes[position - 1] * 1.3]
    figure.update_layout(height=300, margin={"l": 8, "r": 12, "t": _TOP, "b": _BOTTOM}, hovermode="closest")
    figure.update_xaxes(
        title_text="Nodes (log scale)",
        type="log",
        range=[log10(min(nodes)) - room, log10(max(nodes)) + room],
        tickvals=shown,
        ticktext=[number(node) for node in shown],
    )
    figure.update_yaxes(title_text="GB/s", showgrid=True, rangemode="tozero")
    return figure


def _size_axis(low: int, high: int) -> dict[str, object]:
    """A log axis with ticks at powers of two, as close as leaves at most seven."""
    fitting = [[2**power for power in range(0, 50, step) if low <= 2**power <= high] for step in (1, 2, 3, 4, 6, 8)]
    ticks = next(found for found in fitting if len(found) <= _MAX_TICKS) or [low, high]
    room = max((log10(high) - log10(low)) * 0.03, 0.05)
    return {
        "type": "log",
        "range": [log10(low) - room, log10(high) + room],
        "tickvals": ticks,
        "ticktext": [size_text(tick) for tick in ticks],
    }


def draw_init(rows: pl.DataFrame, hovers: Sequence[str], theme: Theme) -> go.Figure:
    """Initialisation time of each communicator, a row per number of ranks, with the row's median as a line."""
    figure = go.Figure()
    sizes = sorted(set(rows["nranks"]), reverse=True)
    drawn = rows.with_columns(hover=pl.Series(hovers, dtype=pl.String))
    for position, nranks in enumerate(sizes):
        in_row = drawn.filter(pl.col("nranks") == nranks)
        times = in_row["init_time_s"]
        # Dots of one row are moved apart by a fixed pattern: a heap of equal times would look like one.
        offsets = [((i * 7) % 11 - 5) / 22 if in_row.height > 1 else 0.0 for i in range(in_row.height)]
        figure.add_scatter(
            x=times.to_list(),
            y=[position + offset for offset in offsets],
            mode="markers",
            **hovering(in_row["hover"].to_list()),
            marker={"size": 9, "color": theme.page, "line": {"width": 1.5, "color": theme.soft}},
        )
        if isinstance(median := times.median(), float) and in_row.height > 1:
            bottom, top = (median, position - 0.4), (median, position + 0.4)
            figure.add_shape(**segment(bottom, top, theme.accent, width=2.5))
    longest = float(rows["init_time_s"].max() or 1)  # type: ignore[arg-type]  # polars types max() for any dtype
    figure.update_layout(
        height=_ROW_HEIGHT * max(len(sizes), 1) + _BOTTOM + 16,
        margin={"t": 8, "b": _BOTTOM},
        hoverdistance=20,
        xaxis=value_axis(0, longest * 1.05, "Seconds; line = median"),
        yaxis=row_axis([f"{number(nranks)} ranks" for nranks in sizes], theme),
    )
    return figure


def draw_ranks(states: pl.DataFrame, theme: Theme) -> go.Figure:
    """One square per rank of `network.rank_states`, in rows of eight or more; state by symbol, fill and colour."""
    per_row = 8 if states.height <= 64 else 16 if states.height <= 256 else 32
    rows = -(-states.height // per_row)
    figure = go.Figure()
    numbered = states.height <= _NUMBERED
    for name, mark in RANK_STATE.items():
        members = states.with_row_index("position").filter(pl.col("state") == name)
        if members.is_empty():
            continue
        color = getattr(theme, mark.color)
        is_filled = name == "suspect"
        figure.add_scatter(
            x=[position % per_row for position in members["position"]],
            y=[position // per_row for position in members["position"]],
            mode="markers+text" if numbered else "markers",
            text=[f"{mark.symbol} {rank}" for rank in members["rank"]],
            textfont={"size": 12, "color": theme.page if is_filled else theme.ink},
            **hovering([f"<b>Rank {row['rank']}</b><br>{plain(row['detail'])}" for row in members.to_dicts()]),
            marker={
                "symbol": "square",
                "size": _SQUARE + 2 if per_row == 8 else 26 if per_row == 16 else 12,
                "color": color if is_filled or not numbered else theme.page if name == "silent" else theme.cell,
                "line": {"width": 2 if name in ("suspect", "silent", "elsewhere") else 1, "color": color},
            },
        )
    figure.update_layout(
        height=(_SQUARE + 12) * rows + 16,
        margin={"l": 4, "r": 4, "t": 8, "b": 8},
        hoverdistance=30,
        xaxis={"range": [-0.6, per_row - 0.4], "visible": False},
        yaxis={"range": [rows - 0.5, -0.5], "visible": False},
    )
    return figure
