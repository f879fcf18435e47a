"""The advisor's part of the Explorer: what to run next in a cell. Thin over streamlit; answers are kept per version."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import streamlit as st

from dashboard import widgets
from dashboard.explorer import Setup
from dashboard.queries import explorer as queries
from dashboard.queries.query import Query
from dashboard.store import Store
from dashboard.words import advisor as words
from dashboard.words.explorer import layout
from pipeline.estimate.enumerate import Request
from pipeline.estimate.next_runs import NextRuns, next_runs

TOP = 8
_NEXT = (
    "layout", "gain", "chance", "test_gpu_hours", "gain_per_gpu_hour", "believed_step_time_s", "believed_lo_s",
    "believed_hi_s", "tried", "why",
)  # fmt: skip


def cell_query(setup: Setup, request: Request, origin: str | None) -> Query:
    """The runs of the setup's question, whatever became of them."""
    place = {
        "accelerator": setup.accelerator, "num_gpus": request.num_gpus, "seq_len": setup.seq_len,
        "gbs_tokens": setup.gbs_tokens,
    }  # fmt: skip
    return queries.cell(origin, setup.model, setup.shape, place, setup.framework)


@st.cache_data(
    max_entries=64, show_spinner=False,
    hash_funcs={Store: lambda store: str(store.path), Query: lambda query: query.runnable(), Request: hash},
)  # fmt: skip
def proposals(store: Store, request: Request, cell: Query, top: int = TOP) -> NextRuns:
    """What to run next among the layouts of `request`, given the runs of `cell`."""
    return next_runs(request, cell.run(store.con), top=top)


def draw_next(store: Store, request: Request, cell: Query, *, on_select: Callable[[], None]) -> pl.DataFrame:
    """Proposals with gain, price and reason; returns the rows on screen, for `on_select` to find the picked one."""
    proposed = proposals(store, request, cell)
    widgets.section("Run next", "by expected gain per GPU-hour; select a row to take it")
    rows = words.shown(proposed.candidates) if proposed.best is not None else proposed.candidates.clear()
    rows = rows.with_columns(layout=pl.Series([layout(row) for row in rows.iter_rows(named=True)], dtype=pl.String))
    widgets.note(words.next_answer(proposed, rows))
    if rows.height:
        shown = [name for name in _NEXT if rows[name].count()]
        widgets.picking_table(rows, shown, key="next_runs", on_select=on_select, wide=("why",))
    widgets.note(words.next_notes(proposed))
    return rows
