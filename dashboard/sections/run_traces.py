"""What profilers saw in the steps of a run, on its page: compute, communication, and how much of it was hidden."""

from __future__ import annotations

from typing import Any

import streamlit as st

from sweepscope.dashboard.queries import run_traces as queries
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.text import run_traces as texts
from sweepscope.dashboard.widgets import basic, lists
from sweepscope.dashboard.widgets.basic import rich


def draw(con: Reader, run: dict[str, Any]) -> None:
    """Parts of a step beside the collectives; nothing of a run without a trace."""
    ranks = queries.ranks(run["run_id"]).run(con).to_dicts()
    if not ranks:
        return
    calls = queries.collectives(run["run_id"]).run(con).to_dicts()
    left, right = st.columns(2, gap="large")
    with left, st.container(gap="xsmall"):
        basic.section("Profiler trace", texts.qualifier(ranks))
        lists.rows([(rich(name), rich(value)) for name, value in texts.facts(ranks, run["layout"])])
        basic.note(texts.CLOCK)
    if calls:
        with right, st.container(gap="xsmall"):
            basic.section("Collectives in the trace", "per traced process")
            lists.rows([(rich(name), rich(value)) for name, value in texts.operations(calls)])
