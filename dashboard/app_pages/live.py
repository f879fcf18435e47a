"""Running now: jobs whose logs are being written, redrawn every few seconds in place."""

from __future__ import annotations

import html
import time
from collections.abc import Sequence

import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.store import latest_store
from sweepscope.dashboard.queries import live as queries
from sweepscope.dashboard.text import live as texts
from sweepscope.dashboard.text import run as run_texts
from sweepscope.dashboard.view_models.live import Job, job
from sweepscope.dashboard.widgets import basic, lists
from sweepscope.dashboard.widgets.basic import rich
from sweepscope.pipeline.inspection import live_log

TITLE = "Running now"
_EVERY_S = 5


def _page() -> None:
    st.title(TITLE, anchor=False)
    _draw()
    with st.container(horizontal=True):
        shell.share_popover()
        basic.sql_popover({"Running": queries.live()})
    basic.notes([texts.HOW_FRESH, texts.HOW_TO_READ])


@st.fragment(run_every=_EVERY_S)
def _draw() -> None:
    """The jobs of the newest version, whichever the rest of the visit shows: what runs now is of no older one."""
    store = latest_store()
    now_s = time.time()
    jobs = [_job(row, now_s) for row in queries.live().run(store.con).to_dicts()]
    live, dead = [one for one in jobs if one.is_live], [one for one in jobs if not one.is_live]
    meta = f"store version {store.version} · {texts.at(now_s)}"
    st.html(f'<p class="ss-answer">{basic.rich(texts.answer(jobs))}</p><p class="ss-meta">{basic.rich(meta)}</p>')
    if live:
        st.html(_table(live))
    if dead:
        basic.section("No longer written", "running when they were read last; nothing tells how they ended")
        lists.cases([(run_texts.short_name(one.row), _url(one), *texts.ended(one)) for one in dead])


def _job(row: dict[str, object], now_s: float) -> Job:
    end = live_log.end_of(str(row["source_path"]))
    return job(row, now_s, mtime_s=end.mtime_s if end else None, last_line=end.last_line if end else "")


def _table(jobs: Sequence[Job]) -> str:
    """A row per job, all of one height, so that nothing moves when figures change."""
    heads = ("Run", "Progress", "Left", "Tokens/s/GPU", "Last written")
    head = "".join(f"<th scope=col>{name}</th>" for name in heads)
    return f'<table class="ss-live"><thead><tr>{head}</tr></thead>{"".join(map(_row, jobs))}</table>'


def _url(one: Job) -> str:
    return f"run?run={one.row['run_id']}"


def _row(one: Job) -> str:
    name = basic.link(run_texts.short_name(one.row), _url(one))
    cells = (
        ("", f'{name}<span class="what">{basic.rich(texts.what(one))}</span>'),
        (
            "",
            f'<span class="bar"><i style="width:{100 * (one.share or 0):.1f}%"></i></span>{rich(texts.progress(one))}',
        ),
        ("", rich(texts.left(one))),
        ("number", rich(texts.speed(one))),
        ("silent" if one.is_silent else "", rich(texts.silence(one))),
    )
    drawn = "".join(f'<td class="{kind}">{cell}</td>' for kind, cell in cells)
    line = html.escape(one.last_line) or "its log cannot be read from here"
    return f'<tbody><tr>{drawn}</tr><tr><td colspan="5" class="line" title="{line}">{line}</td></tr></tbody>'


shell.begin()
_page()
