"""One hang: which ranks waited, when, for which rank, and the evidence."""

from __future__ import annotations

from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.charts import hang as charts
from sweepscope.dashboard.charts import network as network_charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.symbols import STATUS
from sweepscope.dashboard.queries import hang as queries
from sweepscope.dashboard.queries import network as network_queries
from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.text import hang as texts
from sweepscope.dashboard.text import network as network_texts
from sweepscope.dashboard.view_models import hang as hangs
from sweepscope.dashboard.view_models.network import ranks_of
from sweepscope.dashboard.widgets import basic, choices, lists, tables, urls

_STATES = names("rank state ahead last_enqueued_seq last_started_seq last_completed_seq waited_s line_no source_path")
_VARIANTS = ("ranks", "op", "input_sizes", "input_dtypes", "output_sizes", "output_dtypes", "op_state")
_LINES = ("source_path", "line_no", "hang_line_kind", "rank", "op", "seq", "printed_at", "text")
_INCIDENTS_SHOWN = 50
_LINES_SHOWN = 8
_STACKS_SHOWN = 4


def _page(view: View) -> None:
    address = hangs.file_and_line(st.query_params.get("at", ""))
    found = queries.incident(*address).run(view.store.con) if address else pl.DataFrame()
    if found.is_empty():
        _draw_choice(view, is_lost=bool(address))
        return
    wanted = found.row(0, named=True)
    con = view.store.con
    collectives = queries.collectives(wanted).run(con).to_dicts()
    head = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        hang = {**_collective(collectives, wanted), "unit": wanted["unit"]}
        _draw_popovers(hang)
    lines = queries.lines(hang).run(con)
    records = queries.records(hang, around=hangs.BEFORE).run(con) if hang["seq"] is not None else pl.DataFrame()
    if records.is_empty():
        records = queries.records({**hang, "seq": 0}, around=hangs.BEFORE).run(con).head(0)
    states = hangs.states(hang, lines, records)
    with head:
        links = [("All hangs", "network"), ("Failures & cost", "failures"), *_runs(view, hang)]
        meta = texts.meta(hang, len(collectives), hang["num_ranks"])
        basic.head(texts.title(hang), texts.hang_answer(hang), meta, origins=(wanted["origin"],), links=links)
    basic.figures(texts.figures(hang, states))
    _draw_ranks(view, states, spans=hangs.spans(lines, states, hang), done=hangs.activity(records))
    _draw_sequence(view, hang, records)
    _draw_lines(hang, lines)
    basic.how_to_read(texts.HOW_TO_READ)


def _draw_choice(view: View, *, is_lost: bool) -> None:
    """No address, or one of another store: the hangs there are."""
    con = view.store.con
    origins = network_queries.origins().run(con)["origin"].to_list()
    hangs_by_origin = [network_queries.hangs(Scope(origin, None)).run(con) for origin in origins]
    found = pl.concat(hangs_by_origin) if hangs_by_origin else pl.DataFrame()
    if found.is_empty():
        basic.head("Hang", texts.NO_HANG)
        return
    basic.head("Hang", "**This store has no such hang.**" if is_lost else texts.NONE_CHOSEN)
    rows = found.to_dicts()
    _draw_incidents(rows[:_INCIDENTS_SHOWN])
    if rows[_INCIDENTS_SHOWN:]:
        with st.expander(numbers.count(len(rows) - _INCIDENTS_SHOWN, "more hang")):
            _draw_incidents(rows[_INCIDENTS_SHOWN:])
    tables.csv_button(found, "hangs")


def _draw_incidents(rows: list[dict[str, Any]]) -> None:
    cases = []
    for row in rows:
        url = urls.hang_url(row["source_path"], row["line_no"])
        cases.append((texts.hang_title(row), url, network_texts.file_line(row), texts.incident(row)))
    lists.cases(cases)


def _collective(collectives: list[dict[str, Any]], wanted: dict[str, Any]) -> dict[str, Any]:
    """The collective on screen: of several that timed out, the one that the reader chooses."""
    by_name = {f"{row['source_path']}:{row['line_no']}": row for row in collectives}
    names = list(by_name)
    if len(names) < 2:
        return wanted
    chosen = choices.select(
        f"Collective, of {len(names)} that timed out",
        "collective",
        names,
        f"{wanted['source_path']}:{wanted['line_no']}",
        shown=lambda name: texts.collective_option(by_name[name]),
        width=420,
    )
    return {**wanted, **by_name[chosen]}


def _draw_popovers(hang: dict[str, Any]) -> None:
    shell.share_popover()
    records = {"Flight records": queries.records(hang, around=hangs.BEFORE)} if hang["seq"] is not None else {}
    basic.sql_popover(
        {"Collectives": queries.collectives(hang), "Lines": queries.lines(hang), **records, "Runs": queries.runs(hang)}
    )


