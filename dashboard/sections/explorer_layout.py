"""What the Explorer shows of one layout: verdict, breakdowns, its place on the front, and runs like it."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import streamlit as st

from sweepscope.dashboard.charts import explorer as charts
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.theme import Theme
from sweepscope.dashboard.text import explorer as question_texts
from sweepscope.dashboard.text import explorer_layout as texts
from sweepscope.dashboard.text import ratios as ratio_texts
from sweepscope.dashboard.view_models import explorer
from sweepscope.dashboard.view_models.explorer import Setup
from sweepscope.dashboard.view_models.explorer_layout import Answer, nearest
from sweepscope.dashboard.widgets import basic, breakdown_bars, lists, urls
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import Found
from sweepscope.pipeline.estimate.search.whatif import Choice
from sweepscope.pipeline.reference.layout_text import full_layout_text


def draw_verdict(estimate: Answer, found: Found, reached: float | None) -> None:
    """MFU or need of the layout, whether it fits, and its figures beside the search's and what runs `reached`."""
    symbol, text = texts.verdict(estimate)
    value, unit = texts.big_number(estimate, found.ranked_by)
    state = "completed" if estimate.fits else "failed"
    rows = "".join(
        f'<div><span class="quiet">{basic.rich(name)}</span><span class="value">{basic.rich(value)}</span></div>'
        for name, value in texts.facts(estimate, found, reached)
    )
    st.html(
        f'<div class="ss-verdict"><div><p class="ss-big">{basic.rich(value)} '
        f'<small>{basic.rich(unit)}</small></p><p class="ss-layout">{basic.rich(full_layout_text(estimate.row))}</p>'
        f'<p class="{state}">{symbol} {basic.rich(text)}</p></div><div class="ss-rows">{rows}</div></div>'
    )


def draw_breakdowns(estimate: Answer) -> None:
    """Memory beside step time, each by part."""
    memory, time = st.columns(2, gap="medium")
    with memory:
        basic.section("Memory per GPU", "GiB, on the fullest stage")
        card = f"card {numbers.gib(estimate.card_bytes)}"
        breakdown_bars.fall(estimate.memory, texts.memory_value, limit=estimate.card_bytes, limit_name=card)
    with time:
        basic.section("Step time that the hardware allows", "dark: compute; light: overhead and communication")
        breakdown_bars.fall(estimate.time, texts.time_value(estimate.step_time_s))


def draw_ratios(estimate: Answer) -> None:
    """The ratios that decide between dimensions, beside what each communicates."""
    spent, decide = st.columns(2, gap="medium")
    for column, rows in (
        (spent, ratio_texts.communication(estimate.ratios)),
        (decide, ratio_texts.deciding(estimate.ratios, estimate.gas)),
    ):
        with column:
            lists.rows([(basic.rich(name), basic.rich(value)) for name, value in rows])


def draw_front(
    theme: Theme, request: Request, found: Found, estimate: Answer, *, on_select: Callable[[], None]
) -> None:
    """Layouts that nothing beats in both throughput and memory; `on_select` runs after a click on one."""
    basic.section("Throughput against memory", "grey: the Pareto front; click a layout to choose it")
    if not found.fitting:
        basic.note("No layout fits, so there is no front.")
        return
    front = found.front.rows(named=True)
    st.session_state["explorer_front"] = [Choice.of(row) for row in front]
    likely = found.front.with_columns(explorer.likely_mfu(found.front, found.ranked_by))
    hovers = [question_texts.front_hover(row) for row in likely.iter_rows(named=True)]
    chosen = estimate, texts.mfu_of(estimate, found.ranked_by)
    figure = charts.draw_front(likely, hovers, chosen, request.asked.profile.outside_bytes, theme)
    basic.chart(figure, key="front", alt=question_texts.front_alt(found, estimate), on_select=on_select)


def draw_nearest(runs: pl.DataFrame, estimate: Answer, setup: Setup, request: Request, origin: str) -> None:
    """Runs of `origin` that are nearest to the layout; `runs` are rows of `queries.explorer.alike`."""
    near = nearest(runs, estimate, setup, request.num_gpus) if runs.height else runs
    basic.section(f"{origin.capitalize()} runs like this", "MFU reached · ~ estimated")
    basic.note(texts.like_this(near, runs.height))
    lines = [(*texts.nearest_run(row), urls.run_url(row["run_id"])) for row in near.iter_rows(named=True)]
    lists.items(lines)
