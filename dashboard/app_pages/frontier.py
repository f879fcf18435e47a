"""Frontier: this store's best runs among published ones."""

from __future__ import annotations

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.links import follow
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.app.store import Store
from sweepscope.dashboard.charts import frontier as chart
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.queries import frontier as queries
from sweepscope.dashboard.sections import compare_links
from sweepscope.dashboard.selection.slices import offered_origins
from sweepscope.dashboard.text import frontier as texts
from sweepscope.dashboard.view_models import frontier
from sweepscope.dashboard.widgets import basic, choices, tables, urls

TITLE = "Frontier"
_ROWS = {"short": "Best and largest of each", "all": "All rows"}
_TABLE = names(
    "model num_gpus accelerator mfu hfu usd_per_m_tokens dp tp pp cp ep global_batch_tokens seq_len precision "
    "published_on gpu_hours_per_t_tokens goodput_pct cost_usd tflops_per_gpu ceiling_mfu ceiling_layout ceiling_chosen "
    "ceiling_status comparability verification table_or_figure source_url"
)


def _page(view: View) -> None:
    found = queries.published()
    published = _bounded(view.store)
    origin = _origin(view)
    best = queries.own_best(origin or "")
    best_here = best.run(view.store.con)
    head, controls = st.container(), st.container(horizontal=True, vertical_alignment="center", gap="small")
    with controls:
        rows = choices.segments("Rows", "rows", list(_ROWS), "short", shown=_ROWS.__getitem__)
        shell.share_popover()
        basic.sql_popover({"Published": found, "Best here": best})
    dots = frontier.dots(published, best_here, is_short=rows == "short")
    with head:
        shown = [name for name, frame in (("published", published), (origin, best_here)) if name and frame.height]
        origins = tuple(dict.fromkeys(shown))
        basic.head(TITLE, texts.answer(dots, origin), texts.LEGEND if dots else "", origins=origins)
    if not dots:
        return
    _draw_comparisons(published, best_here)
    # Names on the left and reasons on the right need more room than other charts.
    width = basic.window_width()
    figure = chart.draw(dots, view.theme, width=width)
    basic.chart(figure, key="frontier", alt=texts.alt(dots), is_fitted=width != "wide")
    with_figure = published.filter(pl.any_horizontal(pl.col("mfu", "hfu").is_not_null())).height
    drawn = sum(dot.kind != "own" for dot in dots)
    basic.note(texts.left_out(published.height - with_figure, with_figure - drawn))
    basic.note(texts.bounded(frontier.reached(published)))
    _draw_table(published, best_here)
    basic.how_to_read(texts.HOW_TO_READ)


def _draw_comparisons(published: pl.DataFrame, best_here: pl.DataFrame) -> None:
    """From each own best to its comparison with the runs that everybody knows, of its number of GPUs where possible."""
    links, named = [], ""
    for own in best_here.unique("run_id", maintain_order=True).iter_rows(named=True):
        if rivals := frontier.rivals(published, own["num_gpus"]):
            named = texts.rivals_named(rivals)
            address = urls.compare_url([own["run_id"], *(row["run_id"] for row in rivals)])
            links.append(basic.link(texts.own_link(own), address))
    if links:
        st.html(f'<p class="ss-plain ss-way">{basic.rich(named)} {" · ".join(links)}</p>')


def _draw_table(published: pl.DataFrame, best_here: pl.DataFrame) -> None:
    rows = frontier.table(published, best_here)
    basic.section("Layouts as published", "the best here first; a dash: its source does not state it")
    above = st.container()
    shown = [name for name in _TABLE if rows[name].count()]
    ticked, opened = tables.ticking_table(rows, shown, key="layouts", height=290)
    with above:
        compare_links.draw_ticked([rows["run_id"][place] for place in ticked])
    if opened is not None:
        follow(urls.run_url(rows["run_id"][opened]))
    tables.csv_button(rows.drop("extra"), "frontier")


@st.cache_data(max_entries=4, show_spinner=False, hash_funcs={Store: lambda store: str(store.path)})
def _bounded(store: Store) -> pl.DataFrame:
    """The published configurations of one version of the store, each with what the estimator allows it."""
    return frontier.with_ceilings(queries.published().run(store.con), queries.stated().run(store.con))


def _origin(view: View) -> str | None:
    """Whose best run is set beside the published ones: the origin in the address, else the first offered."""
    offered = offered_origins(queries.origins().run(view.store.con)["origin"].to_list())
    if view.filters.origin in offered:
        return view.filters.origin
    return offered[0] if offered else None


_page(shell.begin())
