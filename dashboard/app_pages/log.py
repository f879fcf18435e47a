"""Log: a file that was ingested, at one of its lines, read from where it lies."""

from __future__ import annotations

import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.queries import log as queries
from sweepscope.dashboard.text import log as texts
from sweepscope.dashboard.widgets import basic, lists, urls
from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.inspection.log_window import Known, Window, read_window

TITLE = "Log"
# The line itself is on the first screen.
_AROUND = 24
_LISTED = 12


def _page(view: View) -> None:
    path, line_no = st.query_params.get("file", ""), _line_no()
    found = queries.known(path).run(view.store.con).to_dicts() if path else []
    if not found or line_no is None:
        basic.head(TITLE, texts.unknown(path) if path and line_no is not None else texts.NOT_CHOSEN)
        st.html(f'<p class="ss-note">{basic.link("All runs", "runs")}</p>')
        return
    facts = {name: found[0][name] for name in ("path", "bytes", "mtime", "content_bytes", "content_digest")}
    try:
        window = read_window(Known(**facts), line_no, around=_AROUND)
    except SweepscopeError as error:
        basic.head(TITLE, f"**Line {numbers.number(line_no)} cannot be shown.**", path)
        basic.problem(str(error))
        _draw_evidence(view, path, line_no)
        return
    basic.head(TITLE, texts.answer(path, line_no, len(window.lines)), path)
    _draw_ways(view, path, window)
    _draw_lines(view, path, line_no, window)
    basic.note(texts.NOTE)
    _draw_evidence(view, path, line_no)
    shell.share_popover()


def _line_no() -> int | None:
    """The line of the address; None for what is no number of a line."""
    text = st.query_params.get("line", "")
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) < 10**12 else None


def _draw_ways(view: View, path: str, window: Window) -> None:
    """Back to the runs of the file, and on to the lines before and after."""
    runs = queries.runs_of(path).run(view.store.con)
    links = [basic.link(texts.run_name(row), urls.run_url(row["run_id"])) for row in runs.head(4).iter_rows(named=True)]
    last = window.first + len(window.lines) - 1
    if window.first > 1:
        links.append(basic.link("Earlier lines", urls.log_url(path, max(1, window.first - _AROUND)) or ""))
    if window.has_more:
        links.append(basic.link("Later lines", urls.log_url(path, last + 1) or ""))
    if links:
        st.html(f'<p class="ss-plain ss-way">{" · ".join(links)}</p>')


def _draw_lines(view: View, path: str, line_no: int, window: Window) -> None:
    evidence = queries.evidence(path).run(view.store.con)
    rows = [
        (number, text, texts.marked(evidence, number)) for number, text in enumerate(window.lines, start=window.first)
    ]
    with st.container(key="log"):
        basic.log_lines(rows, marked=line_no)


def _draw_evidence(view: View, path: str, line_no: int) -> None:
    """Other evidence lines of the file, each a link to its place."""
    rows = queries.evidence(path).run(view.store.con).to_dicts()
    others = [row for row in rows if row["line_no"] != line_no][:_LISTED]
    if others:
        basic.section("Other evidence lines of this file")
        lists.items([(*texts.evidence_line(row), urls.log_url(path, row["line_no"])) for row in others])


_page(shell.begin())
