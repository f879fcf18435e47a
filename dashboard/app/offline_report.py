"""The report of the store from any page: one file that needs no network, with what is on screen at its beginning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from sweepscope.dashboard.app.store import Store, open_store, own_constants
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.report import build, write
from sweepscope.dashboard.report.build import Asked
from sweepscope.dashboard.report.section import Section
from sweepscope.dashboard.selection.filters import parse_query
from sweepscope.dashboard.widgets import basic
from sweepscope.pipeline.store.published import store_info

OnScreen = Callable[[Reader], Section | None]
"""The section on what a page shows; None where there is nothing to say of it."""


def draw(query: Mapping[str, Any], on_screen: OnScreen | None) -> None:
    """A button that writes the report when it is clicked: some seconds of a store of thousands of runs."""
    store, filters = open_store(), parse_query(query)[0]
    asked, head = Asked(filters.origin, filters.sweep), basic.on_screen()
    st.download_button(
        "Offline report",
        lambda: written(store, asked, on_screen or (lambda _: _head_section(head))).encode(),
        file_name="sweepscope.html",
        mime="text/html",
        icon=":material/download:",
        key="offline_report",
        on_click="ignore",
    )


def _head_section(head: Mapping[str, Any]) -> Section | None:
    """What a page says first, of the cell, filters and baseline that were chosen on it."""
    if not head:
        return None
    return Section("on_screen", f"On screen: {head['title']}", head["answer"], head["meta"], head["origins"])


def written(store: Store, asked: Asked, on_screen: OnScreen) -> str:
    """The file: what is on screen, and the report of the store.

    It is written in another thread than the page is drawn in, so that it reads by a connection of its own.
    """
    con = store.for_thread().con
    first = on_screen(con)
    parts, _ = build.sections(con, asked, LIGHT, own_constants())
    return write.document(store_info(con.cursor()), [*([first] if first else []), *parts])