def _runs(view: View, hang: dict[str, Any]) -> list[tuple[str, str]]:
    found = queries.runs(hang).run(view.store.con)
    return [
        (f"Run {row['run_id']} {STATUS[row['status']].text}", urls.run_url(row["run_id"]))
        for row in found.head(2).iter_rows(named=True)
    ]


def _draw_ranks(view: View, states: pl.DataFrame, *, spans: list[hangs.Span], done: pl.DataFrame) -> None:
    if states.is_empty():
        basic.note("No line names the ranks of its group.")
        return
    with st.container(key="hero"):
        left, right = st.columns([0.5, 0.5] if spans or done.height else [0.7, 0.3], gap="large")
    with left, st.container(gap="xsmall"):
        basic.section("Ranks", texts.states_text(states))
        alt = f"State of each rank: {charts.states_alt(states)}."
        basic.chart(network_charts.draw_ranks(states, view.theme), key="ranks", alt=alt)
    with right, st.container(gap="xsmall"):
        if spans:
            basic.section("When each waited", "until it gave up")
            figure = charts.draw_timeline(spans, states["rank"].to_list(), view.theme)
            basic.chart(figure, key="timeline", alt=f"Time that {numbers.count(len(spans), 'rank')} spent waiting.")
        elif done.height:
            basic.section("When each enqueued its last collectives", "large: the last one")
            alt = f"Last collectives of {numbers.count(states.height, 'rank')} over time."
            basic.chart(charts.draw_activity(done, states, view.theme), key="activity", alt=alt)
        else:
            basic.section("When each waited")
            basic.note("These lines carry no time; older releases of PyTorch print none.")
    shown = states.with_columns(
        state=pl.col("detail"), ahead=pl.Series([texts.ahead_text(value) for value in states["ahead"]], dtype=pl.String)
    )
    used = [name for name in _STATES if shown[name].count()]
    basic.section("Each rank", "how far it had come in the group")
    tables.table(shown.head(64), used)
    if shown.height > 64:
        basic.note(f"The first 64 of {numbers.number(shown.height)} ranks; the CSV has all.")
    tables.csv_button(states, "hang_ranks")


def _draw_sequence(view: View, hang: dict[str, Any], records: pl.DataFrame) -> None:
    """Collectives around the hang, from dumps of the flight recorder."""
    if records.is_empty():
        if hang["evidence_source"] == "watchdog":
            basic.section("Flight recorder")
            basic.note(
                "There is no dump beside this log. TORCH_FR_BUFFER_SIZE=2000 (TORCH_NCCL_TRACE_BUFFER_SIZE in older "
                "releases) with TORCH_NCCL_DUMP_ON_TIMEOUT=1 writes one per rank, which shows which rank lacks which "
                "collective."
            )
        return
    steps = hangs.sequence(records, hang)
    members = set(range(hang["num_ranks"] or 0)) | set(ranks_of(hang["suspect"])) | set(ranks_of(hang["ranks_silent"]))
    present = set(queries.dumps(hang).run(view.store.con)["rank"].to_list()) | set(steps.ranks)
    absent = sorted(members - present)
    basic.section("Flight recorder", "collectives of the group, by sequence number; the frame is the one that hangs")
    figure = charts.draw_sequence(steps, hang["seq"], view.theme)
    basic.chart(figure, key="sequence", alt=texts.sequence_alt(steps, hang))
    basic.note(texts.sequence_text(steps, absent))
    brought = hangs.variants(records, hang["seq"])
    if brought.height:
        basic.section(f"What ranks brought to seq {hang['seq']}", "operation, sizes and types")
        tables.table(brought, _VARIANTS)
    suspects = ranks_of(hang["suspect"]) or ranks_of(hang["ranks_reporting"])
    stacks = hangs.last_stacks(records, suspects[:_STACKS_SHOWN])
    if stacks:
        basic.section("Where they were", "the Python frames of the last collective, innermost first")
        titled = [(row["stack"].replace(" < ", "\n"), texts.stack_title(rank, row)) for rank, row in stacks]
        basic.log_lines([(None, stack, title) for stack, title in titled])


def _draw_lines(hang: dict[str, Any], lines: pl.DataFrame) -> None:
    """The lines themselves, those of this collective first."""
    if lines.is_empty():
        return
    of_hang = hangs.of_collective(lines, hang)
    others = lines.join(of_hang, on=["source_path", "line_no", "hang_line_kind"], how="anti")
    ordered = pl.concat([of_hang, others]).to_dicts()
    basic.section("Evidence lines", f"{numbers.count(len(ordered), 'line')}; file and line behind each")
    shown = ordered[:_LINES_SHOWN]
    addresses = [urls.log_url(row["source_path"], row["line_no"]) for row in shown]
    basic.log_lines([texts.evidence_line(row) for row in shown], addresses)
    if len(ordered) > _LINES_SHOWN:
        with st.expander(f"All {numbers.count(len(ordered), 'line')}"):
            tables.table(lines, _LINES, wide=("text",))
    tables.csv_button(lines, "hang_lines")


_page(shell.begin())
