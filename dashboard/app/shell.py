"""What surrounds every page: sidebar, the store, the filters and the line on a newer version.

A page begins with `view = shell.begin()`; without a published store that draws what to do and stops.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from urllib.parse import urlencode

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from sweepscope.dashboard.app import contrast, named_views, offline_report
from sweepscope.dashboard.app.offline_report import OnScreen
from sweepscope.dashboard.app.store import Store, adopt_latest, newer_version, open_store
from sweepscope.dashboard.charts import narrow
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.navigation import PAGES
from sweepscope.dashboard.queries.slices import runs_of
from sweepscope.dashboard.queries.slices import slices as slices_query
from sweepscope.dashboard.selection import filters as filter_values
from sweepscope.dashboard.selection import url_state
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import Slice, offered_origins, resolve_slice
from sweepscope.dashboard.widgets import basic, choices
from sweepscope.dashboard.widgets.basic import PICTURE_FORMATS
from sweepscope.pipeline.errors import NoStoreError, SweepscopeError
from sweepscope.pipeline.store.published import default_home, first_commands

_ASSETS = Path(__file__).parents[1] / "assets"
_LOOK_EVERY_S = 10
"""Seconds between two looks for a newer version of the store: a link is read."""
_PURPOSE = (
    "sweepscope reads the logs, NCCL output and memory traces of training sweeps. It shows which layout trains fastest "
    "at each size, how sure that is, what failed and what it cost."
)
ICON = str(_ASSETS / "icon.svg")

_WATCH_SCHEME = """export default function (component) {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const tell = () => setTimeout(() => component.setTriggerValue("changed", Date.now()), 200);
  query.addEventListener("change", tell);
  return () => query.removeEventListener("change", tell);
}"""

# A figure is drawn before the browser that shows it is known, so a narrow window has it drawn once more.
_WATCH_WIDTH = """export default function (component) {
  const { widest, known } = component.data;
  const queries = Object.entries(widest).map(([name, width]) => [name, matchMedia(`(max-width: ${width}px)`)]);
  const width = () => (queries.find(([, query]) => query.matches) ?? ["wide"])[0];
  const tell = () => component.setStateValue("width", width());
  if (width() !== known) tell();
  queries.forEach(([, query]) => query.addEventListener("change", tell));
  return () => queries.forEach(([, query]) => query.removeEventListener("change", tell));
}"""


@dataclass(frozen=True)
class View:
    """What a page needs.

    `slices` has one row per slice of the store, `chosen` is the one that the filters and the data pick (None when no
    run has a cell), `origin_runs` counts the runs of its origin, `ignored` are values of the URL that it does not have.
    """

    store: Store
    theme: Theme
    filters: Filters
    slices: pl.DataFrame
    chosen: Slice | None
    origin_runs: int
    ignored: tuple[str, ...]


def begin() -> View:
    """Opens the store and reads the filters from the URL; ends the run when nothing was published yet."""
    try:
        store = open_store()
    except SweepscopeError as error:
        _draw_no_store(error)
        st.stop()
    _tell_of_newer(store)
    filters, unreadable = filter_values.parse_query(url_query())
    slices = slices_query().run(store.con)
    chosen, absent = resolve_slice(filters, slices)
    unmet = tuple(f"{name}={getattr(filters, name)}" for name in absent)
    for name in absent:
        filters = filters.having(name, None)
    origin_runs = 0 if chosen is None else runs_of(chosen.origin).run(store.con)["runs"].item()
    return View(store, basic.current_theme(), filters, slices, chosen, origin_runs, unreadable + unmet)


@st.fragment(run_every=_LOOK_EVERY_S)
def _tell_of_newer(store: Store) -> None:
    """A line on a version that was published since, without an interaction; it floats, so that nothing moves for it."""
    newer = newer_version(store)
    with st.container(key="newer"):
        if newer is None:
            return
        text = f"Version {newer} is ready. This page shows version {store.version}."
        st.html(f'<span class="ss-ready" role="status">{text}</span>')
        if st.button(f"Show version {newer}", on_click=adopt_latest, key="adopt_latest"):
            st.rerun()


def url_query() -> dict[str, list[str]]:
    """All query parameters of the page's address."""
    return {name: st.query_params.get_all(name) for name in st.query_params}


def set_filters(filters: Filters) -> None:
    """Writes the filters to the URL, which is where the next run reads them from."""
    wanted = filter_values.to_query(filters)
    for name in filter_values.GRID + filter_values.NARROWING:
        if name in wanted:
            st.query_params[name] = wanted[name]
        elif name in st.query_params:
            del st.query_params[name]


def logo(theme: Theme) -> str:
    """The wordmark as SVG. It is shown as an image, which inherits no colour, so the ink is written in."""
    return (_ASSETS / "logo.svg").read_text().replace("currentColor", theme.ink)


