"""The network part of a run's page, where its files hold NCCL output or a hang."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
import streamlit as st

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.queries import hang as hang_queries
from sweepscope.dashboard.queries import run_network as queries
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.text import run_network as texts
from sweepscope.dashboard.widgets import basic, folds, lists, tables, urls

_COMMUNICATORS = names(
    "nranks num_nodes communicators ring_channels coll_channels nvls_channels transports init_time_s slowest_init_s "
    "init_slowest_rank init_bootstrap_s"
)
_COLLECTIVES = ("op", "nranks", "collectives", "largest_message_bytes", "total_bytes")
_WARNINGS = ("severity", "warn_class", "text", "num_lines", "line_no")
_HANGS_SHOWN = 4


def draw(con: Reader, run_id: str) -> None:
    """Facts, findings, hangs, and the tables behind them."""
    files = queries.files(run_id).run(con)
    hangs = hang_queries.of_run(run_id).run(con)
    if files.is_empty() and hangs.is_empty():
        return
    basic.section("Network", texts.qualifier(files) if files.height else "known from dumps of the flight recorder")
    comms, calls = queries.communicators(run_id).run(con), queries.collectives(run_id).run(con)
    findings, warnings = queries.findings(run_id).run(con), queries.warnings(run_id).run(con)
    left, right = st.columns(2, gap="large")
    with left:
        if files.height:
            lists.facts(texts.facts(files, comms, calls))
    with right, st.container(gap="xsmall"):
        found = [
            (*texts.hang_line(row), urls.hang_url(row["source_path"], row["line_no"]))
            for row in hangs.head(_HANGS_SHOWN).iter_rows(named=True)
        ]
        if found or findings.height:
            lists.items([*found, *((*line, "network") for line in texts.finding_lines(findings))])
        if more := texts.more_findings(findings):
            basic.note(more)
    listed = {"communicators": (comms, _COMMUNICATORS), "collectives": (calls, _COLLECTIVES)}
    listed["warnings"] = (warnings, _WARNINGS)
    shown = [(name, frame, columns) for name, (frame, columns) in listed.items() if frame.height]
    if shown:
        named = ", ".join(f"{numbers.count(frame.height, 'row')} of {name}" for name, frame, _ in shown)
        folds.fold(f"NCCL in tables · {named}", lambda: _draw_tables(shown), key="nccl")


def _draw_tables(shown: Sequence[tuple[str, pl.DataFrame, Sequence[str]]]) -> None:
    for _, frame, columns in shown:
        tables.table(frame, [name for name in columns if frame[name].count()])
