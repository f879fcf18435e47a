"""Runs: every attempt, searchable; a click opens its page."""

from __future__ import annotations

from typing import Literal
from urllib.parse import urlencode

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.links import follow
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.symbols import CELL_STATE, STATUS
from sweepscope.dashboard.queries import runs as queries
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.queries.runs import Search
from sweepscope.dashboard.sections import compare_links, filter_panel, page_head
from sweepscope.dashboard.selection import url_state
from sweepscope.dashboard.selection.comparison import parse_runs
from sweepscope.dashboard.selection.filters import UNKNOWN, Filters
from sweepscope.dashboard.selection.slices import offered_origins
from sweepscope.dashboard.text import runs as texts
from sweepscope.dashboard.widgets import basic, choices, tables, urls

TITLE = "Runs"
ROWS_PER_PAGE = 100
_SORTS = {
    "mfu": "Highest MFU",
    "throughput": "Most tokens/s/GPU",
    "step": "Fastest steps",
    "cost": "Cheapest tokens",
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
    "tag": ("tags", "Tag"),
}
_TABLE = names(
    "status model num_gpus accelerator layout tags mfu mfu_note tokens_per_s_per_gpu usd_per_m_tokens "
    "step_time_s mem_peak_allocated_bytes framework origin sweep"
)


def _page(view: View) -> None:
    con = view.store.con
    head, controls = st.container(), st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    offered = offered_origins([str(value) for value in queries.facet(Search(), "origin").run(con)["value"]])
    base = Search(facets=_default_origin(offered, view.filters.origin), filters=view.filters)
    with controls:
        text = st.text_input(
            "Search",
            key="q",
            type="search",
            bind="query-params",
            width=300,
            on_change=_first_page,
            placeholder="model, layout, path, job, error ...",
        )
        search = Search(text or "", {**base.facets, **_chosen_facets()}, view.filters)
        _facet(con, search, "status", width=230)
        matching = queries.total(search).run(con).row(0, named=True)
        sorts = [name for name in _SORTS if matching.get(f"with_{name}", 1)]
        sort = choices.select("Sort", "sort", sorts, sorts[0], shown=_SORTS.__getitem__, width=190, also=_first_page)
        _facet_popover(con, search)
        shell.share_popover()
        filter_panel.draw_chips(view.filters)
    of_origins = {name: values for name, values in search.facets.items() if name == "origin"}
    everything = queries.total(Search(facets=of_origins)).run(con).row(0, named=True)
    number, pages = _page_number(matching["runs"])
    offset = (number - 1) * ROWS_PER_PAGE
    listed = queries.page(search, sort=sort, rows=ROWS_PER_PAGE, offset=offset)
    rows = listed.run(con)
    with controls:
        basic.sql_popover({"This page": listed, "All that match": queries.full(search, sort=sort)})
    with head:
        is_narrowed = matching["runs"] != everything["runs"]
        answer = texts.answer(matching, everything, is_narrowed=is_narrowed)
        duplicates = int(queries.duplicates(matching["origins"] or ()).run(con).item())
        meta = texts.page_line(offset=offset, shown=rows.height, runs=matching["runs"], duplicates=duplicates)
        shown = matching["origins"] or ()
        links = [
            (f"{name} results", f"?{urlencode({**shell.url_query(), 'origins': name, 'page': []}, doseq=True)}")
            for name in offered
            if name not in of_origins["origin"]
        ]
        basic.head(TITLE, answer, meta, origins=shown, links=links)
        shell.say_ignored(view)
    if rows.height:
        _draw_table(rows)
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            _draw_pages(number, pages)
            tables.csv_later(queries.full(search, sort=sort), con, "runs", rows=matching["runs"])
    elif everything["runs"]:
        st.button("Clear search and filters", on_click=_clear)
    basic.note(texts.HIDES)


def _default_origin(offered: list[str], wanted: str | None) -> dict[str, list[object]]:
    """Own runs first, and the others a click away, as on every page; the filters add origins to each other."""
    return {"origin": [page_head.origin(offered, wanted)]} if offered else {}


