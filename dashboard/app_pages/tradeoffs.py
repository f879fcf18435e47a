"""Trade-offs: what speed costs in memory, money or GPUs, and what each setting does, over one's measured layouts."""

from __future__ import annotations

from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.links import follow
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.charts import tradeoffs as charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.theme import MFU_SCALE_TOP
from sweepscope.dashboard.queries import cells as queries
from sweepscope.dashboard.sections import filter_panel, page_head
from sweepscope.dashboard.text import tradeoffs as texts
from sweepscope.dashboard.view_models import tradeoffs
from sweepscope.dashboard.view_models.tradeoffs import DIMENSIONS, FACTORS, GAINS, QUANTITIES, SPENDS
from sweepscope.dashboard.widgets import basic, choices, tables, urls

_ALL = "all"
_NONE = "none"
_MOST_LINES = 2000
_TABLE = names(
    "model num_nodes num_gpus layout framework mfu tokens_per_s_per_gpu mem_peak_bytes usd_per_m_tokens step_time_s "
    "repeats recompute precision run_id"
)


def _page(view: View) -> None:
    chosen = view.chosen
    if chosen is None:
        page_head.no_grid(texts.TITLE, view.store.con)
        return
    query = queries.ranking(chosen, view.filters)
    found = tradeoffs.with_peak(query.run(view.store.con)).with_columns(
        accelerator=pl.lit(chosen.accelerator, pl.String)
    )
    head, controls = st.container(), st.container(horizontal=True, vertical_alignment="bottom", gap="small")
    with controls:
        kind = choices.segments("Show", "show", list(texts.SHOWN), shown=texts.SHOWN.__getitem__)
        rows = _cell(found, is_single=kind == "factor")
        filter_panel.draw(view, queries.facets(chosen).run(view.store.con))
        filter_panel.draw_chips(view.filters)
        shell.share_popover(view)
        basic.sql_popover({"Layouts": query})
    body = st.container(gap="xsmall")
    with body:
        answer, shown = _DRAW[kind](view, rows)
        ended = queries.outcomes(chosen, view.filters).run(view.store.con)
        here = ended.join(rows.select("model", "num_nodes").unique(), on=["model", "num_nodes"], how="semi")
        if kind == "front" and (failed := texts.without_point(here)):
            basic.note(failed)
    with head:
        basic.head(
            texts.TITLE,
            answer,
            texts.meta(chosen, rows.height),
            origins=(chosen.origin,),
            links=shell.other_origins(view),
        )
        shell.say_ignored(view)
        page_head.say_no_own_grid(view)
    tables.table_twin("As a table", shown, [name for name in _TABLE if name in shown.columns], csv_name="tradeoffs")
    basic.how_to_read((texts.HOW_TO_READ[kind], texts.HIDES))


def _cell(rows: pl.DataFrame, *, is_single: bool) -> pl.DataFrame:
    """Rows of the model and node count in the selectors; of one cell alone where `is_single`."""
    counts = rows["model"].value_counts(sort=True)
    models = counts["model"].to_list()
    model = choices.select("Model", "model", models or [""], width=170)
    of_model = rows.filter(model=model)
    nodes = [str(value) for value in of_model["num_nodes"].drop_nulls().unique().sort()]
    most = of_model["num_nodes"].drop_nulls().mode().sort()
    default = str(most[-1]) if is_single and len(most) else _ALL
    options = nodes if is_single else [_ALL, *nodes]
    wanted = choices.select("Nodes", "nodes", options or [_ALL], default if default in options else None, width=110)
    return of_model if wanted == _ALL else of_model.filter(pl.col("num_nodes") == int(wanted))


