"""Scaling: how much efficiency is left as nodes are added, per model or per strategy of one model."""

from __future__ import annotations

from urllib.parse import urlencode

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.charts import scaling as charts
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.numbers import count
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.queries import cells as cell_queries
from sweepscope.dashboard.queries import scaling as queries
from sweepscope.dashboard.queries.query import Query
from sweepscope.dashboard.sections import filter_panel, first_screen, page_head, price_editor
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.text import scaling as texts
from sweepscope.dashboard.text.overview import slice_words
from sweepscope.dashboard.view_models import scaling
from sweepscope.dashboard.view_models.scaling import COST, Baseline
from sweepscope.dashboard.widgets import basic, choices, lists, tables

TITLE = "Scaling"
_ALL = "models"
_LINES = {_ALL: "best of each model"}
_MEASURES = {
    "efficiency": ("efficiency", "scaling_efficiency"),
    "mfu": ("MFU", "mfu"),
    "cost": ("$ per million tokens", COST),
}
_TABLE = names(
    "line num_nodes num_gpus layout mfu tokens_per_s_per_gpu usd_per_m_tokens tokens_per_s scaling_efficiency "
    "baseline_size ideal_tokens_per_s repeats run_id"
)


def _page(view: View) -> None:
    chosen = view.chosen
    if chosen is None:
        page_head.no_grid(TITLE, view.store.con)
        return
    models = queries.best_layouts(chosen, view.filters).run(view.store.con)
    noun = scaling.size_noun(models)
    head, controls = st.container(), st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with controls:
        query, subject, baseline, column = _choices(view, chosen, scaling.with_size(models, noun), noun)
        filter_panel.draw(view, cell_queries.facets(chosen).run(view.store.con))
        filter_panel.draw_chips(view.filters)
        price_editor.draw_popover(view)
        shell.share_popover(view)
        basic.sql_popover({"Points": query})
    points = scaling.against(scaling.with_size(query.run(view.store.con), noun), baseline)
    lines = scaling.drawn_lines(points)
    with head:
        answer = texts.answer(points, lines, baseline, chosen, noun, subject=subject, column=column)
        meta = texts.meta(points, lines, chosen)
        basic.head(TITLE, answer, meta, origins=(chosen.origin,), links=shell.other_origins(view))
        shell.say_ignored(view)
        page_head.say_no_own_grid(view)
    if lines:
        _draw_charts(points, lines, column, noun, view.theme)
    else:
        _draw_curves_elsewhere(chosen, view)
    if points.is_empty():
        return
    tables.table_twin("All points as a table", points, _TABLE, csv_name="scaling", is_counted=True)
    basic.how_to_read(texts.HOW_TO_READ)


def _choices(view: View, chosen: Slice, models: pl.DataFrame, noun: str) -> tuple[Query, str, Baseline, str]:
    """What is drawn: the best of each model or one model's strategies, against which baseline, in which measure."""
    names = models["line"].unique(maintain_order=True).to_list()
    sizes = [str(size) for size in sorted(set(models["size"]))]
    shown = choices.select(
        "Lines", "lines", [_ALL, *names], width=190, shown=lambda name: _LINES.get(name, f"strategies of {name}")
    )
    measures = [name for name in _MEASURES if name != "cost" or models[COST].count()]
    measure = choices.select("Show", "show", measures, width=195, shown=lambda name: _MEASURES[name][0])
    baseline = choices.select(
        "Baseline",
        "baseline",
        ["best", "first", *sizes],
        width=190,
        shown=lambda value: texts.baseline_option(value, noun),
    )
    if shown == _ALL:
        query, subject = queries.best_layouts(chosen, view.filters), ""
    else:
        query, subject = queries.strategies(chosen, view.filters, shown), shown
    return query, subject, Baseline.parse(baseline), _MEASURES[measure][1]


def _draw_curves_elsewhere(chosen: Slice, view: View) -> None:
    """Ways to grids of the same origin in which a model ran on several node counts."""
    found = scaling.curves_elsewhere(chosen, queries.grids_with_curves(chosen.origin).run(view.store.con))
    if not found:
        return
    basic.section("Grids with a curve", "other accelerator, sequence or batch; most node counts first")
    lists.items(
        [
            (
                f"{model}, {slice_words(grid)}",
                count(sizes, "node count"),
                f"scaling?{urlencode(shell.slice_query(grid))}",
            )
            for grid, model, sizes in found[: first_screen.GRIDS_LISTED]
        ]
    )


def _draw_charts(points: pl.DataFrame, lines: list[str], column: str, noun: str, theme: Theme) -> None:
    hovers = [texts.hover(row, noun) for row in points.iter_rows(named=True)]
    left, right = st.columns(2, gap="large")
    with left, st.container(gap="xsmall"):
        title = texts.SHARE_TITLES[column]
        basic.section(title, "log scale" if column == COST else "")
        if column == COST:
            figure = charts.draw_cost(points, theme, noun=noun, lines=lines, hovers=hovers)
        else:
            figure = charts.draw_share(points, theme, noun=noun, column=column, lines=lines, hovers=hovers)
        basic.chart(figure, key="share", alt=texts.alt(points, lines, column, title=title, noun=noun))
    with right, st.container(gap="xsmall"):
        title = "Cluster throughput, tokens per second"
        basic.section(title, "log scale; dotted: ideal from the baseline")
        figure = charts.draw_throughput(points, theme, noun=noun, lines=lines, hovers=hovers)
        basic.chart(figure, key="throughput", alt=texts.alt(points, lines, "tokens_per_s", title=title, noun=noun))


_page(shell.begin())
