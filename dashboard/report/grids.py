"""Sections on grids: the headline, the best configuration of each cell, and scaling."""

from __future__ import annotations

from functools import partial

import polars as pl

from sweepscope.dashboard.charts import heatmap
from sweepscope.dashboard.charts import scaling as scaling_charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.metrics import METRICS, offered
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.queries import cells as cell_queries
from sweepscope.dashboard.queries import overview as overview_queries
from sweepscope.dashboard.queries import plans
from sweepscope.dashboard.queries import scaling as scaling_queries
from sweepscope.dashboard.queries.failures import Scope, totals
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.report.section import Listing, Picture, Section
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.text import best as best_texts
from sweepscope.dashboard.text import cell as cell_texts
from sweepscope.dashboard.text import overview as overview_texts
from sweepscope.dashboard.text import scaling as scaling_texts
from sweepscope.dashboard.view_models import cells, scaling
from sweepscope.dashboard.view_models.scaling import Baseline

CELLS = names(
    "model num_nodes num_gpus layout framework mfu tokens_per_s_per_gpu usd_per_m_tokens step_time_s "
    "mem_peak_allocated_bytes repeats "
    "margin chance_best is_tie runner_up_layout outcome"
)
_OWN = names(
    "model num_gpus layout mfu tokens_per_s_per_gpu usd_per_m_tokens accelerator seq_len gbs_tokens "
    "differs runs_completed"
)
_NO_FILTERS = Filters()
_POINTS = names("line num_nodes num_gpus layout mfu tokens_per_s_per_gpu usd_per_m_tokens scaling_efficiency repeats")


def headline(con: Reader, chosen: Slice | None, origin: str | None) -> Section:
    """What the store says first: the overview's answer and figures, and every completed run of one's own."""
    own_query = overview_queries.completed("measured")
    own = own_query.run(con) if origin == "measured" else pl.DataFrame()
    listings = [Listing("Completed runs, the fastest of each model and GPU count", own, _OWN)] if own.height else []
    queries = {"Completed runs": own_query} if own.height else {}
    if chosen is None:
        answer = overview_texts.own_answer(own) if own.height else best_texts.NO_GRID
        lacks = overview_texts.lacking(overview_queries.lacking("measured").run(con).row(0, named=True))
        origins = (origin,) if origin is not None else ()
        return Section(
            "headline",
            "Overview",
            answer,
            origins=origins,
            listings=listings,
            queries=queries,
            notes=[lacks] if lacks else [],
        )
    grid = whole_grid(con, chosen)
    in_grid = cells.completed(cell_queries.outcomes(chosen, _NO_FILTERS).run(con))
    wide = own if own.height and own["runs_completed"].sum() > in_grid else None
    counts = overview_queries.repeats(chosen).run(con).row(0, named=True)
    wider = totals(Scope(chosen.origin, chosen.sweep)).run(con).row(0, named=True)
    reasons = overview_queries.without_mfu(chosen).run(con)
    return Section(
        "headline",
        "Overview",
        overview_texts.answer(grid) if wide is None else overview_texts.own_answer(wide),
        overview_texts.slice_words(chosen),
        (chosen.origin,),
        figures=overview_texts.figures(grid, counts["layouts"], counts["repeated"], wider, reasons, own=wide),
        listings=listings,
        queries={**queries, "Repeats": overview_queries.repeats(chosen)},
    )


def best(con: Reader, chosen: Slice, theme: Theme, of_origin: int, *, number: int = 1) -> Section:
    """The grid of one slice: its heatmap and the winner of each cell."""
    grid = whole_grid(con, chosen)
    metric = next(iter(offered(grid)), METRICS["mfu"])
    model, scale = best_texts.default_cell(grid)
    cell = grid.filter(model=model, scale=scale).row(0, named=True)
    drawn = cells.drawn(grid, model)
    hovers = [cell_texts.hover(row, metric) for row in drawn.iter_rows(named=True)]
    draw = partial(heatmap.draw, drawn, metric, theme, hovers=hovers, selected=(model, scale))
    return Section(
        f"best_{number}",
        "Best configurations" if number == 1 else f"Further grid: {overview_texts.slice_words(chosen)}",
        best_texts.cell_answer(cell),
        " ".join(filter(None, [best_texts.conditions(chosen, grid, of_origin), best_texts.left_out(drawn, grid)])),
        (chosen.origin,),
        pictures=[Picture(metric.label, draw, best_texts.grid_alt(drawn, metric))],
        listings=[Listing("The winner of each cell", grid, CELLS, most=200)],
        queries={
            "Cells": cell_queries.cells(chosen, Filters()),
            "Outcomes": cell_queries.outcomes(chosen, Filters()),
        },
    )


def scales(con: Reader, chosen: Slice, theme: Theme, *, model: str | None = None) -> Section:
    """How much efficiency is left as nodes are added, of every model of the slice or of one."""
    query = scaling_queries.best_layouts(chosen, Filters())
    points = query.run(con).filter(pl.lit(True) if model is None else pl.col("model") == model)
    noun = scaling.size_noun(points)
    points = scaling.against(scaling.with_size(points, noun), Baseline.parse("best"))
    lines = scaling.drawn_lines(points)
    baseline = Baseline.parse("best")
    pictures = []
    if lines:
        hovers = [scaling_texts.hover(row, noun) for row in points.iter_rows(named=True)]
        title = "Scaling efficiency, % of the baseline's throughput per GPU"
        draw = partial(
            scaling_charts.draw_share, points, theme, noun=noun, column="scaling_efficiency", lines=lines, hovers=hovers
        )
        alt = scaling_texts.alt(points, lines, "scaling_efficiency", title=title, noun=noun)
        pictures.append(Picture(title, draw, alt))
    return Section(
        "scaling",
        "Scaling",
        scaling_texts.answer(points, lines, baseline, chosen, noun, subject=""),
        scaling_texts.meta(points, lines, chosen),
        (chosen.origin,),
        pictures=pictures,
        listings=[Listing(numbers.count(points.height, "point"), points, _POINTS)] if points.height else [],
        queries={"Points": query},
    )


def whole_grid(con: Reader, chosen: Slice, filters: Filters = _NO_FILTERS) -> pl.DataFrame:
    """Every cell of a slice, with its outcomes under the filters and its planned runs."""
    found, ended = cell_queries.cells(chosen, filters), cell_queries.outcomes(chosen, filters)
    return cells.with_planned(
        cells.with_outcomes(found.run(con), ended.run(con), filters), plans.waiting(chosen).run(con)
    )
