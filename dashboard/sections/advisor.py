"""The advisor's part of the Explorer: what to run next in a cell.

Answers are kept per version of the store.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import streamlit as st

from sweepscope.dashboard.app.store import Store
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.queries import explorer as queries
from sweepscope.dashboard.queries.query import Query
from sweepscope.dashboard.text import advisor as texts
from sweepscope.dashboard.view_models.explorer import Setup, found_for
from sweepscope.dashboard.widgets import basic, tables
from sweepscope.pipeline.estimate.advice.cell import usual
from sweepscope.pipeline.estimate.advice.next_runs import NextRuns, next_runs
from sweepscope.pipeline.estimate.search.enumerate import Request

TOP = 8
_NEXT = names(
    "layout gain chance test_gpu_hours gain_per_gpu_hour believed_step_time_s believed_lo_s believed_hi_s tried why"
)


def cell_query(setup: Setup, request: Request, origin: str | None) -> Query:
    """The runs of the setup's question, whatever became of them."""
    question = {
        "accelerator": setup.accelerator,
        "num_gpus": request.num_gpus,
        "seq_len": setup.seq_len,
        "gbs_tokens": setup.gbs_tokens,
    }
    return queries.cell(origin, setup.model, setup.shape, question, setup.framework)


@st.cache_data(
    max_entries=64,
    show_spinner=False,
    hash_funcs={Store: lambda store: str(store.path), Query: lambda query: query.runnable(), Request: hash},
)
def proposals(store: Store, request: Request, cell: Query, top: int = TOP) -> NextRuns:
    """What to run next among the layouts of `request`, given the runs of `cell`."""
    runs = cell.run(store.con)
    request = usual(request, runs)
    return next_runs(request, runs, top=top, found=found_for(request))


def gains(proposed: NextRuns) -> pl.DataFrame:
    """Candidates with something to gain over the measured best."""
    return texts.shown(proposed.candidates) if proposed.best is not None else proposed.candidates.clear()


def draw_next(store: Store, request: Request, cell: Query, *, on_select: Callable[[], None]) -> pl.DataFrame:
    """Proposals with gain, price and reason; returns the rows on screen, for `on_select` to find the picked one."""
    proposed = proposals(store, request, cell)
    basic.section("Run next", "by expected gain per GPU-hour; select a row to take it")
    rows = gains(proposed)
    answer, remarks = texts.next_answer(proposed, rows), texts.next_notes(proposed)
    if rows.is_empty():
        basic.note(f"{answer} {remarks}")
        return rows
    basic.note(answer)
    shown = [name for name in _NEXT if rows[name].count()]
    tables.picking_table(rows, shown, key="next_runs", on_select=on_select, wide=("why",))
    basic.note(remarks)
    return rows
