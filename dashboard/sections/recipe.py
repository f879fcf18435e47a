"""The recipe as a flowchart whose branches one clicks, its rules held against the store's own runs, and scale by size.

Evidence is kept per version of the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import polars as pl
import streamlit as st

from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.app.store import Store, rule_book
from sweepscope.dashboard.charts import scale_size
from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.columns import names
from sweepscope.dashboard.queries import explorer as queries
from sweepscope.dashboard.text import advisor as texts
from sweepscope.dashboard.text import recipe as recipe_texts
from sweepscope.dashboard.widgets import basic, choices, folds, tables, urls
from sweepscope.dashboard.widgets.charts_last import fragment
from sweepscope.pipeline.estimate.advice.branches import Branch, Decision, chosen_branches, decisions
from sweepscope.pipeline.estimate.advice.recipe import Advice, Stop, walk
from sweepscope.pipeline.estimate.advice.rule_scores import score, weigh
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import Found
from sweepscope.pipeline.reference.rules import Book

RUNS = 8
"""Runs named for, and against, a rule."""
_SCORES = names("says document section tested held hit_rate selects winner_rate regret typical_regret other_regret")


@st.cache_data(
    max_entries=8,
    show_spinner=False,
    hash_funcs={Store: lambda store: str(store.path), Book: lambda book: repr(book.rules)},
)
def evidence(store: Store, origin: str, book: Book) -> pl.DataFrame:
    """Evidence of the runs of an origin for and against every rule, cell by cell."""
    return weigh(queries.ranked(origin).run(store.con), book)


@fragment
def draw(view: View, model: str, request: Request, found: Found, origin: str | None) -> None:
    """The flowchart for `model` and `request`, the rules of the branches that one looks at, and scale by size."""
    book, problem = rule_book()
    evidence_rows = evidence(view.store, origin, book) if origin is not None else None
    scores = score(evidence_rows, book) if evidence_rows is not None else None
    made = decisions(request, found.layouts)
    basic.section("Decision flowchart", recipe_texts.QUALIFIER)
    if problem:
        basic.problem(problem)
    chosen = _draw_decisions(book, made)
    stops = walk(request, found.layouts, scores, by=found.ranked_by, book=book, made=made, chosen=chosen)
    here = texts.verdicts_here(evidence_rows, model, request) if evidence_rows is not None else {}
    for column, stop in zip(st.columns(len(stops), gap="large"), stops, strict=True):
        with column:
            own = all(
                decision.own in (None, chosen[decision.id].id) for decision in made if decision.step == stop.step.id
            )
            basic.note(stop.branch if own else recipe_texts.ANOTHER_WAY)
            basic.note(texts.of_step(stop))
            title = recipe_texts.rules_title(stop)
            folds.fold(title, partial(_draw_rules, stop, book, scores, here), key=f"rules_{stop.step.id}")
    basic.note(texts.walked(stops, book) + recipe_texts.OWN_RULES)
    _draw_scales(view, request, origin)
    if scores is not None:
        _draw_scoreboard(scores)


def _draw_rules(stop: Stop, book: Book, scores: pl.DataFrame | None, here: Mapping[str, str]) -> None:
    rules = "".join(_rule(advice, book, scores, here) for advice in stop.advice)
    st.html(f'<ul class="ss-rules ss-narrow">{rules}</ul>')


def _draw_decisions(book: Book, made: Sequence[Decision]) -> dict[str, Branch]:
    """The steps side by side, each with its questions; returns the branch that is chosen at each."""
    wanted: dict[str, str] = {}
    for number, (step, column) in enumerate(
        zip(book.steps, st.columns(len(book.steps), gap="large"), strict=True), start=1
    ):
        with column, st.container(border=True, key=f"flow_{step.id}", gap="xsmall"):
            st.html(f'<h3 class="ss-section">{number} {basic.rich(step.name)}</h3>')
            basic.note(step.question)
            for decision in made:
                if decision.step == step.id:
                    by_id = {branch.id: branch.name for branch in decision.branches}
                    wanted[decision.id] = choices.segments(
                        decision.asks,
                        f"way_{decision.id}",
                        list(by_id),
                        decision.own,
                        shown=lambda name, by_id=by_id, own=decision.own: recipe_texts.option(  # type: ignore[misc]  # bound per decision
                            by_id[name], is_own=name == own
                        ),
                        is_labelled=True,
                    )
    return chosen_branches(made, wanted)


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


def _draw_scales(view: View, request: Request, origin: str | None) -> None:
    """The slides' chart of scale and size with the store's best runs in it, the open question above all."""
    rows = queries.by_scale(origin).run(view.store.con)
    basic.section("Scale and size", recipe_texts.SCALE_QUALIFIER)
    hovers = [recipe_texts.scale_hover(row) for row in rows.iter_rows(named=True)]
    here = (request.num_gpus, float(request.asked.shape.params))
    basic.chart(
        scale_size.draw(rows, hovers, here, view.theme), key="scale_size", alt=recipe_texts.scale_alt(rows.height)
    )
    basic.note(recipe_texts.open_question(rows.to_dicts()))


def _draw_scoreboard(scores: pl.DataFrame) -> None:
    tested = scores.filter(pl.col("tested") > 0).sort("hit_rate", "tested", descending=True)
    title = f"How every rule did on this store's cells, {numbers.count(tested.height, 'rule')} tested"
    tables.table_twin(title, tested, _SCORES, csv=scores.drop("runs_for", "runs_against"), csv_name="rule_scores")
