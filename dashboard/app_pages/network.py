"""Network: what slows the collectives of a sweep, how fast they are, and which rank a hang waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.charts import network as charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.queries import network as queries
from sweepscope.dashboard.queries import topology as topology_queries
from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.sections import page_head, topology
from sweepscope.dashboard.selection.slices import offered_origins
from sweepscope.dashboard.text import hang as hang_texts
from sweepscope.dashboard.text import network as texts
from sweepscope.dashboard.text import origins as origin_texts
from sweepscope.dashboard.text import topology as topology_texts
from sweepscope.dashboard.view_models import network
from sweepscope.dashboard.view_models.network import Finding
from sweepscope.dashboard.widgets import basic, choices, folds, lists, tables, urls

TITLE = "Network"
_UNKNOWN = "?"
_EVIDENCE_SHOWN = 3
_FINDINGS = ("nccl_rule", "evidence", "places", "remedy", "fact_source", "sweep", "source_path", "line_no", "run_id")
_FILES = names(
    "file nccl_flavour nccl_version nranks_max num_nodes num_communicators num_channels transports networks "
    "init_time_s num_warns num_hangs nccl_env run_id source_path"
)
_HANGS = ("hang", "suspect", "waited_s", "file")  # who waited, who did not and why are shown beside the table
_BENCH = ("op", "num_nodes", "nranks", "fabric", "message", "busbw_bytes_per_s", "best_busbw_bytes_per_s", "files")
_HANGS_HEIGHT = 220  # px: five of them, and the chosen one below still beside the chart on the right
_STATES = ("rank", "state", "last_enqueued_seq", "last_started_seq", "last_completed_seq")


def _page(view: View) -> None:
    con = view.store.con
    found = queries.origins().run(con)
    if found.is_empty():
        page_head.nothing(TITLE, texts.NOTHING, texts.HOW_TO_GET)
        return
    origins = offered_origins(found["origin"].to_list())
    origin = page_head.origin(origins, view.filters.origin)
    sweeps = queries.sweeps(origin).run(con)
    head, controls = page_head.regions()
    with controls:
        scope = Scope(origin, page_head.choose_sweep(dict(sweeps.iter_rows()), "file"))
    totals = queries.totals(scope).run(con).row(0, named=True)
    rows = queries.findings(scope).run(con)
    findings = network.by_rule(rows)
    hangs = queries.hangs(scope).run(con)
    inits = queries.init_times(scope).run(con)
    best = next(iter(queries.best_bandwidth(scope).run(con).to_dicts()), None)
    with controls:
        op = _operation(view, scope)
        shell.share_popover()
        basic.sql_popover(
            {
                "Findings": queries.findings(scope),
                "Files": queries.files(scope),
                "Bandwidth": queries.bandwidths(scope, op),
                "Init times": queries.init_times(scope),
                "Hangs": queries.hangs(scope),
            }
        )
    with head:
        links = page_head.other_origins(origins, origin)
        meta = texts.meta(totals, scope.sweep, sweeps.height)
        basic.head(TITLE, texts.answer(totals, findings, hangs), meta, origins=(origin,), links=links)
        page_head.say_instead(con, origin, view.filters.origin, origin_texts.NO_NETWORK)
    basic.figures(texts.figures(totals, inits, best, hangs))
    with st.container(key="hero"):
        left, right = st.columns([0.52, 0.48], gap="large")
    with left, st.container(gap="small"):
        _draw_findings(findings)
        _draw_init(view, inits)
    with right, st.container(gap="xsmall"):
        _draw_bandwidth(view, scope, op)
    left, right = st.columns([0.52, 0.48], gap="large")
    with left, st.container(gap="xsmall"):
        _draw_hangs(view, hangs)
    with right, st.container(gap="xsmall"):
        _draw_by_nodes(view, scope, op)
    _draw_topology(view, scope)
    _draw_tables(view, scope, rows)


def _operation(view: View, scope: Scope) -> str | None:
    """The benchmarked operation on the chart; a table that does not print its own counts as one more."""
    offered = [name or _UNKNOWN for name in queries.operations(scope).run(view.store.con)["op"]]
    if not offered:
        return None
    wanted = choices.select(
        "Bandwidth of", "op", offered, shown=lambda name: texts.operation(None if name == _UNKNOWN else name), width=200
    )
    return None if wanted == _UNKNOWN else wanted


def _draw_findings(findings: list[Finding]) -> None:
    basic.section("Findings", "the costly ones first; each opens on its lines and what to do" if findings else "")
    if not findings:
        basic.note(texts.NO_FINDING)
    with st.container(gap=None):
        for finding in findings:
            lines = [(row["evidence"], texts.file_line(row), _address(row)) for row in finding.rows[:_EVIDENCE_SHOWN]]
            left_out = len(finding.rows) - _EVIDENCE_SHOWN
            more = f"{numbers.number(left_out)} more in the table below. " if left_out > 0 else ""
            remark = f"{more}{texts.advice(finding)}"
            lists.folded(*texts.rule_title(finding), lines, remark, is_open=finding is findings[0])


def _address(finding: Mapping[str, Any]) -> str | None:
    """Where a finding leads: the node that it is about, else its run."""
    if finding["host"]:
        return urls.node_url(finding["host"])
    return urls.run_url(finding["run_id"]) if finding["run_id"] else None


def _draw_bandwidth(view: View, scope: Scope, op: str | None) -> None:
    rows = queries.bandwidths(scope, op).run(view.store.con)
    basic.section("Bus bandwidth by size", f"nccl-tests, {texts.operation(op)}" if rows.height else "nccl-tests")
    if rows.is_empty():
        basic.note(texts.NO_BENCH)
        return
    named, lines, left_out = network.bandwidth_lines(rows)
    peaks = network.peaks(queries.links_of(scope, op).run(view.store.con))
    hovers = [texts.bandwidth_hover(row) for row in named.iter_rows(named=True)]
    figure = charts.draw_bandwidth(named, lines, hovers, view.theme, peaks)
    basic.chart(figure, key="bandwidth", alt=texts.bandwidth_alt(op, lines))
    if note := texts.peaks_note(peaks):
        basic.note(note)
    if left_out:
        basic.note(f"{numbers.count(left_out, 'more line')} in the table below.")


def _draw_by_nodes(view: View, scope: Scope, op: str | None) -> None:
    """At the size that others published, nodes across: measured beside published."""
    published = queries.published(op).run(view.store.con)
    if published.is_empty():
        return
    size = published["message_bytes"][0]
    measured = queries.by_nodes(scope, op, size).run(view.store.con)
    if measured.is_empty():
        return
    title = f"Bus bandwidth by nodes, at {network.size_text(size)}"
    basic.section(title, f"{texts.operation(op)}, beside what others published")
    hovers = [texts.nodes_hover(row) for row in measured.iter_rows(named=True)]
    published_hovers = [texts.published_hover(row) for row in published.iter_rows(named=True)]
    figure = charts.draw_by_nodes(measured, published, hovers, published_hovers, view.theme)
    alt = (
        f"Bandwidth of {texts.operation(op)} by nodes: {numbers.count(measured.height, 'measured point')} and "
        f"{numbers.count(published.height, 'published one')}."
    )
    basic.chart(figure, key="by_nodes", alt=alt)
    basic.note(texts.PUBLISHED_NOTE)


def _draw_init(view: View, inits: pl.DataFrame) -> None:
    basic.section("Initialisation", "communicators of two ranks or more, slowest rank of each")
    if inits.is_empty():
        basic.note(texts.NO_INIT)
        return
    hovers = [texts.init_hover(row) for row in inits.iter_rows(named=True)]
    alt = f"Initialisation times of {numbers.count(inits.height, 'communicator')}, a row per number of ranks."
    basic.chart(charts.draw_init(inits, hovers, view.theme), key="init", alt=alt)


def _draw_topology(view: View, scope: Scope) -> None:
    offered = topology_queries.communicators(scope).run(view.store.con).to_dicts()
    if offered:
        title = "Topology: hosts, ranks and what connects them"
        is_asked = bool({"communicator", "show"} & set(st.query_params))
        folds.fold(title, lambda: topology.draw(view.store.con, view.theme, offered), key="topology", is_open=is_asked)
    else:
        basic.section("Topology")
        basic.note(topology_texts.NONE)


def _draw_hangs(view: View, hangs: pl.DataFrame) -> None:
    basic.section("Hangs", "choose one to see its ranks" if hangs.height else "")
    if hangs.is_empty():
        basic.note(texts.NO_HANG)
        return
    shown = hangs.with_columns(
        hang=pl.Series([hang_texts.hang_title(row) for row in hangs.iter_rows(named=True)], dtype=pl.String),
        file=pl.Series([texts.file_line(row) for row in hangs.iter_rows(named=True)], dtype=pl.String),
        waited_s=pl.col("ran_for_ms") / 1000,
        suspect=pl.col("suspect").fill_null("not determinable"),
    )
    picked = tables.selectable_table(shown, _HANGS, key="hangs", height=_HANGS_HEIGHT)
    _draw_hang(view, hangs.row(min(picked or 0, hangs.height - 1), named=True))


def _draw_hang(view: View, hang: dict[str, Any]) -> None:
    """One incident: the suspect with its reason, and every rank."""
    st.html(
        f'<h3 class="ss-section">{basic.rich(hang_texts.hang_title(hang))}</h3>'
        f'<p class="ss-plain">{basic.rich(hang_texts.hang_answer(hang))}</p>'
        f'<p class="ss-note">{basic.rich(hang_texts.hang_meta(hang))} · '
        f"{basic.link('Open this hang', urls.hang_url(hang['source_path'], hang['line_no']))}</p>"
    )
    states = network.rank_states(hang, queries.recorded(hang).run(view.store.con))
    if states.is_empty():
        basic.note("No line names the ranks of its group.")
        return
    text = hang_texts.states_text(states)
    basic.chart(charts.draw_ranks(states, view.theme), key="ranks", alt=f"State of each rank. {text}.")
    basic.note(text)
    in_words = states.with_columns(state=pl.col("detail"))
    tables.table_twin("Ranks as a table", in_words, _STATES, csv_name="hang_ranks")


def _draw_tables(view: View, scope: Scope, findings: pl.DataFrame) -> None:
    con = view.store.con
    files = queries.files(scope).run(con)
    if files.is_empty():
        basic.note("No file here holds NCCL debug output. Set NCCL_DEBUG=INFO in the job.")
    else:
        title = f"Versions, transports and channels of {numbers.count(files.height, 'file')} with NCCL debug output"
        folds.fold(title, lambda: _draw_files(files), key="files")
    if findings.height:
        tables.table_twin("Findings as a table", findings, _FINDINGS, csv_name="nccl_findings", is_counted=True)
    bench = [queries.bandwidths(scope, name).run(con) for name in queries.operations(scope).run(con)["op"]]
    if bench:
        rows = pl.concat(bench, how="vertical_relaxed")
        sized = rows.with_columns(message=pl.col("message_bytes").map_elements(network.size_text, pl.String))
        tables.table_twin(
            f"Bandwidths as a table, {numbers.count(rows.height, 'row')}",
            sized,
            _BENCH,
            csv=rows,
            csv_name="nccl_bandwidths",
        )
    basic.how_to_read(texts.HOW_TO_READ)


def _draw_files(files: pl.DataFrame) -> None:
    named = files.with_columns(file=pl.col("source_path").str.split("/").list.last())
    tables.table(named, [name for name in _FILES if named[name].count()], wide=("transports", "nccl_env"))
    tables.csv_button(files, "nccl_files")


_page(shell.begin())