def draw_sidebar() -> None:
    """The pages, questions grouped, under headings of their own; filters go along to the next page."""
    carried = filter_values.to_query(filter_values.parse_query(url_query())[0])
    with st.sidebar:
        for group, entries in groupby((entry for entry in PAGES if not entry.is_hidden), key=lambda entry: entry.group):
            with st.container(gap=None):
                if group:
                    st.html(f'<h2 class="ss-group">{group}</h2>')
                for entry in entries:
                    st.page_link(entry.path, label=entry.title, query_params=carried or None, width="stretch")
        named_views.draw_links()
        contrast.draw_switch()


def watch_scheme() -> None:
    """Reruns the page when the system switches between light and dark: charts cannot restyle themselves."""
    component = st.components.v2.component("theme_watch", js=_WATCH_SCHEME)
    component(key="theme_watch", on_changed_change=lambda: None, height=1)


def watch_width() -> None:
    """Reruns the page when its window is, or becomes, of another width than it was drawn for."""
    component = st.components.v2.component("width_watch", js=_WATCH_WIDTH)
    component(
        key="width_watch",
        on_width_change=_keep_width,
        height=1,
        data={"known": basic.window_width(), "widest": narrow.WIDEST},
    )


def _keep_width() -> None:
    width = st.session_state["width_watch"]["width"]
    st.session_state[basic.WINDOW_WIDTH] = width if width in narrow.WIDEST else "wide"


def other_origins(view: View) -> list[tuple[str, str]]:
    """Links to the origins that are not on screen: origins never mix, and none is more than a click away."""
    offered = offered_origins(view.slices["origin"].unique().to_list())
    shown = view.chosen.origin if view.chosen else None
    return [(f"{origin} results", f"?origin={origin}") for origin in offered if origin != shown]


def say_ignored(view: View) -> None:
    """Names what an old or mistyped link asked for and this store does not have."""
    if view.ignored:
        basic.note(f"Left out of the address, because this store has no such value: {', '.join(view.ignored)}.")


def say_unmet(head: DeltaGenerator) -> None:
    """Names, above the page, what its address asks for and its widgets do not offer: it shows something else."""
    if missing := url_state.unmet():
        with head:
            basic.note(f"This page has no {', '.join(missing)}, which its address asks for: it shows what it has.")


def share_popover(
    view: View | None = None, selection: Mapping[str, str] | None = None, *, on_screen: OnScreen | None = None
) -> None:
    """A link that opens this page with these choices.

    It names the grid and the `selection` even where they are defaults, because defaults may move with the next ingest.
    `on_screen` makes the section that the offline report begins with, where that has more than the page's answer.
    """
    with st.popover("Share", icon=":material/ios_share:"):
        query = {**slice_query(view.chosen if view else None), **url_query(), **(selection or {})}
        basic.note("Opens this page with the same filters and selection.")
        st.code(
            f"{st.context.url or ''}{'?' if query else ''}{urlencode(query, doseq=True)}",
            language=None,
            wrap_lines=True,
        )
        basic.note("Charts are saved by the camera over them, under a name that tells the page and its filters.")
        choices.segments(
            "Save charts as", "picture", list(PICTURE_FORMATS), shown=PICTURE_FORMATS.__getitem__, is_labelled=True
        )
        offline_report.draw(query, on_screen)
        named_views.draw_saving(query)


def slice_query(chosen: Slice | None) -> dict[str, str]:
    """The address's parameters that name a grid in full."""
    if chosen is None:
        return {}
    values = {name: getattr(chosen, name) for name in filter_values.SLICE}
    named = {name: filter_values.UNKNOWN if value is None else str(value) for name, value in values.items()}
    return {**named, "sweep": chosen.sweep or filter_values.ALL}


def say_unlike(error: Exception) -> None:
    """The rest of a page whose store lacks a table or column: most often another version of sweepscope published it."""
    basic.problem(
        "This page reads something that the store does not have.\n"
        f"{str(error).splitlines()[0]}\n"
        "Another version of sweepscope may have published it: `sweepscope ingest` with this version, on any path, "
        "publishes it anew from the lake. If that does not help, the page is at fault: please report the line above."
    )


def _draw_no_store(error: SweepscopeError) -> None:
    if not isinstance(error, NoStoreError):
        st.title("The store cannot be read", anchor=False)
        basic.problem(str(error))
        return
    st.title("No results yet", anchor=False)
    basic.note(_PURPOSE)
    basic.empty(str(error).partition(" Run ")[0])
    basic.note("Try the bundled data, or read a sweep of your own; then reload this page.")
    # Not as "bash": the colour that Streamlit gives to names such as PATH is hard to read on light grey.
    st.code("\n".join(first_commands(default_home())), language=None, width=520, wrap_lines=True)
