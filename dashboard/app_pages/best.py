"""Best configurations: which layout wins each model size and node count, by how much, how sure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.links import follow
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.charts import heatmap, memory
from sweepscope.dashboard.charts.grid import Grid
from sweepscope.dashboard.format import metrics
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.metrics import METRICS, Metric
from sweepscope.dashboard.queries import cells as queries
from sweepscope.dashboard.queries import history
from sweepscope.dashboard.sections import compare_links, estimator_pick, filter_panel, notes, page_head, price_editor
from sweepscope.dashboard.sections.grid_cells import grid_cells
from sweepscope.dashboard.selection import url_state
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.text import best as texts
from sweepscope.dashboard.text import best_cell as panel_texts
from sweepscope.dashboard.text import cell as cell_texts
from sweepscope.dashboard.text import history as history_texts
from sweepscope.dashboard.view_models import cells
from sweepscope.dashboard.view_models.explorer import Pick
from sweepscope.dashboard.view_models.ranking import ranked_rows, with_named_options
from sweepscope.dashboard.widgets import basic, choices, folds, grid_panel, lists, tables, urls

TITLE = "Best configurations"
_TABLE = names(
    "rank_in_cell layout variant framework framework_version torch_version nccl_version cluster "
    "mfu tokens_per_s_per_gpu usd_per_m_tokens winner_lead step_time_s mem_peak_allocated_bytes "
    "mem_peak_reserved_bytes repeats repeat_speeds mean_tokens_per_s_per_gpu low_tokens_per_s_per_gpu "
    "high_tokens_per_s_per_gpu run_noise "
    "recompute precision sequence_parallel pipeline_schedule run_id"
)


def _page(view: View) -> None:
    chosen = view.chosen
    if chosen is None:
        page_head.no_grid(TITLE, view.store.con)
        return
    found, ended = queries.cells(chosen, view.filters), queries.outcomes(chosen, view.filters)
    whole = grid_cells(view.store, chosen, view.filters)
    grid = cells.without_untried(whole) if view.filters.narrows_layouts else whole
    head, controls = st.container(), st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    if grid.is_empty():
        with controls:
            _draw_filters(view, chosen)
        _draw_head(head, texts.nothing_matches(whole, view.filters), whole, chosen, view)
        return
    with controls:
        model, scale, metric = _selectors(grid)
        cell = grid.filter((pl.col("model") == model) & (pl.col("scale") == scale)).row(0, named=True)
        ranking = queries.ranking(chosen, view.filters, cell)
        _draw_filters(view, chosen)
        price_editor.draw_popover(view)
        shell.share_popover(view, {"model": model, "nodes": scale})
        basic.sql_popover({"Cells": found, "Outcomes": ended, "Ranking of the selected cell": ranking})
    ranked = ranking.run(view.store.con)
    cell = with_named_options(cell, ranked)
    answer = (
        texts.filtered_answer(grid, view.filters)
        if view.filters.narrows_layouts
        else texts.cell_answer(cell, metric.key)
    )
    _draw_head(head, answer, grid, chosen, view)
    usual = estimator_pick.usual_framework(whole)
    shown = cells.drawn(grid, model)
    with st.container(key="hero"):
        left, right = _hero(shown)
    # With a filter on layouts the best is one of some; the estimator's pick is one of all.
    narrowed = view.filters.narrows_layouts
    picks = {} if narrowed else estimator_pick.picks_for_empty(view.store, chosen, shown, usual)
    with left:
        _draw_grid(shown, metric, view, (model, scale), picks)
        if left_out := texts.left_out(shown, grid, texts.OTHER_MODELS):
            basic.note(left_out)
    with right, st.container(gap="xsmall"):
        _draw_panel(cell, ranked, metric)
        _draw_pick(view, chosen, cell, ranked, usual)
        notes.draw_cell(view, _identity(chosen, cell))
    _draw_tables(chosen, view, ranked, cell)


def _identity(chosen: Slice, cell: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that name a cell."""
    of_cell = {name: cell[name] for name in ("model", "num_nodes", "num_gpus")}
    return {**{name: getattr(chosen, name) for name in ("origin", "accelerator", "seq_len", "gbs_tokens")}, **of_cell}


def _draw_head(head: DeltaGenerator, answer: str, grid: pl.DataFrame, chosen: Slice, view: View) -> None:
    conditions = texts.conditions(chosen, grid, view.origin_runs)
    with head:
        basic.head(TITLE, answer, conditions, origins=(chosen.origin,), links=shell.other_origins(view))
        shell.say_ignored(view)
        page_head.say_no_own_grid(view)


def _draw_filters(view: View, chosen: Slice) -> None:
    filter_panel.draw(view, queries.facets(chosen).run(view.store.con))
    filter_panel.draw_chips(view.filters)


def _selectors(grid: pl.DataFrame) -> tuple[str, str, Metric]:
    """Model, column and metric: the keyboard's way to what a click on the grid does, kept in the address."""
    axes = Grid.of(grid)
    model, scale = texts.default_cell(grid)
    offered = [metric.key for metric in metrics.offered(grid)] or ["mfu"]
    return (
        choices.select("Model", "model", axes.models, model, width=150),
        choices.select("Nodes", "nodes", axes.scales, scale, width=110),
        METRICS[choices.select("Metric", "metric", offered, shown=lambda key: METRICS[key].label, width=195)],
    )