def _chosen_facets() -> dict[str, list[object]]:
    chosen = {name: st.query_params.get_all(key) for name, (key, _) in _FACETS.items()}
    values = {name: [queries.facet_value(name, text) for text in texts] for name, texts in chosen.items()}
    known = {name: [value for value in found if value is not None] for name, found in values.items()}
    return {name: found for name, found in known.items() if found}


def _first_page() -> None:
    url_state.put("page", [])


def _clear() -> None:
    st.session_state["q"] = ""
    for key, _ in _FACETS.values():
        url_state.put(key, [])
    shell.set_filters(Filters())
    _first_page()


def _facet(con: Reader, search: Search, name: str, width: int | Literal["stretch"] = "stretch") -> None:
    """A multiselect of one facet's values, each with the number of runs it would leave."""
    key, label = _FACETS[name]
    rows = queries.facet(search, name).run(con).iter_rows()
    found = {UNKNOWN if value is None else str(value): runs for value, runs in rows}
    # a chosen value stays selectable when the search leaves none of it
    options = list(found) + [text for text in st.query_params.get_all(key) if text not in found]
    bound = url_state.several(key, options, also=_first_page)
    st.multiselect(
        label,
        options,
        key=bound.key,
        on_change=bound.on_change,
        placeholder="all",
        width=width,
        disabled=not options,
        format_func=lambda value: texts.facet_option(_facet_words(name, value), found.get(value, 0)),
    )


def _facet_words(name: str, value: str) -> str:
    return STATUS[value].text if name == "status" and value in STATUS else value


def _facet_popover(con: Reader, search: Search) -> None:
    others = [name for name in _FACETS if name != "status"]
    active = sum(bool(st.query_params.get_all(_FACETS[name][0])) for name in others)
    with st.popover(f"Filters · {active}" if active else "Filters", icon=":material/tune:"):
        for name in others:
            _facet(con, search, name)


def _page_number(runs: int) -> tuple[int, int]:
    """The page in the address and how many there are; a page that the search no longer has is the last one."""
    pages = max(1, -(-runs // ROWS_PER_PAGE))
    wanted = st.query_params.get("page", "1")
    return min(max(int(wanted), 1), pages) if wanted.isascii() and wanted.isdigit() else 1, pages


def _draw_table(rows: pl.DataFrame) -> None:
    symbols = {word: mark.text for word, mark in STATUS.items()}
    shown = rows.with_columns(
        status=pl.when(pl.col("quarantine_reason").is_not_null())
        .then(pl.lit(CELL_STATE["quarantined"].text))
        .otherwise(pl.col("status").replace_strict(symbols, default="?")),
        mfu_note=pl.Series([texts.mfu_note(row) for row in rows.iter_rows(named=True)], dtype=pl.String),
    )
    # Where all are of one origin the badge above the table names it, and most pages have no note.
    is_shown = {
        "origin": rows["origin"].n_unique() > 1,
        "mfu_note": shown["mfu_note"].count() > 0,
        **{name: rows[name].count() > 0 for name in ("tags", "usd_per_m_tokens")},
    }
    columns = [name for name in _TABLE if is_shown.get(name, True)]
    above = st.container()
    ticked, opened = tables.ticking_table(shown, columns, key="runs_table")
    with above:
        beside = parse_runs({"runs": st.query_params.get_all("beside")}).run_ids
        hint = texts.beside_hint(beside) if beside else compare_links.HINT
        compare_links.draw_ticked([rows["run_id"][place] for place in ticked], beside=beside, hint=hint)
    if opened is not None:
        follow(urls.run_url(rows["run_id"][opened]))


def _draw_pages(number: int, pages: int) -> None:
    if pages > 1:
        # the address keeps the page: a widget that remembered its own would not follow a new search to page 1
        key = f"page_{number}_of_{pages}"
        st.pagination(pages, default=number, key=key, on_change=_turn_page, args=(key,), width=420)


def _turn_page(key: str) -> None:
    number = st.session_state[key]
    url_state.put("page", [] if number == 1 else [str(number)])


_page(shell.begin())
