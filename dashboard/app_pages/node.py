"""Nodes: which ones have something against them; and one node: its runs, failures, stragglers, links and memory."""

from __future__ import annotations

from typing import Any

import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.links import follow
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.entry_kinds import kind_name
from sweepscope.dashboard.format.symbols import OUTCOME
from sweepscope.dashboard.queries import node as queries
from sweepscope.dashboard.sections import page_head
from sweepscope.dashboard.selection.slices import offered_origins
from sweepscope.dashboard.text import node as texts
from sweepscope.dashboard.widgets import basic, lists, tables, urls
from sweepscope.dashboard.widgets.basic import link, rich

_RUNS = names("run_id started_at outcome model num_nodes num_gpus layout mfu gpu_hours host_source is_first_failed")
_NODES = names(
    "host runs_tried runs_judged runs_failed failure_rate failure_rate_low failure_rate_high failure_rate_elsewhere "
    "runs_naming runs_straggling slow_findings runs_occupied first_run_at last_run_at"
)
_SAMPLES = names("gpu_index gpu_uuid accelerator samples mem_used_max_bytes mem_used_bytes mem_total_bytes power_w")
_LISTED = 20
_LINES_SHOWN = 12


def _page(view: View) -> None:
    host = st.query_params.get("node", "")
    found = queries.of_host(host).run(view.store.con).to_dicts() if host else []
    if found:
        _draw_node(view, found)
    else:
        _draw_list(view, host)


def _draw_list(view: View, lost: str) -> None:
    """All nodes of an origin, the suspect ones first."""
    con = view.store.con
    query = queries.nodes()
    known = query.run(con)
    if known.is_empty():
        basic.head(texts.TITLE, texts.NONE)
        basic.note(texts.HOW_TO_NAME)
        return
    origins = offered_origins(known["origin"].unique().to_list())
    origin = page_head.origin(origins, view.filters.origin, "measured", view.chosen.origin if view.chosen else None)
    frame = known.filter(origin=origin)
    rows = frame.to_dicts()
    unknown = f"This store has no node {lost}. " if lost else ""
    answer = unknown + texts.list_answer(rows)
    basic.head(texts.TITLE, answer, origins=(origin,), links=page_head.other_origins(origins, origin))
    with st.container(horizontal=True):
        shell.share_popover()
        basic.sql_popover({"Nodes": query})
    shown = [row for row in rows if row["is_suspect"]][:_LISTED]
    if shown:
        basic.section("Evidence against nodes", "the gravest first")
        lists.items([(row["host"], "; ".join(texts.reasons(row)), urls.node_url(row["host"])) for row in shown])
    basic.section("All nodes", numbers.count(len(rows), "node"))
    picked = tables.selectable_table(frame, _NODES, key="nodes")
    tables.csv_button(frame, "nodes")
    basic.how_to_read(texts.HOW_TO_READ)
    if picked is not None:
        follow(urls.node_url(rows[picked]["host"]))


def _draw_node(view: View, found: list[dict[str, Any]]) -> None:
    row = next((one for one in found if one["origin"] == view.filters.origin), found[0])
    con, origin, host = view.store.con, row["origin"], row["host"]
    links = [("all nodes", "node"), ("failures & cost", "failures"), ("network", "network")]
    basic.head(f"Node {host}", texts.answer(row), texts.meta(row), origins=(origin,), links=links)
    basic.figures(texts.figures(row))
    runs, lines = queries.runs(origin, host), queries.lines(origin, host)
    bench, samples = queries.benchmarks(origin, host), queries.samples(host)
    left, right = st.columns([0.55, 0.45], gap="large")
    with left, st.container(gap="xsmall"):
        _draw_runs(runs.run(con).to_dicts())
    with right, st.container(gap="xsmall"):
        _draw_lines(lines.run(con).to_dicts())
        _draw_benchmarks(bench.run(con).to_dicts())
    frame = runs.run(con)
    tables.table_twin("Runs", frame, _RUNS, csv_name=f"runs_on_{host}", is_counted=True)
    sampled = samples.run(con)
    if sampled.height:
        tables.table_twin("GPUs as sampled", sampled, _SAMPLES, csv_name=f"gpus_of_{host}", is_counted=True)
    with st.container(horizontal=True):
        shell.share_popover()
        basic.sql_popover({"Node": queries.of_host(host), "Runs": runs, "Lines": lines, "Benchmarks": bench})
    basic.how_to_read(texts.HOW_TO_READ)


def _draw_runs(rows: list[dict[str, Any]]) -> None:
    basic.section("Runs on it", "the newest first")
    if not rows:
        basic.note("No run is known to have been on it.")
        return
    cells = []
    for row in rows[:_LISTED]:
        mark = OUTCOME[row["outcome"]]
        first = " · failed first here" if row["is_first_failed"] else ""
        name = " · ".join(str(part) for part in (row["model"] or "model unknown", row["layout"]) if part)
        gpus = numbers.number(row["num_gpus"])
        time = numbers.moment(row["started_at"])
        cells.append((rich(time), link(name, urls.run_url(row["run_id"])), rich(gpus), rich(mark.text + first)))
    lists.grid(("Started", "Run", "GPUs", "Ended"), cells, label="Runs on the node")
    if rows[0]["found"] > len(cells):
        basic.note(f"The newest {len(cells)} of {numbers.number(rows[0]['found'])}; the table below has more.")


def _draw_lines(rows: list[dict[str, Any]]) -> None:
    basic.section("Lines that name it", "findings first")
    if not rows:
        basic.note("No line of a failure, straggler or foreign process names it.")
        return
    shown = rows[:_LINES_SHOWN]
    addresses = [urls.log_url(row["source_path"], row["line_no"]) for row in shown]
    basic.log_lines([(row["line_no"], row["text"] or "", kind_name(row["entry_kind"])) for row in shown], addresses)
    if rows[0]["found"] > len(shown):
        basic.note(f"{len(shown)} of {numbers.count(rows[0]['found'], 'line')}.")


def _draw_benchmarks(rows: list[dict[str, Any]]) -> None:
    if rows:
        basic.section("nccl-tests", "bus bandwidth beside like benchmarks")
        lists.rows([(rich(row["evidence"]), rich(row["remedy"])) for row in rows], is_quiet_value=True)


_page(shell.begin())
