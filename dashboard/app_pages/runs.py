"""Runs: every attempt, searchable; a click opens its page."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import polars as pl
import streamlit as st

from dashboard import filter_panel, shell, widgets
from dashboard.filters import UNKNOWN
from dashboard.marks import CELL_STATE, STATUS
from dashboard.queries import runs as queries
from dashboard.queries.runs import Search
from dashboard.shell import View
from dashboard.slices import offered_origins
from dashboard.words import runs as words

TITLE = "Runs"
ROWS_PER_PAGE = 100
_SORTS = {
    "mfu": "Highest MFU",
    "throughput": "Most tokens/s/GPU",
    "gpus": "Most GPUs",
    "memory": "Most memory",
    "newest": "Newest",
    "source": "Source file",
}
# URL keys of the facets; plural, because other pages use the singular for one choice
_FACETS = {
    "status": ("statuses", "Status"),
    "model": ("models", "Model"),
    "origin": ("origins", "Origin"),
    "framework": ("frameworks", "Framework"),
    "accelerator": ("accelerators", "Accelerator"),
    "num_nodes": ("node_counts", "Nodes"),
    "sweep": ("sweeps", "Sweep"),
}
_TABLE = (
    "status", "model", "num_gpus", "accelerator", "layout", "mfu", "tokens_per_s_per_gpu", "step_time_s",
    "mem_peak_allocated_bytes", "framework", "origin", "sweep",
)  # fmt: skip


def _page(view: View) -> None:
    con = view.store.con
    head, controls = st.container(), st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    base = Search(facets=_default_origins(con), filters=view.filters)
    with controls:
        text = st.text_input(
            "Search", key="q", type="search", bind="query-params", width=300, on_change=_first_page,
            placeholder="model, layout, path, job, error ...",
        )  # fmt: skip
        search = Search(text or "", {**base.facets, **_chosen_facets()}, view.filters)
        _facet(con, search, "status", width=230)
        sort = st.selectbox(
            "Sort", list(_SORTS), key="sort", bind="query-params", width=170, format_func=_SORTS.__getitem__,
            on_change=_first_page,
        )  # fmt: skip
        _facet_popover(con, search)
        shell.share_popover()
        filter_panel.draw_chips(view.filters)
    matching = queries.total(search).run(con).row(0, named=True)
    everything = queries.total(Search(facets=base.facets)).run(con).row(0, named=True)
    offset = _offset(matching["runs"])
    listed = queries.page(search, sort=sort, rows=ROWS_PER_PAGE, offset=offset)
    rows = listed.run(con)
    with controls:
        widgets.sql_popover({"This page": listed, "All that match": queries.full(search, sort=sort)})
    with head:
        is_narrowed = matching["runs"] != everything["runs"]
        answer = words.answer(matching, everything, is_narrowed=is_narrowed)
        duplicates = int(queries.duplicates().run(con).item())
        meta = words.page_line(offset=offset, shown=rows.height, runs=matching["runs"], duplicates=duplicates)
        widgets.head(TITLE, answer, meta, origins=matching["origins"] or ())
        shell.say_ignored(view)
    if rows.height:
        _draw_table(rows)
        _draw_below(con, search, sort, matching["runs"])
    widgets.note(words.HIDES)


def _default_origins(con: duckdb.DuckDBPyConnection) -> dict[str, list[object]]:
    """Simulated runs stay out once there are measured ones, until somebody asks for them."""
    found = [str(value) for value in queries.facet(Search(), "origin").run(con)["value"]]
    offered = offered_origins(found)
    return {"origin": list(offered)} if len(offered) < len(found) else {}


def _chosen_facets() -> dict[str, list[object]]:
    chosen = {name: st.session_state.get(key) or [] for name, (key, _) in _FACETS.items()}
    return {name: list(values) for name, values in chosen.items() if values}


def _first_page() -> None:
    st.session_state["page"] = 1


def _facet(con: duckdb.DuckDBPyConnection, search: Search, name: str, width: int | str = "stretch") -> None:
    """A multiselect of one facet's values, each with the number of runs it would leave."""
    key, label = _FACETS[name]
    found = [
        (UNKNOWN if value is None else value, runs)
        for value, runs in queries.facet(search, name).run(con).iter_rows()
    ]  # fmt: skip
    chosen = st.session_state.get(key) or []
    # a chosen value stays selectable when the search leaves none of it
    options = [value for value, _ in found] + [value for value in chosen if value not in dict(found)]
    if not options:
        return
    st.multiselect(
        label,
        options,
        key=key,
        bind="query-params",
        placeholder="all",
        width=width,
        on_change=_first_page,
        format_func=_option_words(name, found),
    )  # type: ignore[call-overload] # width is one of the two forms it takes


def _option_words(name: str, found: list[tuple[object, int]]) -> Callable[[object], str]:
    def words_of(value: object) -> str:
        shown = STATUS[value].text if name == "status" and isinstance(value, str) and value in STATUS else str(value)
        return words.facet_option(value, found, shown)

    return words_of


def _facet_popover(con: duckdb.DuckDBPyConnection, search: Search) -> None:
    others = [name for name in _FACETS if name != "status"]
    active = sum(bool(st.session_state.get(_FACETS[name][0])) for name in others)
    with st.popover(f"Filters · {active}" if active else "Filters", icon=":material/tune:"):
        for name in others:
            _facet(con, search, name)


def _offset(runs: int) -> int:
    """First row of the page in the address; a page that the search no longer has becomes the last one."""
    pages = max(1, -(-runs // ROWS_PER_PAGE))
    if st.session_state.get("page", 1) > pages:
        st.session_state["page"] = pages
    wanted = st.session_state.get("page") or st.query_params.get("page", "1")
    page = int(wanted) if str(wanted).isdecimal() else 1
    return (min(max(page, 1), pages) - 1) * ROWS_PER_PAGE


def _draw_table(rows: pl.DataFrame) -> None:
    symbols = {word: mark.text for word, mark in STATUS.items()}
    shown = rows.with_columns(
        status=pl.when(pl.col("quarantine_reason").is_not_null())
        .then(pl.lit(CELL_STATE["quarantined"].text))
        .otherwise(pl.col("status").replace_strict(symbols, default="?"))
    )
    event = widgets.selectable_table(shown, _TABLE, key="runs_table")
    if event is not None:
        st.switch_page("app_pages/run.py", query_params={"run": rows["run_id"][event]})


def _draw_below(con: duckdb.DuckDBPyConnection, search: Search, sort: str, runs: int) -> None:
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        pages = -(-runs // ROWS_PER_PAGE)
        if pages > 1:
            st.pagination(pages, key="page", bind="query-params")
        widgets.csv_later(queries.full(search, sort=sort), con, "runs", rows=runs)


_page(shell.begin())
