"""The three-step recipe for one question: documents' rules that apply, whether the best layouts follow them, and the
same steps as a search answers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from sweepscope.pipeline.estimate.advice.applicable_rules import applicable, followers, question_of, state_bytes_per_gpu
from sweepscope.pipeline.estimate.advice.branches import Branch, Decision, is_about, questions
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import PHYSICS, Found
from sweepscope.pipeline.reference.layout_text import full_layout_text
from sweepscope.pipeline.reference.rules import Book, Rule, Step, load_rules

_SPENT = {
    "linear": "matrix products",
    "attention": "attention",
    "elementwise": "norms and activation functions",
    "head": "output head",
    "recompute": "recomputation",
    "tp": "tensor-parallel exchange",
    "cp": "context exchange",
    "ep": "expert exchange",
    "pp": "pipeline transfers",
    "dp": "gradient and weight exchange",
    "stall": "waiting for launches",
    "bubble": "pipeline idle time",
    "optimizer": "optimizer",
    "rest": "fixed cost",
    "stragglers": "waiting for the slowest node",
}
USEFUL = ("linear", "attention", "elementwise", "head", "optimizer", "rest")


@dataclass(frozen=True)
class Advice:
    """A rule that applies. `is_followed`: by the best layout; None where the rule does not apply to it.

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
    made: Sequence[Decision] = (),
    chosen: Mapping[str, Branch] | None = None,
) -> list[Stop]:
    """The recipe's stops for `request`. `pool`: layouts of a search, best first (some hundreds, so that rules which the
    best do not follow find a follower); `by`: what it is ranked by; `scores`: `rule_scores.score` of a store.
    Rules are those of the branches `chosen` of the decisions `made`; without them, of the question's own way.
    """
    book = book or load_rules()
    question = question_of(request)
    asked = questions(request, made, chosen) if chosen else {}
    moves = {decision.step: chosen[decision.id].moves for decision in made} if chosen else {}
    speed = pl.col("est_tokens_per_s_per_gpu") / (1.0 if by == PHYSICS else pl.col("est_penalty"))
    ranked = pool.with_columns(speed=speed)
    known = {row["rule"]: row for row in scores.iter_rows(named=True)} if scores is not None else {}
    return [
        Stop(
            step,
            _branch(step.id, request, question),
            tuple(
                _advice(rule, book, ranked, asked.get(step.id, question), known.get(rule.id))
                for rule in applicable(asked.get(step.id, question), book)
                if rule.step == step.id and is_about(rule, moves.get(step.id, ()))
            ),
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
        cost, layout = 1.0 - first["speed"] / best, full_layout_text(first)
    advice = Advice(rule, book.title(rule), follows[0] if pool.height else None, cost, layout)
    if scored is None:
        return advice
    return Advice(
        rule,
        advice.document,
        advice.is_followed,
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
        states = state_bytes_per_gpu(request) / 2**30
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
    return f"{nodes:,} node{'s' if nodes > 1 else ''} of {request.asked.cluster.gpus_per_node}"


def recipe_lines(stops: list[Stop], book: Book | None = None) -> list[str]:
    """Lines: each step with its branch, and each rule with its document, section, cost and record."""
    book = book or load_rules()
    lines = []
    for number, stop in enumerate(stops, start=1):
        lines.append(f"{number} {stop.step.name}: {stop.branch}")
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


def _placed(best: dict[str, object]) -> str:
    """How its layers lie, where stages differ."""
    counts = str(best["stage_layers"])
    return f", {counts} layers on its stages" if len(set(counts.split("-"))) > 1 else ""


def _speed(best: dict[str, object], ranked_by: str) -> str:
    """Speed of the best layout, by what layouts are ranked by."""
    seconds, mfu, penalty = (float(str(best[name] or 1.0)) for name in ("est_step_time_s", "est_mfu", "est_penalty"))
    if ranked_by == PHYSICS:
        return f"fastest, {100 * mfu:.1f} % MFU and {seconds:.3g} s per step"
    return (
        f"expected to be fastest, {100 * mfu / penalty:.1f} % MFU and {seconds * penalty:.3g} s per step; physics "
        f"alone says {100 * mfu:.1f} % and {seconds:.3g} s"
    )


def search_summary(request: Request, found: Found) -> list[str]:
    """Four sentences: one per step of the recipe, one on what limits the winner. At least one layout must fit."""
    card = request.asked.cluster
    best = found.layouts.row(0, named=True)
    lean = found.front.row(-1, named=True)
    lost = {name: best[f"est_time_{name}_s"] for name in _SPENT if name not in USEFUL}
    largest = max(lost, key=lambda name: float(lost[name]))
    share = lost[largest] / best["est_step_time_s"]
    plain = found.front.sort("est_mem_reserved_bytes").row(0, named=True)
    return [
        f"1 Fit: {found.fitting:,} of {found.launchable:,} layouts that can be launched fit into "
        f"{card.memory_bytes / 2**30:.0f} GiB; the leanest of the front, {full_layout_text(lean)}, needs "
        f"{plain['est_mem_reserved_bytes'] / 2**30:.1f} GiB.",
        f"2 Batch: {request.gbs:,} sequences are dp {best['dp']} x gas {best['gas']} x micro-batch {best['mbs']}.",
        f"3 Throughput: {full_layout_text(best)} is {_speed(best, found.ranked_by)}{_placed(best)}.",
        f"Its largest loss is {_SPENT[largest]}: {100 * share:.1f} % of the step that physics allows."
        if share > 0
        else "It loses nothing to communication.",
    ]
