"""Sections on failures and their cost, on the distance to theory, and to what others published."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import polars as pl

from sweepscope.dashboard.charts import estimator as estimator_charts
from sweepscope.dashboard.charts import failures as failure_charts
from sweepscope.dashboard.charts import frontier as frontier_charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.queries import estimator as estimator_queries
from sweepscope.dashboard.queries import failures as queries
from sweepscope.dashboard.queries import frontier as frontier_queries
from sweepscope.dashboard.queries.failures import PATTERNS, Scope
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.report.section import Listing, Picture, Section
from sweepscope.dashboard.text import estimator as estimator_texts
from sweepscope.dashboard.text import estimator_run as run_texts
from sweepscope.dashboard.text import failures as texts
from sweepscope.dashboard.text import frontier as frontier_texts
from sweepscope.dashboard.view_models import estimator, failures, frontier
from sweepscope.schemas.thresholds import PATTERN_RUNS

_RETRY = names("status reason model num_nodes num_gpus layout gpu_hours_lost last_step steps_planned status_evidence")
_COST = names(
    "sweep runs_tried runs_completed runs_failed gpu_hours gpu_hours_completed gpu_hours_oom gpu_hours_hang "
    "gpu_hours_infra gpu_hours_timeout gpu_hours_crash gpu_hours_idle runs_without_gpu_hours"
)
_PATTERNS = names("pattern runs time_ratio time_ratio_p10 time_ratio_p90")
_FRONTIER = names(
    "model num_gpus accelerator mfu hfu usd_per_m_tokens dp tp pp cp ep global_batch_tokens seq_len precision "
    "published_on comparability"
)


def failed(con: Reader, origin: str, sweep: str | None, theme: Theme) -> Section | None:
    """What failed and what it cost; None where the origin has no run."""
    scope = Scope(origin, sweep)
    totals = queries.totals(scope).run(con).row(0, named=True)
    endings = queries.endings(scope).run(con).to_dicts()
    if not endings:
        return None
    overall = failures.overall_rate(totals)
    rates = queries.rates(scope, *PATTERNS).run(con)
    patterns = failures.patterns(rates, overall) if overall is not None else []
    search = queries.search(scope).run(con).row(0, named=True)
    pictures = []
    rows = failures.endings_by(queries.rates(scope, "model").run(con))
    if rows.height:
        labels = [texts.value_label("model", row["value"], row["others"]) for row in rows.iter_rows(named=True)]
        hovers = [
            texts.endings_hover(numbers.plain(label), row)
            for label, row in zip(labels, rows.iter_rows(named=True), strict=True)
        ]
        draw = partial(failure_charts.draw_endings, rows, labels, hovers, theme)
        pictures.append(Picture("How runs ended, by model", draw, texts.endings_alt("model", rows.height, totals)))
    if patterns and overall is not None:
        draw = partial(failure_charts.draw_patterns, patterns, overall, theme)
        pictures.append(Picture("Settings that fail most", draw, texts.patterns_alt(patterns)))
    return Section(
        "failures",
        "Failures and their cost",
        texts.answer(totals, endings, patterns),
        texts.meta(totals, sweep, queries.sweeps(origin).run(con).height),
        (origin,),
        figures=texts.figures(totals, search, None),
        pictures=pictures,
        listings=[
            Listing("Cost of each sweep", queries.costs(scope).run(con), _COST),
            Listing("Worth submitting again", queries.retries(scope).run(con), _RETRY),
        ]
        if origin != "published"
        else [],
        queries={
            "Totals": queries.totals(scope),
            "Endings": queries.rates(scope, "model"),
            "Cost": queries.costs(scope),
            "Retry list": queries.retries(scope),
        },
    )


def theory(con: Reader, origin: str, sweep: str | None, theme: Theme) -> Section | None:
    """How far runs are from what their hardware allows; None where nothing was estimated."""
    scope = Scope(origin, sweep)
    totals = estimator_queries.totals(scope).run(con).row(0, named=True)
    if not totals["runs"]:
        return None
    runs = estimator.with_fit(estimator_queries.runs(scope).run(con))
    patterns = estimator_queries.patterns(scope).run(con)
    known = runs.drop_nulls("mfu").filter(estimator.is_possible())
    pictures = []
    if known.height:
        hovers = [run_texts.hover(row) for row in known.iter_rows(named=True)]
        slow = known.filter("is_penalised").height
        draw = partial(estimator_charts.draw_mfu, known, hovers, theme)
        alt = estimator_texts.parity_alt(known.height, slow, "estimate")
        pictures.append(Picture("Measured against estimated MFU, each point a run", draw, alt))
    drawn = patterns.filter(pl.col("runs") >= PATTERN_RUNS)
    if drawn.height:
        draw = partial(estimator_charts.draw_patterns, drawn, theme)
        alt = estimator_texts.patterns_alt(drawn.to_dicts(), "estimate")
        pictures.append(Picture("Measured over estimated step time, by pattern", draw, alt))
    return Section(
        "theory",
        "Distance to theory",
        estimator_texts.answer(totals, patterns.to_dicts()),
        numbers.count(totals["runs"], "run"),
        (origin, "estimated"),
        pictures=pictures,
        listings=[Listing("Patterns", patterns, _PATTERNS)],
        queries={"Runs": estimator_queries.runs(scope), "Patterns": estimator_queries.patterns(scope)},
    )


def published(con: Reader, origin: str | None, theme: Theme) -> Section | None:
    """The best runs among published ones; None where the store has neither."""
    rows = frontier_queries.published().run(con)
    best = frontier_queries.own_best(origin or "").run(con)
    with_ceilings = frontier.with_ceilings(rows, frontier_queries.stated().run(con))
    dots = frontier.dots(with_ceilings, best, is_short=True)
    if not dots:
        return None
    draw = partial(frontier_charts.draw, dots, theme)
    return Section(
        "frontier",
        "Frontier",
        frontier_texts.answer(dots, origin),
        frontier_texts.LEGEND,
        _origins(rows, best, origin),
        pictures=[Picture("Utilisation, % of peak", draw, frontier_texts.alt(dots))],
        listings=[Listing("Layouts, the best here first", frontier.table(with_ceilings, best), _FRONTIER, most=80)],
        queries={"Published": frontier_queries.published(), "Best here": frontier_queries.own_best(origin or "")},
    )


def _origins(rows: pl.DataFrame, best: pl.DataFrame, origin: str | None) -> tuple[str, ...]:
    shown: Sequence[str | None] = ["published" if rows.height else None, origin if best.height else None]
    return tuple(dict.fromkeys(name for name in shown if name))
