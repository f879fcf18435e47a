"""Named views: pages with their filters, kept in the home under a name, a click away on every page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from sweepscope.dashboard.app import editing
from sweepscope.dashboard.app.store import adopt_latest, open_store
from sweepscope.dashboard.queries import notes as queries
from sweepscope.dashboard.widgets import basic
from sweepscope.pipeline.errors import SweepscopeError, UsageError
from sweepscope.pipeline.inspection import keep_notes
from sweepscope.pipeline.store.published import default_home

PAGE = "page_url"  # key of the session's state: the page on screen, as in its address
_SHOWN = 12
_PROBLEM = "view_problem"


def draw_links() -> None:
    """The named views of the store, a click away on every page; nothing where there is none, or no store."""
    rows = _named_views()
    if rows:
        links = "".join(f"<li>{basic.link(row['text'], row['address'] or 'root')}</li>" for row in rows[:_SHOWN])
        with st.container(gap=None):
            st.html(f'<h2 class="ss-group">Views</h2><ul class="ss-views">{links}</ul>')


def _named_views() -> list[dict[str, Any]]:
    try:
        store = open_store()
    except SweepscopeError:
        return []
    return queries.views().run(store.con).to_dicts() if store.has("notes") else []


def draw_saving(query: Mapping[str, Any]) -> None:
    """Keeps this page and its query under a name, where the page may write, and lists what is kept to remove it."""
    if not editing.may_keep():
        return
    page = st.session_state.get(PAGE, "")
    address = f"{page}{'?' if query else ''}{urlencode(query, doseq=True)}"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        st.text_input("Keep as a view", key="view_name", placeholder="name", max_chars=60, width=220)
        st.button("Keep", key="view_keep", on_click=_keep_view, args=(address,))
    if problem := st.session_state.pop(_PROBLEM, None):
        basic.problem(problem)
    for row in _named_views():
        with st.container(horizontal=True, vertical_alignment="center", key=f"view_{row['note_id']}"):
            st.html(f'<p class="ss-plain">{basic.link(row["text"], row["address"] or "root")}</p>')
            st.button(
                "Remove",
                key=f"view_remove_{row['note_id']}",
                type="tertiary",
                on_click=_remove_view,
                args=(row["note_id"],),
            )


def _keep_view(address: str) -> None:
    name = (st.session_state["view_name"] or "").strip()
    try:
        if not name:
            raise UsageError("A view needs a name.")
        keep_notes.keep_view(default_home(), name, address)
    except SweepscopeError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    st.session_state["view_name"] = ""
    adopt_latest()


def _remove_view(note_id: str) -> None:
    try:
        keep_notes.remove(default_home(), note_id)
    except SweepscopeError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    adopt_latest()
