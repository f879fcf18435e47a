"""Failures & cost: what failed and why, which patterns fail, where the GPU-hours went, and what to submit again."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import polars as pl
import streamlit as st

from sweepscope.dashboard.app import shell
from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.charts import failures as charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.symbols import OUTCOME, STATUS
from sweepscope.dashboard.queries import failures as queries
from sweepscope.dashboard.queries import network as network_queries
from sweepscope.dashboard.queries.failures import PATTERNS, Scope
from sweepscope.dashboard.sections import page_head, price_editor
from sweepscope.dashboard.selection import url_state
from sweepscope.dashboard.selection.slices import offered_origins
from sweepscope.dashboard.text import failure_lists as list_texts
from sweepscope.dashboard.text import failures as texts
from sweepscope.dashboard.text import origins as origin_texts
from sweepscope.dashboard.text import run_network as run_network_texts
from sweepscope.dashboard.view_models import failures
from sweepscope.dashboard.view_models.failures import Pattern
from sweepscope.dashboard.widgets import basic, choices, lists, tables, urls
from sweepscope.schemas.thresholds import INTERVAL_RUNS

TITLE = "Failures & cost"
_BY = ("sweep", "model", "num_nodes", "framework", "accelerator", "strategy", "day", "host")
# Rates are asked of the store once for all dimensions: each ask computes the whole view.
_DIMENSIONS = tuple(dict.fromkeys((*_BY, *PATTERNS)))
_RETRY = names(
    "status reason model num_nodes num_gpus layout run_id attempts gpu_hours_lost last_step steps_planned job_id "
    "run_dir evidence_line_no status_evidence"
)
_RATES = names(
    "dimension value failure_rate failure_rate_low failure_rate_high runs_judged runs_held runs_failed runs_oom "
    "runs_hang runs_infra runs_timeout runs_crash runs_unexplained gpu_hours_lost failures_without_gpu_hours"
)
_COSTS = (
    *names("sweep runs_tried runs_completed runs_failed gpu_hours"),
    *(f"gpu_hours_{name}" for name in OUTCOME if name != "running"),
    *names(
        "gpu_hours_idle gpu_hours_startup gpu_hours_queued runs_without_gpu_hours gpu_hours_until_winner "
        "gpu_hours_of_cells_in_order"
    ),
    *names("cells_in_order cells_answered"),
)
# Statuses of runs that failed.
_FAILED = names("oom host_oom hang nccl_error crash timeout node_fail preempted truncated failed")
_STRETCHED_SHOWN = 5
_IDLE_SHOWN = 5
_LATE_SHOWN = 5
_HANGS_SHOWN = 5
_RETRY_HEIGHT = 228  # px: the first six rows


def _page(view: View) -> None:
    con = view.store.con
    found = queries.origins().run(con)
    if found.is_empty():
        page_head.nothing(TITLE, texts.NOTHING)
        return
    origins = offered_origins(found["origin"].to_list())
    origin = page_head.origin(origins, view.filters.origin, "measured", view.chosen.origin if view.chosen else None)
    sweeps = queries.sweeps(origin).run(con)
    head, controls = page_head.regions()
    with controls:
        scope = Scope(origin, _sweep(view, sweeps))
        every = queries.rates(scope, *_DIMENSIONS).run(con)
        by = _dimension(every)
        price = _price()
    totals = queries.totals(scope).run(con).row(0, named=True)
    endings = queries.endings(scope).run(con).to_dicts()
    rates, rates_by = failures.rates_of(every, *PATTERNS), failures.rates_of(every, by)
    overall = failures.overall_rate(totals)
    patterns = failures.patterns(rates, overall) if overall is not None else []
    search = queries.search(scope).run(con).row(0, named=True)
    with controls:
        shell.share_popover()
        basic.sql_popover(
            {
                "Totals": queries.totals(scope),
                "Endings": queries.rates(scope, by),
                "Settings": queries.rates(scope, *PATTERNS),
                "Cost": queries.costs(scope),
                "Retry list": queries.retries(scope),
                "Time limits": queries.cut_short(scope),
                "Stretched": queries.stretched(scope),
                "Held idle": queries.idle(scope),
            }
        )
    with head:
        links = page_head.other_origins(origins, origin)
        meta = texts.meta(totals, scope.sweep, sweeps.height)
        basic.head(TITLE, texts.answer(totals, endings, patterns), meta, origins=(origin,), links=links)
        page_head.say_instead(con, origin, view.filters.origin, origin_texts.NO_FAILURE)
    basic.figures(texts.figures(totals, search, price))
    with st.container(key="hero"):
        left, right = st.columns([0.6, 0.4], gap="large")
    with left, st.container(gap="xsmall"):
        _draw_endings(view, rates_by, by, totals)
    with right, st.container(gap="xsmall"):
        _draw_patterns(view, patterns, overall)
    left, right = st.columns([0.5, 0.5], gap="large")
    with left, st.container(gap="xsmall"):
        _draw_hours(view, endings)
        _draw_idle(view, scope)
        _draw_stretched(view, scope)
        _draw_hangs(view, scope)
    with right, st.container(gap="xsmall"):
        _draw_reasons(view, scope)
    _draw_retries(view, scope)
    price_editor.draw(view)
    _draw_tables(view, scope, rates, rates_by)


def _sweep(view: View, sweeps: pl.DataFrame) -> str | None:
    """One sweep, or all. Of published runs one study at first: what others published does not add up."""
    sizes = dict(sweeps.iter_rows())
    chosen = view.chosen.sweep if view.chosen else None
    return page_head.choose_sweep(sizes, "run", default=None if view.filters.sweep or chosen not in sizes else chosen)


def _dimension(rates: pl.DataFrame) -> str:
    """Dimension of the bars; only what the runs differ in, so that there is more than one bar where possible."""
    values = rates["dimension"].value_counts()
    varied = dict(values.iter_rows())
    offered = [name for name in _BY if varied.get(name, 0) > (0 if name == "model" else 1)] or ["sweep"]
    default = failures.default_dimension(offered, varied)
    return choices.select("Endings by", "by", offered, default, shown=texts.dimension_option, width=150)


def _price() -> float | None:
    """Dollars per GPU-hour, kept in the address; the store knows no prices."""
    given = st.query_params.get("price", "")
    try:
        st.session_state["price"] = max(float(given), 0.0) or None
    except ValueError:
        st.session_state["price"] = None
    options: dict[str, Any] = {"key": "price", "on_change": _keep_price, "width": 150, "placeholder": "none"}
    price: float | None = st.number_input("Price per GPU-hour, $", min_value=0.0, step=0.1, **options)
    return price


def _keep_price() -> None:
    price = st.session_state["price"]
    url_state.put("price", [f"{price:g}"] if price else [])


def _draw_endings(view: View, rates: pl.DataFrame, by: str, totals: dict[str, Any]) -> None:
    basic.section("How runs ended", f"by {texts.dimension_option(by).lower()}, run attempts")
    rows = failures.endings_by(rates)
    if rows.is_empty():
        basic.note("No run names one.")
        return
    labels, hovers = [], []
    for row in rows.iter_rows(named=True):
        label = texts.value_label(by, row["value"], row["others"])
        labels.append(label)
        hovers.append(texts.endings_hover(numbers.plain(label), row))
    figure = charts.draw_endings(rows, labels, hovers, view.theme)
    basic.chart(figure, key="endings", alt=texts.endings_alt(by, rows.height, totals))
    basic.swatches([OUTCOME[name] for name in OUTCOME if name in rows.columns and rows[name].sum()], view.theme)
    if by == "host":
        named = rows.filter(pl.col("others") == 0)["value"]
        links = [basic.link(name, urls.node_url(name)) for name in named]
        st.html(f'<p class="ss-plain ss-way">{", ".join([*links, basic.link("all nodes", "node")])}</p>')


def _draw_patterns(view: View, patterns: list[Pattern], overall: float | None) -> None:
    basic.section("Settings that fail most", f"95 % interval, {INTERVAL_RUNS} runs or more")
    if not patterns or overall is None:
        basic.note("Too few runs to compare settings.")
        return
    basic.chart(charts.draw_patterns(patterns, overall, view.theme), key="patterns", alt=texts.patterns_alt(patterns))


def _draw_hours(view: View, endings: list[dict[str, Any]]) -> None:
    basic.section("Where the GPU-hours went", "by how the runs ended")
    if all(row["gpu_hours"] is None for row in endings):
        basic.note("No run of this scope logged both its duration and its number of GPUs.")
        return
    order = list(OUTCOME)
    rows = sorted(endings, key=lambda row: order.index(row["outcome"]))
    basic.chart(charts.draw_hours(rows, view.theme), key="hours", alt=texts.hours_alt(rows))


def _draw_idle(view: View, scope: Scope) -> None:
    costs = queries.costs(scope).run(view.store.con)
    rows, title = queries.idle(scope).run(view.store.con), list_texts.idle_title(costs)
    if rows.is_empty() and not title:
        return
    basic.section("Held, starting and waiting", title)
    shown = rows.head(_IDLE_SHOWN).iter_rows(named=True)
    lists.items([(*list_texts.idle_line(row), urls.run_url(row["run_id"])) for row in shown])


def _draw_stretched(view: View, scope: Scope) -> None:
    rows = queries.stretched(scope).run(view.store.con)
    if rows.is_empty():
        return
    basic.section("Runs that took many times the usual", numbers.count(rows.height, "run"))
    shown = rows.head(_STRETCHED_SHOWN).iter_rows(named=True)
    lists.items([(*list_texts.stretched_line(row), urls.run_url(row["run_id"])) for row in shown])


def _draw_reasons(view: View, scope: Scope) -> None:
    rows = queries.reasons(scope).run(view.store.con)
    if rows.is_empty():
        return
    basic.section("Why runs failed", "the lines that decided, numbers taken out; each leads to a run")
    lines = []
    for row in rows.iter_rows(named=True):
        text = f"{STATUS[row['status']].text}: {list_texts.wording(row['wording'])}"
        lines.append((text, numbers.count(row["runs"], "run"), urls.run_url(row["run_id"])))
    lists.items(lines)
    st.html(f'<p class="ss-note">{basic.link("All failed runs", _failed_url(scope))}</p>')


def _draw_hangs(view: View, scope: Scope) -> None:
    """Hangs by watchdog lines or dumps, with the suspect and a link to the incident."""
    rows = network_queries.hangs(scope).run(view.store.con).filter("is_first")
    if rows.is_empty():
        return
    basic.section("Hangs", f"{numbers.count(rows.height, 'incident')}; each leads to its ranks")
    shown = rows.head(_HANGS_SHOWN).iter_rows(named=True)
    lists.items(
        [(*run_network_texts.hang_line(row), urls.hang_url(row["source_path"], row["line_no"])) for row in shown]
    )
    st.html(f'<p class="ss-note">{basic.link("All hangs", "hang")}</p>')


def _failed_url(scope: Scope) -> str:
    sweeps = {} if scope.sweep is None else {"sweeps": scope.sweep}
    return f"runs?{urlencode({'origins': scope.origin, 'statuses': _FAILED, **sweeps}, doseq=True)}"


def _draw_retries(view: View, scope: Scope) -> None:
    if scope.origin == "published":
        return
    rows = queries.retries(scope).run(view.store.con)
    late = queries.cut_short(scope).run(view.store.con)
    if late.height:
        basic.section("Worth a longer time limit", list_texts.cut_short_title(late.height))
        furthest = late.head(_LATE_SHOWN).iter_rows(named=True)
        lists.items([(*list_texts.cut_short_line(row), urls.run_url(row["run_id"])) for row in furthest])
    basic.section("Worth submitting again", list_texts.retry_title(rows.height) if rows.height else "")
    if rows.is_empty():
        basic.note(list_texts.NO_RETRY)
        return
    symbols = {word: mark.text for word, mark in STATUS.items()}
    shown = rows.with_columns(
        pl.col("model", "layout").fill_null(list_texts.NOT_LOGGED),
        status=pl.col("status").replace_strict(symbols, default=pl.col("status")),
    )
    wide = ("status_evidence", "run_dir")
    tables.first_rows(shown, _RETRY, csv_name="retry_list", csv=rows, wide=wide, height=_RETRY_HEIGHT)
    nameless = rows.filter(pl.col("model").is_null() & pl.col("layout").is_null())
    if unknown := list_texts.retry_unknown(nameless.to_dicts()):
        basic.note(unknown)


def _draw_tables(view: View, scope: Scope, rates: pl.DataFrame, rates_by: pl.DataFrame) -> None:
    # a setting may be what the bars are by, and stands once
    everything = pl.concat([rates_by, rates.join(rates_by, on="dimension", how="anti", maintain_order="left")])
    tables.table_twin("Failure rates as a table", everything, _RATES, csv_name="failure_rates", is_counted=True)
    costs = queries.costs(scope).run(view.store.con)
    tables.table_twin("Cost of each sweep as a table", costs, _COSTS, csv_name="sweep_cost", is_counted=True)
    basic.how_to_read(texts.HOW_TO_READ)


_page(shell.begin())