def _draw_front(view: View, rows: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    gains = [name for name in tradeoffs.known(rows, GAINS) if tradeoffs.spends(rows, name)]
    if not gains:
        return texts.NOTHING_TO_WEIGH, rows
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        gain = choices.select("More of", "gain", gains, shown=tradeoffs.label, width=190)
        spends = tradeoffs.spends(rows, gain)
        spend = choices.select("For less of", "spend", spends, shown=tradeoffs.label, width=210)
    points = tradeoffs.front(rows, gain, spend)
    hovers = [texts.hover(row, gain, spend) for row in points.iter_rows(named=True)]
    named = [row for row in tradeoffs.best_and_lean(points, gain, spend) if row is not None]
    figure = charts.draw_front(points, hovers, (gain, spend), named, view.theme)
    basic.chart(figure, key="front", alt=texts.chart_alt("front", points.height, gain, spend), on_select=_open("front"))
    _follow()
    return texts.front_answer(points, gain, spend), points.sort("is_front", descending=True)


def _draw_free(view: View, rows: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    measured = tradeoffs.known(rows, list(QUANTITIES))
    if not measured:
        return "**Nothing differs here.** Choose another cell.", rows
    factors = tradeoffs.known(rows, DIMENSIONS)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        x = choices.select("Across", "x", [*factors, *measured], shown=tradeoffs.label, width=190)
        y = choices.select("Up", "y", measured, shown=tradeoffs.label, width=190)
        color = choices.select("Colour", "color", [_NONE, *factors], shown=_color_name, width=150)
    hovers = [texts.hover(row, x, y) for row in rows.iter_rows(named=True)]
    paint = None if color == _NONE else color
    if paint:
        basic.legend(list(charts.colors(rows, paint, view.theme).items()))
    figure = charts.draw_free(rows, hovers, (x, y), paint, view.theme, is_box=x not in QUANTITIES)
    basic.chart(figure, key="free", alt=texts.chart_alt("free", rows.height, x, y), on_select=_open("free"))
    _follow()
    return texts.free_answer(rows, x, y), rows


def _color_name(name: str) -> str:
    return "none" if name == _NONE else tradeoffs.label(name)


def _draw_parallel(view: View, rows: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    drawn = rows.head(_MOST_LINES)
    axes = tradeoffs.axes(drawn, (*DIMENSIONS, SPENDS[0], *reversed(GAINS)))
    if len(axes) < 2:
        return "**These layouts differ in fewer than two ways.** Choose all nodes, or another model.", rows
    shares = [None if mfu is None else min(mfu / MFU_SCALE_TOP, 1.0) for mfu in drawn["mfu"]]
    with st.container(key="parallel_scroll"):
        figure = charts.draw_parallel(axes, shares, view.theme)
        basic.chart(figure, key="parallel", alt=texts.chart_alt("parallel", drawn.height), is_fitted=False)
    if rows.height > drawn.height:
        basic.note(f"The first {numbers.number(drawn.height)} of {numbers.number(rows.height)} layouts are drawn.")
    return texts.parallel_answer(rows), rows


def _draw_factor(view: View, rows: pl.DataFrame) -> tuple[str, pl.DataFrame]:
    ordered = rows.drop_nulls("tokens_per_s_per_gpu").sort("tokens_per_s_per_gpu", descending=True)
    base: dict[str, Any] | None = ordered.row(0, named=True) if ordered.height else None
    changes = tradeoffs.one_factor(ordered, base) if base else []
    if changes:
        figure = charts.draw_one_factor(changes, view.theme)
        basic.chart(figure, key="factor", alt=texts.chart_alt("factor", len(changes)), on_select=_open("factor"))
        _follow()
    ids = [one.run_id for one in changes]
    varied = tradeoffs.known(rows, FACTORS)
    if base and (same := [tradeoffs.label(name) for name in FACTORS if name in rows.columns and name not in varied]):
        basic.note(f"Never varied here: {', '.join(same)}.")
    return texts.factor_answer(changes, base), ordered.filter(pl.col("run_id").is_in(ids)) if ids else ordered


_OPENED = "tradeoffs_opened"


def _open(key: str) -> Any:
    """What a click on a dot does: its run is opened by the run of the page that follows."""

    def pick() -> None:
        points = st.session_state[key]["selection"]["points"]
        if points:
            st.session_state[_OPENED] = points[0]["customdata"][0]

    return pick


def _follow() -> None:
    if run_id := st.session_state.pop(_OPENED, None):
        follow(urls.run_url(run_id))


_DRAW = {"front": _draw_front, "free": _draw_free, "parallel": _draw_parallel, "factor": _draw_factor}
_page(shell.begin())
