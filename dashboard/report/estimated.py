"""The section on a question that was answered by estimates: the fastest layouts, and what one of them needs."""

from __future__ import annotations

from functools import partial

import polars as pl

from sweepscope.dashboard.charts import explorer as charts
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.format.numbers import count
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.report.section import Listing, Picture, Section
from sweepscope.dashboard.text import explorer as texts
from sweepscope.dashboard.text import explorer_layout as layout_texts
from sweepscope.dashboard.view_models import explorer
from sweepscope.dashboard.view_models.explorer import Setup
from sweepscope.dashboard.view_models.explorer_layout import Answer
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import Found
from sweepscope.pipeline.reference.layout_text import full_layout_text

FASTEST = names(
    "layout likely_mfu est_mfu_lo est_mfu_hi est_mfu est_penalty est_step_time_s need_bytes dp tp pp cp ep vpp gas "
    "mbs zero_stage recompute"
)


def fastest(request: Request, found: Found) -> pl.DataFrame:
    """The fastest layouts that fit, with their names, what runs of them are likely to reach and what the card holds."""
    top = found.layouts.head(explorer.TOP)
    return top.with_columns(
        explorer.likely_mfu(top, found.ranked_by),
        layout=pl.Series([full_layout_text(row) for row in top.iter_rows(named=True)], dtype=pl.String),
        need_bytes=pl.col("est_mem_reserved_bytes") + request.asked.profile.outside_bytes,
    )


def estimated(
    setup: Setup, request: Request, found: Found, runs: pl.DataFrame, layout: Answer, *, theme: Theme
) -> Section:
    """The answer, the fastest layouts and the parts of one `layout`; `runs` are the measured ones it is set beside."""
    listings, pictures = [_parts(layout)], []
    if found.fitting:
        rows = fastest(request, found)
        shown = [name for name in FASTEST if rows[name].count()]
        listings.insert(0, Listing("The fastest layouts that fit", rows, shown))
        pictures.append(_front(request, found, layout, theme))
    return Section(
        "estimated",
        f"{setup.model} on {count(setup.nodes, 'node')}, estimated",
        texts.answer(setup, request, found, runs),
        texts.meta(setup, request, found),
        ("estimated", *runs["origin"].head(1)),
        pictures=pictures,
        listings=listings,
    )


def _parts(layout: Answer) -> Listing:
    """What the memory and the step of a layout are made of."""
    step = layout_texts.time_value(layout.step_time_s)
    parts = [("Memory per GPU, GiB", part.name, layout_texts.memory_value(part)) for part in layout.memory]
    parts += [("Step time", part.name, step(part)) for part in layout.time]
    frame = pl.DataFrame(parts, schema=["Of", "Part", "Estimated"], orient="row")
    return Listing(f"What {full_layout_text(layout.row)} needs, and takes", frame, frame.columns)


def _front(request: Request, found: Found, layout: Answer, theme: Theme) -> Picture:
    likely = found.front.with_columns(explorer.likely_mfu(found.front, found.ranked_by))
    hovers = [texts.front_hover(row) for row in likely.iter_rows(named=True)]
    chosen = layout, layout_texts.mfu_of(layout, found.ranked_by)
    draw = partial(charts.draw_front, likely, hovers, chosen, request.asked.profile.outside_bytes, theme)
    return Picture("Throughput against memory; grey: the Pareto front", draw, texts.front_alt(found, layout))
