"""What stands around every page: sidebar, the store, the filters and the line on a newer version.

A page begins with `view = shell.begin()`; without a published store that draws what to do and stops.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlencode

import streamlit as st

from dashboard import filters as filter_values
from dashboard import widgets
from dashboard.filters import Filters
from dashboard.navigation import PAGES
from dashboard.store import Store, adopt_latest, home, newer_version, open_store
from dashboard.theme import Theme

_WATCH_SCHEME = """export default function (component) {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => setTimeout(() => component.setTriggerValue("changed", Date.now()), 200);
  query.addEventListener("change", tell);
  return () => query.removeEventListener("change", tell);
}"""


@dataclass(frozen=True)
class View:
    """What a page needs: the opened store, the theme's tokens, the filters and what the URL got wrong."""

    store: Store
    tokens: Theme
    filters: Filters
    ignored: tuple[str, ...]


def begin() -> View:
    """Opens the store and reads the filters from the URL; ends the run when nothing was published yet."""
    store = open_store()
    if store is None:
        _draw_no_store()
        st.stop()
    newer = newer_version(store)
    if newer is not None:
        line, button = st.columns([4, 1], vertical_alignment="center")
        line.html(f'<span class="ss-ready">Version {newer} is ready. This page shows version {store.version}.</span>')
        button.button(f"Show version {newer}", on_click=adopt_latest, key="adopt_latest")
    params = {name: st.query_params.get_all(name) for name in st.query_params}
    filters, ignored = filter_values.parse_query(params)
    return View(store, widgets.tokens(), filters, ignored)


def set_filters(filters: Filters) -> None:
    """Writes the filters to the URL, which is where the next run reads them from."""
    wanted = filter_values.to_query(filters)
    for name in filter_values.to_query(Filters()) | dict.fromkeys(filter_values.SLICE + filter_values.NARROWING):
        if name in wanted:
            st.query_params[name] = wanted[name]
        elif name in st.query_params:
            del st.query_params[name]


def draw_sidebar() -> None:
    """The pages, questions grouped, under headings of their own; filters go along to the next page."""
    params = {name: st.query_params.get_all(name) for name in st.query_params}
    carried = filter_values.to_query(filter_values.parse_query(params)[0])
    with st.sidebar:
        for group, entries in groupby((entry for entry in PAGES if not entry.is_hidden), key=lambda entry: entry.group):
            with st.container(gap=None):
                if group:
                    st.html(f'<h2 class="ss-group">{group}</h2>')
                for entry in entries:
                    st.page_link(entry.path, label=entry.title, query_params=carried or None, width="stretch")


def watch_scheme() -> None:
    """Reruns the page when the system switches between light and dark: charts cannot restyle themselves."""
    component = st.components.v2.component("theme_watch", js=_WATCH_SCHEME)
    component(key="theme_watch", on_changed_change=lambda: None, height=1)


def share_popover() -> None:
    """A link that opens this page with these choices."""
    with st.popover("Share", icon=":material/ios_share:"):
        query = urlencode({name: st.query_params.get_all(name) for name in st.query_params}, doseq=True)
        widgets.note("Opens this page with the same filters and selection.")
        st.code(f"{st.context.url or ''}{'?' if query else ''}{query}", language=None)


def _draw_no_store() -> None:
    st.title("No results yet", anchor=False)
    widgets.empty(f"Nothing was published in {home()} so far. Run one of these, then reload the page.")
    st.code(
        "sweepscope demo             # bundled data, real and simulated\n"
        "sweepscope ingest PATH...   # your own sweep",
        language="bash",
    )
