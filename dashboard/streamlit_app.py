"""Entry point: page config, navigation, colours. No logic; `sweepscope dashboard` serves it with its style sheet."""

from __future__ import annotations

import duckdb
import streamlit as st

from sweepscope.dashboard.app import contrast, links, named_views, shell
from sweepscope.dashboard.navigation import PAGES
from sweepscope.dashboard.sections import first_screen
from sweepscope.dashboard.selection import url_state
from sweepscope.dashboard.widgets import basic
from sweepscope.dashboard.widgets.charts_last import charts_last

pages = [
    st.Page(
        entry.path,
        title=entry.title,
        # Streamlit serves the default page at the root, and answers its own name with "Page not found".
        url_path="root" if entry is PAGES[0] else entry.url,
        default=entry is PAGES[0],
        visibility="hidden" if entry.is_hidden else "visible",
    )
    for entry in PAGES
]


def _first_page() -> None:
    """Leads from the name of the first page, an address like any other page has, to the root, where it is served."""
    st.switch_page(pages[0], query_params=shell.url_query())


named_first = st.Page(_first_page, title=PAGES[0].title, url_path=PAGES[0].url, visibility="hidden")
page = st.navigation([*pages, named_first], position="hidden")
# Tabs, bookmarks and the browser's history differ by their titles.
st.set_page_config(
    page_title=f"{page.title} · sweepscope", page_icon=shell.ICON, layout="wide", initial_sidebar_state=212
)
st.session_state[named_views.PAGE] = "" if page.url_path in ("", "root") else page.url_path
basic.style(basic.current_theme())
st.logo(shell.logo(basic.current_theme()), size="large")
shell.draw_sidebar()
top = st.container()
url_state.begin()
with charts_last():
    try:
        page.run()
    except (duckdb.CatalogException, duckdb.BinderException) as error:  # published by a version with other tables
        shell.say_unlike(error)
    shell.say_unmet(top)
    shell.watch_scheme()
    shell.watch_width()
    links.watch()
    contrast.watch()
first_screen.read_ahead()
