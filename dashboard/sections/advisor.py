"""The advisor's part of the Explorer: what to run next in a cell, and the documents' recipe with the store's own runs.

Answers are kept per version of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl
import streamlit as st

from sweepscope.dashboard.app.store import Store
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.queries import explorer as queries
from sweepscope.dashboard.queries.query import Query
from sweepscope.dashboard.text import advisor as texts
from sweepscope.dashboard.view_models.explorer import Setup, found_for
from sweepscope.dashboard.widgets import basic, choices, tables, urls
from sweepscope.pipeline.estimate.advice.next_runs import NextRuns, next_runs
from sweepscope.pipeline.estimate.advice.recipe import Advice, Stop, walk
from sweepscope.pipeline.estimate.advice.rule_scores import score, weigh
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import Found
from sweepscope.pipeline.reference.rules import Book, load_rules

TOP = 8
RUNS = 8
"""Runs named for, and against, a rule."""
_SCORES = names("says document section tested held hit_rate selects winner_rate regret typical_regret other_regret")
_NEXT = names(
    "layout gain chance test_gpu_hours gain_per_gpu_hour believed_step_time_s believed_lo_s believed_hi_s tried why"
)


def cell_query(setup: Setup, request: Request, origin: str | None) -> Query:
    """The runs of the setup's question, whatever became of them."""
    question = {
        "accelerator": setup.accelerator,
        "num_gpus": request.num_gpus,
        "seq_len": setup.seq_len,
        "gbs_tokens": setup.gbs_tokens,
    }
    return queries.cell(origin, setup.model, setup.shape, question, setup.framework)


@st.cache_data(
    max_entries=64,
    show_spinner=False,
    hash_funcs={Store: lambda store: str(store.path), Query: lambda query: query.runnable(), Request: hash},
)
def proposals(store: Store, request: Request, cell: Query, top: int = TOP) -> NextRuns:
    """What to run next among the layouts of `request`, given the runs of `cell`."""
    return next_runs(request, cell.run(store.con), top=top, found=found_for(request))


def gains(proposed: NextRuns) -> pl.DataFrame:
    """Candidates with something to gain over the measured best."""
    return texts.shown(proposed.candidates) if proposed.best is not None else proposed.candidates.clear()


def draw_next(store: Store, request: Request, cell: Query, *, on_select: Callable[[], None]) -> pl.DataFrame:
    """Proposals with gain, price and reason; returns the rows on screen, for `on_select` to find the picked one."""
    proposed = proposals(store, request, cell)
    basic.section("Run next", "by expected gain per GPU-hour; select a row to take it")
    rows = gains(proposed)
    basic.note(texts.next_answer(proposed, rows))
    if rows.height:
        shown = [name for name in _NEXT if rows[name].count()]
        tables.picking_table(rows, shown, key="next_runs", on_select=on_select, wide=("why",))
    basic.note(texts.next_notes(proposed))
    return rows


@st.cache_data(max_entries=8, show_spinner=False, hash_funcs={Store: lambda store: str(store.path)})
def evidence(store: Store, origin: str) -> pl.DataFrame:
    """Evidence of the runs of an origin for and against every rule, cell by cell."""
    return weigh(queries.ranked(origin).run(store.con))


@st.fragment
def draw_steps(store: Store, model: str, request: Request, found: Found, origin: str | None) -> None:
    """The recipe for `model` and `request`: its way at each step, and the rules of the step that one looks at."""
    evidence_rows = evidence(store, origin) if origin is not None else None
    scores = score(evidence_rows) if evidence_rows is not None else None
    book = load_rules()
    stops = walk(request, found.layouts, scores, by=found.ranked_by, book=book)
    basic.section("The recipe, step by step", texts.walked(stops, book))
    st.html(f'<ol class="ss-steps">{"".join(_step(stop) for stop in stops)}</ol>')
    names = {stop.step.id: stop.step.name for stop in stops}
    chosen = choices.segments(
        "Rules of step",
        "step",
        list(names),
        shown=lambda step: f"{list(names).index(step) + 1} {names[step]}",
        is_labelled=True,
    )
    stop = next(stop for stop in stops if stop.step.id == chosen)
    here = texts.verdicts_here(evidence_rows, model, request) if evidence_rows is not None else {}
    basic.note(texts.of_step(stop))
    st.html(f'<ul class="ss-rules">{"".join(_rule(advice, book, scores, here) for advice in stop.advice)}</ul>')
    if scores is not None:
        _draw_scoreboard(scores)


def _step(stop: Stop) -> str:
    head, _, reason = stop.branch.partition(": ")
    text = f"<b>{basic.rich(head)}</b>: {basic.rich(reason)}" if reason else basic.rich(head)
    return f"<li><h3>{basic.rich(stop.step.name)}</h3><p>{basic.rich(stop.step.question)}</p><p>{text}</p></li>"


def _rule(advice: Advice, book: Book, scores: pl.DataFrame | None, here: Mapping[str, str]) -> str:
    """One rule: its text and source, whether the fastest follows it, and the store's runs for and against."""
    chance = None if scores is None else scores.filter(rule=advice.rule.id)["selects"].item()
    state, symbol, followed = texts.followed(advice)
    record = basic.rich(texts.record(advice, chance, here.get(advice.rule.id)))
    runs = "".join(
        f"<p>{basic.rich(name)}: {', '.join(basic.link(run, urls.run_url(run)) for run in ids[:RUNS])}"
        f"{f' and {len(ids) - RUNS} more' if len(ids) > RUNS else ''}</p>"
        for name, ids in (("Runs for it", advice.runs_for), ("Runs against it", advice.runs_against))
        if ids
    )
    record_html = f"<details><summary>{record}</summary>{runs}</details>" if runs else f"<span>{record}</span>"
    source = basic.rich(f"{book.shorts[advice.rule.document]}, {advice.rule.section}")
    return (
        f"<li><div>{basic.rich(advice.rule.says)}<small>{source}</small></div>"
        f'<div class="{state}">{symbol} {basic.rich(followed)}</div><div>{record_html}</div></li>'
    )


def _draw_scoreboard(scores: pl.DataFrame) -> None:
    tested = scores.filter(pl.col("tested") > 0).sort("hit_rate", "tested", descending=True)
    title = f"How every rule did on this store's cells, {numbers.count(tested.height, 'rule')} tested"
    tables.table_twin(title, tested, _SCORES, csv=scores.drop("runs_for", "runs_against"), csv_name="rule_scores")
