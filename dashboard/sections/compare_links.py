"""Ways to the comparison: ticked rows, and links from a run or a cell."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.navigation import PAGES
from sweepscope.dashboard.queries import compare as queries
from sweepscope.dashboard.selection import url_state
from sweepscope.dashboard.selection.comparison import MOST_RUNS
from sweepscope.dashboard.text import compare as texts
from sweepscope.dashboard.widgets import basic

HINT = "Tick rows to compare them; click a cell to open its run."
_PATH = next(entry.path for entry in PAGES if entry.url == "compare")


def draw_ticked(run_ids: Sequence[str], *, beside: Sequence[str] = (), hint: str = HINT) -> None:
    """What to do with the ticked runs: the link to their comparison, or how to begin one.

    `beside` are runs that the ticked ones are compared with.
    """
    chosen = list(dict.fromkeys([*beside, *run_ids]))
    if not run_ids or len(chosen) < 2:
        basic.note("Tick another row to compare." if run_ids else hint)
        return
    kept = chosen[:MOST_RUNS]
    more = f", the first {MOST_RUNS} of {len(chosen)}" if len(chosen) > MOST_RUNS else ""
    st.page_link(
        _PATH,
        label=f"Compare {numbers.count(len(kept), 'run')}{more}",
        icon=":material/compare_arrows:",
        query_params={"runs": ",".join(kept)},
    )


def draw_adding(view: View, chosen: Sequence[str]) -> None:
    """A list to search for a run that is added to the comparison of the address: the keyboard's way to it."""
    runs = {row["run_id"]: row for row in queries.offered(_OFFERED).run(view.store.con).iter_rows(named=True)}
    options = [run_id for run_id in runs if run_id not in chosen]
    full = len(chosen) >= MOST_RUNS
    st.selectbox(
        "Add a run",
        options,
        index=None,
        key=_ADDED,
        placeholder=f"{MOST_RUNS} are compared at most" if full else "model, layout, framework, id ...",
        format_func=lambda run_id: texts.option(runs[run_id]) if run_id in runs else run_id,
        on_change=_add,
        args=(tuple(chosen),),
        disabled=full or not options,
        width=420,
    )


_ADDED = "added_run"
_OFFERED = 1_000


def _add(chosen: tuple[str, ...]) -> None:
    added = st.session_state[_ADDED]
    if added:
        url_state.put("group", [])
        url_state.put("runs", [",".join((*chosen, added))])
        st.session_state[_ADDED] = None
