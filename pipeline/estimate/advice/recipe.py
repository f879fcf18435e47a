"""The three-step recipe for one question: what each document's rules say, and whether the best layouts follow them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from sweepscope.pipeline.estimate.advice.story import layout_name
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import PHYSICS
from sweepscope.pipeline.reference.rules import Book, Rule, Step, applicable, followers, load_rules, question_of


@dataclass(frozen=True)
class Advice:
    """A rule that applies. `is_followed`: by the best layout; None when the rule does not speak of it.

    `cost`: throughput lost by the best layout that follows it, None when no layout of the pool does; `layout` is that.
    `tested`, `held`: cells of the store that tested the rule, and in which it held; None without a store.
    """

    rule: Rule
    document: str
    is_followed: bool | None
    cost: float | None
    layout: str | None
    tested: int | None = None
    held: int | None = None
    runs_for: tuple[str, ...] = ()
    runs_against: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stop:
    """A step of the recipe with what is asked there, the branch that the question takes, and the rules that apply."""

    step: Step
    branch: str
    advice: tuple[Advice, ...]


def walk(
    request: Request,
    pool: pl.DataFrame,
    scores: pl.DataFrame | None = None,
    *,
    by: str = PHYSICS,
    book: Book | None = None,
) -> list[Stop]:
    """The recipe's stops for `request`. `pool`: layouts of a search, best first (some hundreds, so that rules which the
    best do not follow find a follower); `by`: what it is ranked by; `scores`: `rule_scores.score` of a store.
    """
    book = book or load_rules()
    question = question_of(request)
    rules = applicable(question, book)
    speed = pl.col("est_tokens_per_s_per_gpu") / (1.0 if by == PHYSICS else pl.col("est_penalty"))
    ranked = pool.with_columns(speed=speed)
    known = {row["rule"]: row for row in scores.iter_rows(named=True)} if scores is not None else {}
    return [
        Stop(
            step,
            _branch(step.id, request, question),
            tuple(_advice(rule, book, ranked, question, known.get(rule.id)) for rule in rules if rule.step == step.id),
        )
        for step in book.steps
    ]


def _advice(
    rule: Rule, book: Book, pool: pl.DataFrame, question: dict[str, Any], scored: dict[str, Any] | None
) -> Advice:
    follows = followers(rule, pool, question)
    chosen = pool.filter(follows.fill_null(False))
    best = pool["speed"].max()
    cost = layout = None
    if chosen.height and isinstance(best, float):
        first = chosen.sort("speed", descending=True, maintain_order=True).row(0, named=True)
        cost, layout = 1.0 - first["speed"] / best, layout_name(first)
    told = Advice(rule, book.title(rule), follows[0] if pool.height else None, cost, layout)
    if scored is None:
        return told
    return Advice(
        rule,
        told.document,
        told.is_followed,
        cost,
        layout,
        scored["tested"],
        scored["held"],
        tuple(scored["runs_for"]),
        tuple(scored["runs_against"]),
    )


def _branch(step: str, request: Request, question: dict[str, Any]) -> str:
    """Which way the question goes at a step, with the figures that decide it."""
    if step == "fit":
        states = 16.0 * question["params"] / question["num_gpus"] / 2**30
        room = request.asked.cluster.memory_bytes / 2**30
        rich = "GPU-poor" if question["is_gpu_poor"] else "GPU-rich"
        size = f"{question['params'] / 1e9:.3g}B parameters"
        return f"{rich}: {size} are {states:.1f} GiB of states per accelerator of {room:.0f} GiB, spread over all"
    if step == "batch":
        each = request.gbs / request.num_gpus
        way = (
            "enough sequences for every rank"
            if each >= 1
            else "more accelerators than sequences: not all can be replicas"
        )
        return f"{request.gbs:,} sequences on {request.num_gpus:,} accelerators, {way}"
    nodes = question["num_nodes"]
    return f"{nodes:,} node{'s' if nodes > 1 else ''} of {question['gpus_per_node']}"


def in_words(stops: list[Stop], book: Book | None = None) -> list[str]:
    """Lines: each step with its branch, and each rule with its document, section, cost and record."""
    book = book or load_rules()
    lines = []
    for place, stop in enumerate(stops, start=1):
        lines.append(f"{place} {stop.step.name}: {stop.branch}")
        for advice in stop.advice:
            mark = {True: "followed", False: "not followed", None: "does not apply"}[advice.is_followed]
            cost = "" if advice.is_followed else _cost(advice)
            record = ""
            if advice.tested is not None:
                record = f"; held in {advice.held} of {advice.tested} cells" if advice.tested else "; never tested here"
            where = f"{book.shorts[advice.rule.document]}, {advice.rule.section}"
            lines.append(f"    {mark}{cost}{record}: {advice.rule.says} [{where}]")
    return lines


def _cost(advice: Advice) -> str:
    if advice.cost is None:
        return ", by none of the best"
    return f", would cost {advice.cost:.1%}"
