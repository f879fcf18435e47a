"""Estimator: how far runs are from what their hardware allows, by what pattern, and where one run's MFU goes."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.app.store import fitted_here, known_profiles
from sweepscope.dashboard.charts import estimator as charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.queries import estimator as queries
from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.sections import page_head
from sweepscope.dashboard.selection import url_state
from sweepscope.dashboard.selection.slices import offered_origins
from sweepscope.dashboard.text import estimator as texts
from sweepscope.dashboard.text import estimator_run as run_texts
from sweepscope.dashboard.text import origins as origin_texts
from sweepscope.dashboard.view_models import estimator
from sweepscope.dashboard.view_models.estimator import Hover
from sweepscope.dashboard.widgets import basic, choices, folds, lists, tables, urls
from sweepscope.schemas.thresholds import PATTERN_RUNS

TITLE = "Estimator"
_ACCURACY = names(
    "framework accelerator model_size runs time_ratio time_ratio_p10 time_ratio_p90 time_error penalised mem_runs "
    "mem_ratio mem_error"
)
_PROFILES = names(
    "est_profile predicted unseen_median_error unseen_mean_error interval_coverage rows split fitted_on fitted_at "
    "age_days runs"
)
_RUNS = names(
    "model num_nodes num_gpus accelerator framework layout pattern step_time_s est_step_time_s time_ratio "
    "mfu est_mfu mem_peak_allocated_bytes est_mem_bytes fit run_id"
)
_TABLE_ROWS = 500


def _page(view: View) -> None:
    con = view.store.con
    if not view.store.has("estimates", "estimator_residuals"):
        page_head.nothing(TITLE, texts.BEFORE_ESTIMATES)
        return
    found = queries.origins().run(con)
    if found.is_empty():
        page_head.nothing(TITLE, texts.NOTHING)
        return
    offered = offered_origins(found["origin"].to_list())
    # Without a wish: the first whose runs can be set beside estimates.
    compared = dict(found.select("origin", "compared").iter_rows())
    origin = page_head.origin(offered, view.filters.origin, next((name for name in offered if compared[name]), None))
    sweeps = queries.sweeps(origin).run(con)
    head, controls = page_head.regions()
    with controls:
        sizes = dict(sweeps.iter_rows())
        scope = Scope(origin, page_head.choose_sweep(sizes, "run", width=240) if sizes else None)
    totals = queries.totals(scope).run(con).row(0, named=True)
    runs = estimator.with_fit(queries.runs(scope).run(con))
    fits = dict(runs.group_by("fit").len().iter_rows())
    accuracy = estimator.accuracy(runs, known_profiles(), datetime.now(UTC).date())
    unseen = estimator.unseen_errors(accuracy)
    patterns = queries.patterns(scope).run(con)
    with controls:
        picked = _picked(runs)
        against = _against(runs)
        shell.share_popover()
        basic.sql_popover(
            {
                "Runs": queries.runs(scope),
                "Patterns": queries.patterns(scope, against),
                "Accuracy": queries.accuracy(scope),
                "What is compared": queries.account(scope),
                **({"Run taken apart": queries.breakdown(picked)} if picked else {}),
            }
        )
    with head:
        tried = found.filter(pl.col("origin") == origin)["runs"].item()
        meta = texts.meta(fits, unseen, scope.sweep, sweeps.height) if totals["runs"] else numbers.count(tried, "run")
        basic.head(
            TITLE,
            texts.answer(totals, patterns.to_dicts()),
            meta,
            origins=(origin, "estimated"),
            links=page_head.other_origins(offered, origin),
        )
        _draw_remarks(view, origin, totals)
    if picked is not None:
        compared_runs = estimator.compared_with(runs, against)
        with st.container(key="hero"):
            left, right = st.columns([0.47, 0.53], gap="large")
        with left, st.container(gap="xsmall"):
            _draw_parity(view, compared_runs, picked=picked, against=against)
            if aside := texts.aside(against, runs.height - compared_runs.height):
                basic.note(aside)
        with right, st.container(gap="xsmall"):
            _draw_waterfall(view, picked)
        left, right = st.columns([0.47, 0.53], gap="large")
        with left, st.container(gap="xsmall"):
            _draw_memory(view, runs, totals)
        with right, st.container(gap="xsmall"):
            shown = patterns if against == "estimate" else queries.patterns(scope, against).run(con)
            _draw_patterns(view, shown, against)
        _draw_tables(view, scope, runs, accuracy)
    _draw_account(view, scope, is_compared=picked is not None)
    if picked is not None:
        basic.how_to_read(texts.HOW_TO_READ)


def _draw_remarks(view: View, origin: str, totals: Row) -> None:
    """Why others' runs are shown; beside one's own, what constants fitted on this home would do, or do."""
    page_head.say_instead(view.store.con, origin, view.filters.origin, origin_texts.NO_ESTIMATE)
    if origin != "measured":
        return
    fitted = {one.name: float(one.about["time_median"]) for one in fitted_here() if "time_median" in one.about}
    if advice := texts.calibration(totals, fitted):
        basic.note(advice)


def _picked(runs: pl.DataFrame) -> str | None:
    """The run that is taken apart: of the address, else the one with the best MFU."""
    offered = estimator.examples(runs, st.query_params.get("picked"))
    if not offered:
        return None
    rows = {row["run_id"]: row for row in runs.filter(pl.col("run_id").is_in(list(offered))).iter_rows(named=True)}
    return choices.select(
        "Run taken apart, or click a point",
        "picked",
        list(offered),
        shown=lambda run_id: run_texts.option(rows[run_id], offered[run_id]),
        width=410,
    )


def _against(runs: pl.DataFrame) -> str:
    """Which estimate the charts of time hold the runs against."""
    offered = estimator.offered_against(runs)
    if len(offered) == 1:
        return offered[0]
    return choices.select("Estimated", "against", offered, shown=texts.ESTIMATE_KINDS.__getitem__, width=200)


def _pick() -> None:
    """Takes the clicked run apart. An empty list is a second click on it: it stays."""
    points = st.session_state.parity["selection"]["points"]
    if points and points[0].get("customdata"):
        url_state.put("picked", [points[0]["customdata"][0]])


def _hovers(runs: pl.DataFrame) -> list[Hover]:
    return [run_texts.hover(row) for row in runs.iter_rows(named=True)]


def _draw_parity(view: View, runs: pl.DataFrame, *, picked: str, against: str) -> None:
    how = "" if against == "estimate" else f", {texts.ESTIMATE_KINDS[against]}"
    basic.section("Measured against estimated MFU", f"each point a run{how}")
    known = runs.drop_nulls("mfu")
    unknown, runs = runs.height - known.height, known
    if unknown:
        basic.note(texts.without_mfu(unknown))
    if runs.is_empty():
        return
    beyond, possible = 0, runs.filter(estimator.is_possible())
    if picked in possible["run_id"] or picked not in runs["run_id"]:
        beyond, runs = runs.height - possible.height, possible
    outside, slow = runs.filter(pl.col("fit") != estimator.FITTED).height, runs.filter("is_penalised").height
    drawn = estimator.thinned(runs, ("est_mfu", "mfu"), picked)
    figure = charts.draw_mfu(drawn, _hovers(drawn), view.theme, picked=picked)
    basic.chart(figure, key="parity", alt=texts.parity_alt(runs.height, slow, against), on_select=_pick)
    spans = "".join(
        f'<span><span style="color:{view.theme.categories[int(color)] if color else view.theme.ink}">'
        f"{html.escape(symbol)}</span> {basic.rich(text)}</span>"
        for symbol, color, text in texts.legend(runs.height, slow, outside)
    )
    st.html(f'<div class="ss-legend">{spans}</div>')
    _draw_notes(texts.drawn_for(drawn.height, runs.height), texts.beyond_peak(beyond) if beyond else "")


def _draw_notes(*notes: str) -> None:
    for text in filter(None, notes):
        basic.note(text)


def _draw_waterfall(view: View, picked: str) -> None:
    row = queries.breakdown(picked).run(view.store.con).row(0, named=True)
    losses = estimator.losses(row)
    basic.section(f"Where {run_texts.name(row)} loses its MFU", run_texts.setup(row))
    left = estimator.at_peak(row) if row["mfu"] is None else row["mfu"]
    figure = charts.draw_waterfall(losses, left, view.theme, name=run_texts.left_name(row))
    basic.chart(figure, key="waterfall", alt=run_texts.waterfall_alt(row, losses))
    run = basic.link("Open this run", urls.run_url(picked))
    remarks = run_texts.unexplained(losses) + run_texts.recount(row, losses) + run_texts.assumed(row["est_assumptions"])
    st.html(f'<p class="ss-note">{basic.rich(remarks)} {run}</p>')


def _draw_memory(view: View, runs: pl.DataFrame, totals: dict[str, Any]) -> None:
    if not totals["mem_runs"]:
        basic.section("Peak memory")
        basic.note("None of these runs logged the peak of its allocated memory.")
        return
    basic.section("Peak memory, measured against estimated", texts.memory_title(totals))
    logged = runs.drop_nulls("mem_peak_allocated_bytes")
    drawn = estimator.thinned(logged, ("est_mem_bytes", "mem_peak_allocated_bytes"))
    figure = charts.draw_memory(drawn, _hovers(drawn), view.theme)
    basic.chart(figure, key="memory_parity", alt=texts.memory_alt(totals))
    _draw_notes(texts.drawn_for(drawn.height, logged.height))


def _draw_patterns(view: View, patterns: pl.DataFrame, against: str) -> None:
    drawn = patterns.filter(pl.col("runs") >= PATTERN_RUNS)
    basic.section("Measured over estimated step time, by pattern", "dot = median, bar = 10th to 90th percentile")
    if drawn.is_empty():
        basic.note(texts.too_few(patterns.height))
        return
    rows = drawn.to_dicts()
    basic.chart(charts.draw_patterns(drawn, view.theme), key="residuals", alt=texts.patterns_alt(rows, against))
    if left_out := texts.too_few(patterns.height - drawn.height):
        basic.note(left_out)


def _draw_tables(view: View, scope: Scope, runs: pl.DataFrame, unseen: pl.DataFrame) -> None:
    accuracy = queries.accuracy(scope).run(view.store.con)
    tables.table_twin(texts.ACCURACY, accuracy, _ACCURACY, csv_name="estimator_accuracy", is_counted=True)
    tables.table_twin(texts.UNSEEN, unseen, _PROFILES, csv_name="estimator_constants", is_counted=True)
    slowest = runs.sort("time_ratio", descending=True).head(_TABLE_ROWS)
    shown = f"the {numbers.number(_TABLE_ROWS)} slowest of " if runs.height > _TABLE_ROWS else ""
    tables.table_twin(
        f"Runs as a table, {shown}{numbers.count(runs.height, 'row')}",
        slowest,
        _RUNS,
        csv=runs,
        csv_name="estimator_residuals",
    )


def _draw_account(view: View, scope: Scope, *, is_compared: bool) -> None:
    """The reasons why runs are not compared: open where that is all that the page has to show."""
    rows = queries.account(scope).run(view.store.con).to_dicts()
    title = f"What is compared, and what is not · {texts.account(rows)}"
    folds.fold(title, lambda: _draw_reasons(rows), key="account", is_open=not is_compared)


def _draw_reasons(rows: list[dict[str, Any]]) -> None:
    lists.items([(text, value, None) for text, value in texts.reasons(rows)])
    schema = {"fate": pl.String, "reason": pl.String, "runs": pl.Int64}
    refused = pl.DataFrame([row for row in rows if row["fate"] == "not estimated"], schema=schema)
    if refused.height:
        tables.table_twin(
            "Every reason in full", refused, ("reason", "runs"), csv_name="not_estimated", is_counted=True
        )


_page(shell.begin())
