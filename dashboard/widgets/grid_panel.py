"""Pieces that only the grid pages need: the scale's legend and the ranking bars."""

from __future__ import annotations

import html
from collections.abc import Sequence

import polars as pl
import streamlit as st

from sweepscope.dashboard.charts.grid import MAX_CELL_WIDTH, MIN_CELL_WIDTH, Grid, left_margin
from sweepscope.dashboard.format.metrics import Metric
from sweepscope.dashboard.format.symbols import CELL_STATE
from sweepscope.dashboard.format.theme import MFU_SCALE, MFU_SCALE_TOP
from sweepscope.dashboard.view_models.ranking import RankedRow
from sweepscope.dashboard.widgets.basic import rich, scroll_hint
from sweepscope.dashboard.widgets.urls import run_url


def keep_cells_readable(grid: Grid, *charts: str, narrowest: int = MIN_CELL_WIDTH) -> None:
    """Lets a wide grid scroll sideways rather than squeeze its cells, and keeps a narrow one from stretching them.

    `charts` are the keys of the figures that share the grid's columns, `narrowest` the least width of a cell in pixels.
    """
    narrow, wide = (left_margin(grid.models) + width * len(grid.scales) for width in (narrowest, MAX_CELL_WIDTH))
    chosen = ",".join(f".st-key-{key}" for key in charts)
    st.html(f"<style>{chosen}{{min-width:{narrow}px;max-width:{wide}px}}</style>")
    scroll_hint("More columns to the right: scroll the grid sideways.", narrow)


def legend(cells: pl.DataFrame, metric: Metric, *, estimated: str = "") -> None:
    """The colour scale of `metric`, whether it is clipped, and the symbols of the empty states in `cells`.

    `estimated` explains the tilde, where there is one.
    """
    states = set(cells["cell_state"]) - {"measured"}
    symbols = "".join(f"<span>{html.escape(CELL_STATE[state].text)}</span>" for state in CELL_STATE if state in states)
    if estimated:
        symbols += f"<span><i style='all:unset;font-style:italic'>~</i> {rich(estimated)}</span>"
    scale = _scale(metric, max(cells[metric.column].drop_nulls().to_list(), default=0.0))
    st.html(f'<div class="ss-legend"><span>{scale}</span><span class="states">{symbols}</span></div>')


def _scale(metric: Metric, highest: float) -> str:
    if metric.paint == "share":
        return rich(metric.explanation)
    bar = f'<i style="background:linear-gradient(90deg,{",".join(MFU_SCALE)})"></i>'
    if metric.paint == "mfu":
        clipped = " · clipped above 50 %" if highest > MFU_SCALE_TOP else ""
        return f"{html.escape(metric.label)} 0 % {bar} 50 %{clipped}"
    ends = ("dear", "cheap") if metric.key == "cost" else ("slow", "fast")
    return f"{ends[0]} {bar} {ends[1]} · {rich(metric.explanation)}"


def ranking(rows: Sequence[RankedRow]) -> None:
    """Zero-based bars, the winner in accent, tied rows framed; above each its layout, a link, and what ran it.

    On each bar a line is its 95 % interval, and a tick each repeat.
    """
    lines = "".join(_bar(row) for row in rows)
    st.html(f'<ol class="ss-ranking">{lines}</ol>')


def _bar(row: RankedRow) -> str:
    classes = " ".join(name for name, is_on in (("winner", row.is_winner), ("tied", row.is_tied)) if is_on)
    tie = " <em>tie</em>" if row.is_tied else ""
    run = f'<a href="{html.escape(run_url(row.run_id))}" target="_self">{html.escape(row.layout)}</a>'
    figures = f"<span>{html.escape(row.value)} <small>{html.escape(row.gap)}</small></span>"
    ran_by = f"<p>{html.escape(row.ran_by)}</p>" if row.ran_by else ""
    low, high = row.interval
    doubt = f'<b style="left:{low * 100:.1f}%;width:{(high - low) * 100:.1f}%"></b>'
    ticks = "".join(f'<s style="left:{each * 100:.1f}%"></s>' for each in row.repeats)
    bar = f'<i style="width:{row.share * 100:.1f}%">{doubt}{ticks}</i>'
    return f'<li class="{classes}"><div>{run}{tie}{figures}</div>{ran_by}{bar}</li>'
