"""Memory: peaks beside the card, one run from its estimate to the card, fragmentation, and what failed runs need."""

from __future__ import annotations

from typing import Any

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.charts import memory_waterfall as charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.queries import memory as queries
from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.sections import page_head
from sweepscope.dashboard.selection import url_state
from sweepscope.dashboard.selection.slices import offered_origins
from sweepscope.dashboard.text import memory as texts
from sweepscope.dashboard.text import memory_run as run_texts
from sweepscope.dashboard.text import origins as origin_texts
from sweepscope.dashboard.view_models import memory
from sweepscope.dashboard.widgets import basic, choices, folds, lists, tables, urls

TITLE = "Memory"
_PEAKS_SHOWN = 10
_LISTED = 400
_SPREADS_SHOWN = 6
_SNAPSHOTS_LISTED = 8
_PEAKS = names(
    "run_id status model num_nodes layout recompute mbs needs verdict_evidence mem_peak_allocated_bytes "
    "mem_peak_reserved_bytes mem_used_max_bytes est_mem_bytes eps_frag mem_total_bytes"
)
_SPREAD = names(
    "sweep framework n eps_frag eps_frag_low eps_frag_high eps_frag_max est_eps_frag fragmentation_max_bytes"
)
_TERMS = names(
    "framework term n est_median_bytes residual_median_bytes term_factor term_offset_bytes explained_share "
    "n_snapshots est_beside_median_bytes measured_median_bytes"
)
_SNAPSHOTS = names(
    "source_path device rank mem_source run_id layout peak_bytes peak_reserved_bytes fragmentation_at_peak oom_events "
    "events peak_phase violations warnings"
)


def _page(view: View) -> None:
    con = view.store.con
    found = queries.origins().run(con)
    if found.is_empty():
        page_head.nothing(TITLE, texts.NOTHING, texts.HOW_TO_GET)
        return
    origins = offered_origins(found["origin"].to_list())
    origin = page_head.origin(origins, view.filters.origin)
    every, artefacts = queries.peaks(origin).run(con), queries.snapshots(origin).run(con)
    sweeps = memory.sweeps(every, artefacts)
    head, controls = page_head.regions()
    with controls:
        scope = Scope(origin, page_head.choose_sweep(sweeps, "run"))
    peaks, snapshots = (
        frame if scope.sweep is None else frame.filter(pl.col("sweep") == scope.sweep) for frame in (every, artefacts)
    )
    spread, terms = queries.fragmentation(scope).run(con), queries.terms(scope).run(con)
    rows = peaks.head(_LISTED).to_dicts()
    names = memory.run_names(rows)
    with controls:
        picked = _run(rows, names)
        shell.share_popover()
        basic.sql_popover(
            {
                "Peaks": queries.peaks(origin),
                "Fragmentation": queries.fragmentation(scope),
                "Terms": queries.terms(scope),
                "Files": queries.snapshots(origin),
                **({"Waterfall": queries.parts(picked)} if picked else {}),
            }
        )
    with head:
        answer = texts.answer(peaks, memory.verdicts(peaks), spread, snapshots.height)
        meta = texts.meta(peaks.height, scope.sweep, len(sweeps), snapshots.height)
        basic.head(TITLE, answer, meta, origins=(origin,), links=page_head.other_origins(origins, origin))
        page_head.say_instead(con, origin, view.filters.origin, origin_texts.NO_MEMORY)
    if rows:
        basic.figures(texts.figures(peaks, spread, terms))
        with st.container(key="hero"):
            left, right = st.columns([0.5, 0.5], gap="large")
        with left, st.container(gap="xsmall"):
            _draw_peaks(view, peaks, names, picked)
        with right, st.container(gap="xsmall"):
            _draw_run(view, next(row for row in rows if row["run_id"] == picked))
            _draw_fragmentation(view, spread)
            _draw_terms(view, terms)
    _draw_snapshots(snapshots)
    _draw_tables(peaks, spread, terms)


def _run(rows: list[dict[str, Any]], names: list[str]) -> str | None:
    """The run whose waterfall is drawn, from the list or by a click on its track."""
    default = memory.default_run(rows)
    if default is None:
        return None
    ids = [row["run_id"] for row in rows]
    shown = dict(zip(ids, names, strict=True))
    wanted: str = choices.select(
        "Run", "run", ids, default, shown=lambda run_id: f"{shown[run_id]} · {run_id}", width=420
    )
    return wanted


def _draw_peaks(view: View, peaks: pl.DataFrame, names: list[str], picked: str | None) -> None:
    drawn = peaks.head(_PEAKS_SHOWN)
    basic.section("Peak by run", "out of memory first, then the fullest; ◇ = estimated; click one")
    hovers = [texts.peak_hover(row, name) for row, name in zip(drawn.iter_rows(named=True), names, strict=False)]
    figure = charts.draw_peaks(drawn, names[: drawn.height], hovers, view.theme, picked)
    basic.chart(figure, key="peaks", alt=texts.peaks_alt(drawn), on_select=_pick)
    if (more := peaks.height - drawn.height) > 0:
        basic.note(f"{numbers.count(more, 'more run')} in the list above and the table below.")


