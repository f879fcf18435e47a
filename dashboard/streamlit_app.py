"""Entry point: page config, navigation, style. No logic; run with `sweepscope dashboard` or `streamlit run`."""

from __future__ import annotations

import streamlit as st

from dashboard import shell, widgets
from dashboard.navigation import PAGES

st.set_page_config(page_title="sweepscope", page_icon=shell.ICON, layout="wide", initial_sidebar_state=212)
pages = [
    st.Page(
        entry.path,
        title=entry.title,
        url_path=entry.url,
        default=entry is PAGES[0],
        visibility="hidden" if entry.is_hidden else "visible",
    )
    for entry in PAGES
]
page = st.navigation(pages, position="hidden")
widgets.style(widgets.tokens())
st.logo(shell.logo(widgets.tokens()), size="large")
shell.draw_sidebar()
page.run()
shell.watch_scheme()
