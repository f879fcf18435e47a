"""The section on memory: peaks beside the card, one run from its estimate to the card, and what failed runs need."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import polars as pl

from sweepscope.dashboard.charts import memory_waterfall as charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.queries import memory as queries
from sweepscope.dashboard.queries.failures import Scope
from sweepscope.dashboard.queries.reader import Reader
from sweepscope.dashboard.report.section import Listing, Picture, Section
from sweepscope.dashboard.text import memory as texts
from sweepscope.dashboard.text import memory_run as run_texts
from sweepscope.dashboard.view_models import memory as view_models

_DRAWN = 10
_LISTED = 400
_SPREADS_DRAWN = 6
_PEAKS = names(
    "run_id status model num_nodes layout recompute needs mem_peak_allocated_bytes mem_peak_reserved_bytes "
    "mem_used_max_bytes est_mem_bytes eps_frag mem_total_bytes verdict_evidence"
)
_SPREAD = names("sweep framework n eps_frag eps_frag_low eps_frag_high eps_frag_max est_eps_frag")
_FILES = names(
    "source_path device rank mem_source run_id peak_bytes peak_reserved_bytes fragmentation_at_peak oom_events events"
)


def memory(con: Reader, origin: str, theme: Theme) -> Section | None:
    """What is known of the memory of an origin's runs; None where no file of them states any."""
    peaks, files = queries.peaks(origin).run(con), queries.snapshots(origin).run(con)
    if peaks.is_empty() and files.is_empty():
        return None
    scope = Scope(origin, None)
    spread, terms = queries.fragmentation(scope).run(con), queries.terms(scope).run(con)
    needs = pl.Series([run_texts.need(row) for row in peaks.iter_rows(named=True)], dtype=pl.String)
    listings = [
        Listing("Runs, out of memory first", peaks.with_columns(needs=needs), _PEAKS, most=_LISTED),
        Listing("Fragmentation by sweep", spread, _SPREAD),
        Listing("Snapshots, timelines and statistics", files, _FILES, most=_LISTED),
    ]
    return Section(
        "memory",
        "Memory",
        texts.answer(peaks, view_models.verdicts(peaks), spread, files.height),
        texts.meta(peaks.height, None, len(view_models.sweeps(peaks, files)), files.height),
        (origin,),
        figures=texts.figures(peaks, spread, terms) if peaks.height else (),
        pictures=[*_of_peaks(con, peaks, theme), *_of_spread(spread, theme), *_of_terms(terms, theme)],
        listings=[listing for listing in listings if listing.frame.height],
        queries={"Peaks": queries.peaks(origin), "Fragmentation": queries.fragmentation(scope)},
        notes=texts.HOW_TO_READ,
    )


def _of_peaks(con: Reader, peaks: pl.DataFrame, theme: Theme) -> Sequence[Picture]:
    drawn = peaks.head(_DRAWN)
    rows = drawn.to_dicts()
    labels = view_models.run_names(rows)
    picked = view_models.default_run(rows)
    if picked is None:
        return []
    hovers = [texts.peak_hover(row, name) for row, name in zip(rows, labels, strict=True)]
    draw = partial(charts.draw_peaks, drawn, labels, hovers, theme, picked)
    pictures = [Picture("Peak by run; ◇ = estimated", draw, texts.peaks_alt(drawn))]
    if bars := view_models.bars(queries.parts(picked).run(con)):
        label = next(name for name, row in zip(labels, rows, strict=True) if row["run_id"] == picked)
        title = f"From the estimate to the card: {' · '.join(label.splitlines())}"
        pictures.append(Picture(title, partial(charts.draw_waterfall, bars, theme), run_texts.waterfall_alt(bars)))
    return pictures


def _of_spread(spread: pl.DataFrame, theme: Theme) -> Sequence[Picture]:
    drawn = spread.head(_SPREADS_DRAWN)
    if drawn.is_empty():
        return []
    rows = drawn.to_dicts()
    draw = partial(
        charts.draw_fragmentation, drawn, list(map(texts.spread_name, rows)), list(map(texts.spread_hover, rows)), theme
    )
    alt = f"Fragmentation of {numbers.count(drawn.height, 'sweep')}."
    return [Picture("Fragmentation, median and 10 to 90 %", draw, alt)]


def _of_terms(terms: pl.DataFrame, theme: Theme) -> Sequence[Picture]:
    fitted = terms.filter(pl.col("explained_share").is_not_null())
    if fitted.is_empty():
        return []
    first = fitted.filter(pl.col("framework").eq_missing(fitted["framework"][0]))
    rows = first.to_dicts()
    draw = partial(
        charts.draw_terms, first, [texts.TERM_NAME[row["term"]] for row in rows], list(map(texts.factor, rows)), theme
    )
    title = f"Which term is off: {texts.terms_qualifier(fitted)}"
    return [Picture(title, draw, "Share of the estimate's error that each of its terms explains alone.")]