def _pick() -> None:
    points = st.session_state["peaks"]["selection"]["points"]
    if points and "customdata" in points[0]:
        url_state.put("run", [points[0]["customdata"]])


def _draw_run(view: View, row: dict[str, Any]) -> None:
    """The waterfall of one run and its verdict."""
    con, run_id = view.store.con, row["run_id"]
    parts = queries.parts(run_id).run(con)
    fit = row if row["mem_verdict"] else None
    bars = memory.bars(parts)
    basic.section("From the estimate to the card", "the picked run")
    st.html(f'<p class="ss-plain">{basic.rich(run_texts.run_answer(fit, row))}</p>')
    st.html(f'<p class="ss-plain">{basic.link("Open this run", urls.run_url(run_id))}</p>')
    if bars:
        basic.chart(charts.draw_waterfall(bars, view.theme), key="waterfall", alt=run_texts.waterfall_alt(bars))
        basic.note(run_texts.run_meta(fit, row, memory.unknown_parts(parts)))
    else:
        basic.note("Neither its log nor another file has its memory use.")


def _draw_fragmentation(view: View, spread: pl.DataFrame) -> None:
    basic.section("Fragmentation", "median and 10 to 90 %, completed runs; ◇ = allowed for in estimates")
    if spread.is_empty():
        basic.note(texts.NO_FRAGMENTATION)
        return
    drawn = spread.head(_SPREADS_SHOWN)
    names = [texts.spread_name(row) for row in drawn.iter_rows(named=True)]
    hovers = [texts.spread_hover(row) for row in drawn.iter_rows(named=True)]
    figure = charts.draw_fragmentation(drawn, names, hovers, view.theme)
    basic.chart(figure, key="fragmentation", alt=f"Fragmentation of {numbers.count(drawn.height, 'sweep')}.")
    if spread.height > drawn.height:
        basic.note(f"{numbers.count(spread.height - drawn.height, 'more sweep')} in the table below.")


def _draw_terms(view: View, terms: pl.DataFrame) -> None:
    fitted = terms.filter(pl.col("explained_share").is_not_null())
    basic.section("Which term is off", texts.terms_qualifier(fitted) if fitted.height else "")
    if fitted.height:
        first = fitted.filter(pl.col("framework").eq_missing(fitted["framework"][0]))
        names = [texts.TERM_NAME[term] for term in first["term"]]
        factors = [texts.factor(row) for row in first.iter_rows(named=True)]
        alt = "Share of the estimate's error that each of its terms explains alone."
        basic.chart(charts.draw_terms(first, names, factors, view.theme), key="terms", alt=alt)
    else:
        basic.note(texts.NO_TERMS)
    if measured := texts.measured_terms(terms):
        basic.note(measured)


def _draw_snapshots(snapshots: pl.DataFrame) -> None:
    basic.section("Snapshots", "what was alive, over the record; failures first" if snapshots.height else "")
    if snapshots.is_empty():
        basic.note(texts.NO_SNAPSHOT)
        return
    lines = []
    for row in snapshots.head(_SNAPSHOTS_LISTED).iter_rows(named=True):
        url = urls.snapshot_url(row["source_path"], row["device"])
        lines.append((run_texts.snapshot_name(row), run_texts.snapshot_facts(row), url))
    lists.items(lines)
    folds.fold(f"All {numbers.count(snapshots.height, 'file')}", lambda: _draw_files(snapshots), key="snapshots")


def _draw_files(snapshots: pl.DataFrame) -> None:
    tables.table(snapshots, [name for name in _SNAPSHOTS if snapshots[name].count()], wide=("warnings",))
    tables.csv_button(snapshots, "memory_snapshots")


def _draw_tables(peaks: pl.DataFrame, spread: pl.DataFrame, terms: pl.DataFrame) -> None:
    if peaks.height:
        shown = peaks.head(_LISTED)
        needs = [run_texts.need(row) for row in shown.iter_rows(named=True)]
        shown = shown.with_columns(needs=pl.Series(needs, dtype=pl.String))
        of_all = f"the first {numbers.number(_LISTED)} of " if peaks.height > _LISTED else ""
        title = f"Runs as a table, {of_all}{numbers.count(peaks.height, 'row')}"
        tables.table_twin(title, shown, _PEAKS, csv=peaks, csv_name="memory_peaks")
    if spread.height:
        tables.table_twin("Fragmentation as a table", spread, _SPREAD, csv_name="memory_fragmentation")
    if terms.height:
        tables.table_twin("Terms as a table", terms, _TERMS, csv_name="memory_terms")
    basic.how_to_read(texts.HOW_TO_READ)


_page(shell.begin())
