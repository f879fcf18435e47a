"""Notes and tags on a run or a cell: shown on its page, added and removed there where the page may write."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from sweepscope.dashboard.app import editing
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.app.store import adopt_latest
from sweepscope.dashboard.queries import notes as queries
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.text import notes as texts
from sweepscope.dashboard.widgets import basic
from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.inspection import keep_notes
from sweepscope.pipeline.store import published

_PROBLEM = "notes_problem"


def draw_run(view: View, run_id: str) -> None:
    """Those about a run."""
    if view.store.has("notes"):
        _draw(queries.of_run(run_id).run(view.store.con).to_dicts(), {"run_id": run_id}, is_cell=False)


def draw_cell(view: View, cell: Mapping[str, Any]) -> None:
    """Those on a cell, by its values of the columns that name one."""
    if view.store.has("notes"):
        known = {name: value for name, value in cell.items() if value is not None}
        _draw(queries.of_cell(cell).run(view.store.con).to_dicts(), known, is_cell=True)


def _draw(rows: Sequence[Row], target: Mapping[str, Any], *, is_cell: bool) -> None:
    basic.section("Notes and tags", texts.qualifier(rows))
    may_keep = editing.may_keep()
    key = f"{zlib.crc32(repr(sorted(target.items())).encode()):x}"
    for row in rows:
        shown = f"`{row['text']}`" if row["note_kind"] == "tag" else row["text"]
        mark = '<span class="ss-tag">{}</span>' if row["note_kind"] == "tag" else "{}"
        aside = basic.rich(texts.aside(row, is_cell=is_cell))
        body = f"{mark.format(basic.rich(row['text']))} <small>{aside}</small>"
        if not may_keep:
            st.html(f'<p class="ss-plain ss-written">{body}</p>')
            continue
        with st.container(horizontal=True, vertical_alignment="center", key=f"note_{key}_{row['note_id']}"):
            st.html(f'<p class="ss-plain ss-written">{body}</p>')
            st.button(
                "Remove",
                key=f"remove_{key}_{row['note_id']}",
                help=f"Remove {shown}",
                type="tertiary",
                on_click=_remove,
                args=(row["note_id"],),
            )
    with st.popover("Add a note or tag", icon=":material/edit_note:"):
        if not may_keep:
            st.code(texts.by_command(target, published.named_home()), language=None, wrap_lines=True)
        else:
            st.text_area("Note", key=f"note_text_{key}", max_chars=2000, height=80)
            st.text_input("Tags, with commas between", key=f"note_tags_{key}", placeholder="paper, rerun")
            st.button("Save", type="primary", key=f"note_save_{key}", on_click=_keep, args=(dict(target), key))
    if problem := st.session_state.pop(_PROBLEM, None):
        basic.problem(problem)


def _keep(target: dict[str, Any], key: str) -> None:
    if not editing.may_keep():
        return
    note, tags = st.session_state[f"note_text_{key}"] or "", st.session_state[f"note_tags_{key}"] or ""
    if not note.strip() and not tags.strip(" ,"):
        st.session_state[_PROBLEM] = texts.NOTHING_WRITTEN
        return
    try:
        keep_notes.keep(published.default_home(), target, note=note, tags=tags.split(","))
    except SweepscopeError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    st.session_state[f"note_text_{key}"] = st.session_state[f"note_tags_{key}"] = ""
    adopt_latest()


def _remove(note_id: str) -> None:
    if not editing.may_keep():
        return
    try:
        keep_notes.remove(published.default_home(), note_id)
    except SweepscopeError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    adopt_latest()