def _hero(grid: pl.DataFrame) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Room for grid and panel: side by side, or the panel below when the cells would become too narrow to read."""
    if len(Grid.of(grid).scales) > heatmap.COLUMNS_BESIDE_PANEL:
        return st.container(), st.container()
    left, right = st.columns([0.72, 0.28], gap="medium")
    return left, right


def _pick() -> None:
    """Selects the clicked cell. An empty list is a second click on it: the cell stays."""
    points = st.session_state.heat["selection"]["points"]
    if points:
        model, scale = points[0]["customdata"]
        url_state.put("model", [model])
        url_state.put("nodes", [scale])


def _draw_grid(
    grid: pl.DataFrame, metric: Metric, view: View, selected: tuple[str, str], picks: Mapping[tuple[str, str], Pick]
) -> None:
    hovers = [
        cell_texts.hover(row, metric, picks.get((row["model"], row["scale"]))) for row in grid.iter_rows(named=True)
    ]
    values = {key: value for key, pick in picks.items() if (value := pick.value(metric.column)) is not None}
    figure = heatmap.draw(grid, metric, view.theme, hovers=hovers, selected=selected, estimates=values)
    with st.container(key="grid", gap="xsmall"):
        grid_panel.keep_cells_readable(Grid.of(grid), "heat", "memory")
        basic.chart(figure, key="heat", alt=texts.grid_alt(grid, metric), on_select=_pick)
        _draw_below(grid, metric, view, texts.estimated(grid, values))


def _draw_below(grid: pl.DataFrame, metric: Metric, view: View, estimated: str) -> None:
    grid_panel.legend(grid, metric, estimated=estimated)
    # A trainer without a GPU logs 0 bytes; a panel of empty tracks would be useless.
    if metric.key != "memory" and any(grid["mem_peak_bytes"].drop_nulls()):
        basic.section("Peak memory of the winner", texts.track(grid))
        basic.chart(memory.draw(grid, view.theme), key="memory", alt=texts.memory_alt(grid))
    basic.note(texts.LAYOUT_KEY)


def _draw_panel(cell: dict[str, Any], ranked: pl.DataFrame, metric: Metric) -> None:
    basic.section(cell_texts.cell_name(cell), cell_texts.gpus_aside(cell))
    if cell["run_id"] is None:
        basic.note(panel_texts.panel_reason(cell))
        lists.rows([("Outcomes", basic.rich(cell["outcome"]))])
        return
    value, unit = panel_texts.big_number(cell, metric.key)
    run = basic.link(cell["layout"] or "layout unknown", urls.run_url(cell["run_id"]))
    st.html(
        f'<p class="ss-big">{basic.rich(value)} <small>{basic.rich(unit)}</small></p><p class="ss-layout">{run}</p>'
    )
    lists.rows([(basic.rich(name), basic.rich(text)) for name, text in panel_texts.facts(cell)])
    if cell["runner_up_run_id"] is not None:
        address = urls.compare_url([cell["run_id"], cell["runner_up_run_id"]])
        st.html(f'<p class="ss-plain ss-way">{basic.link("Compare with the runner-up", address)}</p>')
    basic.section("Ranking", panel_texts.ranking_qualifier(ranked, metric.key))
    rows = ranked_rows(ranked, metric=metric.key)
    grid_panel.ranking(rows)
    if len(rows) > 2:
        address = urls.compare_url([row.run_id for row in rows])
        st.html(f'<p class="ss-plain ss-way">{basic.link(f"Compare these {len(rows)}", address)}</p>')


def _draw_pick(view: View, chosen: Slice, cell: dict[str, Any], ranked: pl.DataFrame, usual: str | None) -> None:
    """The estimator's pick for the cell, and its measured result where there is one."""
    pick = estimator_pick.pick_for(view.store, chosen, cell, cell["framework"] or usual)
    if pick is None:
        return
    tries = queries.tries(chosen, cell).run(view.store.con)
    st.html(f'<h2 class="ss-section">The estimator\'s pick {basic.badge("estimated")}</h2>')
    rows = [(basic.rich(name), basic.rich(text)) for name, text in panel_texts.pick_rows(pick, ranked, tries, cell)]
    lists.rows([*rows, ("", basic.link("Open in the Explorer", pick.url))])


def _draw_tables(chosen: Slice, view: View, ranked: pl.DataFrame, cell: dict[str, Any]) -> None:
    title = f"All completed layouts, {cell_texts.cell_name(cell)}"
    folds.fold(title, lambda: _draw_layouts(view, chosen, ranked), key="layouts")
    _draw_history(chosen, view, cell)
    basic.how_to_read(texts.HOW_TO_READ)


def _draw_layouts(view: View, chosen: Slice, ranked: pl.DataFrame) -> None:
    above = st.container()
    shown = [name for name in _TABLE if name != "run_id" and (ranked.is_empty() or ranked[name].count())]
    ticked, opened = tables.ticking_table(ranked, shown, key="ranked_layouts")
    with above:
        if ranked.height > 1:
            compare_links.draw_ticked([ranked["run_id"][place] for place in ticked])
    if opened is not None:
        follow(urls.run_url(ranked["run_id"][opened]))
    rows = queries.ranked_layouts(chosen, view.filters).run(view.store.con)["layouts"].item()
    tables.csv_later(queries.ranking(chosen, view.filters), view.store.con, "ranked_layouts", rows=rows)


def _draw_history(chosen: Slice, view: View, cell: dict[str, Any]) -> None:
    """Who led the cell when, and what new versions of the software changed; nothing where neither changed."""
    leads = history.leads(chosen, cell).run(view.store.con).to_dicts()
    changes = history.changes(chosen, cell).run(view.store.con).to_dicts()
    if len(leads) > 1:
        basic.section("Who led when", history_texts.leads_title(leads))
        lists.items([(*history_texts.lead_line(row, leads), urls.run_url(row["run_id"])) for row in leads])
    if changes:
        basic.section("From version to version", history_texts.changes_title(changes))
        lists.items([(*history_texts.change_line(row), urls.run_url(row["run_id"])) for row in changes])


_page(shell.begin())
