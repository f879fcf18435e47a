"""One time line of what happened to a run, on its page: the chart, a table that leads to each line, and its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.charts import timeline as charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.entry_kinds import kind_name
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.queries import run_network as network_queries
from sweepscope.dashboard.queries import timeline as queries
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.text import timeline as texts
from sweepscope.dashboard.view_models import timeline as timelines
from sweepscope.dashboard.widgets import basic, folds, lists, tables, urls
from sweepscope.dashboard.widgets.basic import link, rich

_HEADS = ("Time", "What", "Source", "Rank · node", "Text", "Line")
_COLUMNS = names("ts is_time_printed entry_source entry_kind rank host text source_path line_no")
_GROUPS_SHOWN = 14
_HOSTS_SHOWN = 16


def draw(con: Reader, theme: Theme, run: dict[str, Any]) -> None:
    """The time line open where something went wrong, else behind its heading; nothing of a run without entries."""
    found = queries.entries(run["run_id"]).run(con)
    if found.is_empty():
        return
    findings = network_queries.findings(run["run_id"]).run(con)
    entries = timelines.with_findings(found.to_dicts(), findings.to_dicts())
    if texts.is_incident(entries):
        basic.section("Timeline", texts.qualifier(entries))
        _draw(con, theme, run["run_id"], entries)
    else:
        title = f"Timeline · {texts.qualifier(entries)}"
        folds.fold(title, lambda: _draw(con, theme, run["run_id"], entries), key="timeline")


def hosts(con: Reader, run_id: str) -> tuple[str, str] | None:
    """Name and value of a row on the run's nodes, each a link to its page; None where no source names any."""
    found = queries.hosts(run_id).run(con)
    if found.is_empty():
        return None
    links = [link(name, urls.node_url(name)) for name in found["host"].head(_HOSTS_SHOWN)]
    more = found.height - len(links)
    return "Nodes", ", ".join(links) + (f" and {more} more" if more else "")


def _draw(con: Reader, theme: Theme, run_id: str, entries: Sequence[Row]) -> None:
    if sign := texts.sign(entries):
        st.html(f'<p class="ss-plain">{rich(sign)}</p>')
    timeline = timelines.timeline(entries)
    if timeline is None:
        basic.note("None of these lines has a time; they are in the order of their files.")
    else:
        basic.chart(charts.draw(timeline, theme), key="incident", alt=texts.alt(timeline), is_zoomable=True)
        if timeline.is_queue_cut:
            basic.note(texts.queue_note(entries))
    groups = timelines.grouped(entries)
    _draw_groups(groups[:_GROUPS_SHOWN], is_one_day=_is_one_day(entries))
    title = f"All {numbers.count(int(entries[0]['found']), 'entry', 'entries')}, and how to read them"
    folds.fold(title, lambda: _draw_all(con, run_id, entries, groups[_GROUPS_SHOWN:]), key="entries")
    basic.sql_popover({"Timeline": queries.entries(run_id)})


def _draw_all(con: Reader, run_id: str, entries: Sequence[Row], further: list[timelines.Group]) -> None:
    if further:
        _draw_groups(further, is_one_day=_is_one_day(entries))
    frame = pl.DataFrame(entries, infer_schema_length=None)
    tables.table(frame, [name for name in _COLUMNS if frame[name].count()], wide=("text",))
    rows = int(entries[0]["found"])
    tables.csv_later(queries.all_entries(run_id), con, f"timeline_{run_id}", rows=rows)
    basic.notes(texts.HOW_TO_READ)


def _is_one_day(entries: Sequence[Row]) -> bool:
    return len({row["ts"].date() for row in entries if row["ts"]}) <= 1


def _draw_groups(groups: list[timelines.Group], *, is_one_day: bool) -> None:
    lines, marks = [], []
    for group in groups:
        row = group.first
        mark = timelines.GRADES[timelines.grade(row["entry_kind"])]
        number, address = _evidence(row)
        lines.append(
            (
                rich(texts.group_time(group, is_one_day=is_one_day)),
                f'<span class="sign">{mark.symbol}</span> {rich(kind_name(row["entry_kind"]))}',
                rich(timelines.LANES[row["entry_source"]]),
                _place(group),
                rich(texts.group_text(group)),
                link(number, address) if number and address else rich(number),
            )
        )
        marks.append(timelines.grade(row["entry_kind"]))
    lists.grid(_HEADS, lines, label="Entries of the timeline", marks=marks)


def _evidence(row: Row) -> tuple[str, str | None]:
    """Text and address of where an entry is found: its line, the page of its hang or snapshot; dumps have no lines."""
    if row["entry_source"] == "flight_recorder":
        is_hang = row["entry_kind"] == "suspect"
        return ("hang", urls.hang_url(row["source_path"], row["line_no"])) if is_hang else ("dump", None)
    if row["line_no"] is None:
        is_snapshot = row["entry_source"] == "memory"
        return ("snapshot", urls.snapshot_url(row["source_path"], None)) if is_snapshot else ("", None)
    return numbers.number(row["line_no"]), urls.log_url(row["source_path"], row["line_no"])


def _place(group: timelines.Group) -> str:
    """Ranks, and nodes as links to their pages."""
    ranks = [rich(texts.group_ranks(group))] if group.ranks else []
    links = [link(name, urls.node_url(name)) for name in group.hosts[: texts.NAMED_HOSTS]]
    more = len(group.hosts) - len(links)
    return " · ".join([*ranks, ", ".join(links) + (f" and {more} more" if more > 0 else "")] if links else ranks)
