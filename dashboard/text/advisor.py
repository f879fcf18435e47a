"""Sentences of the advisor: what to run next and what a proposal rests on; how the recipe's rules did on own runs."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from sweepscope.dashboard.format.numbers import NBSP, capital, count, number, percent, seconds
from sweepscope.dashboard.queries.query import Row
from sweepscope.pipeline.estimate.advice.next_runs import TEST_STEPS, NextRuns
from sweepscope.pipeline.estimate.advice.recipe import Advice, Stop
from sweepscope.pipeline.estimate.advice.rule_scores import AGAINST, FOR
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.reference.rules import Book
from sweepscope.schemas.thresholds import WORTHWHILE_GAIN


def next_answer(proposed: NextRuns, rows: pl.DataFrame) -> str:
    """What is to be gained in this cell, and by which layout; or why nothing is. `rows` are the candidates shown."""
    best = proposed.best
    if best is None:
        return "No run of this question was measured yet, so the fastest layouts above are the first to try."
    runs = "the only run" if proposed.measured == 1 else f"the best of {number(proposed.measured)} runs"
    measured = f"{runs}, {best['layout']} ({seconds(best['step_time_s'])})"
    if proposed.candidates.is_empty():
        return f"Every layout that fits and could be tried was measured; none beats {measured}."
    if rows.is_empty():
        return f"No untried layout is expected to beat {measured}."
    top = rows.row(0, named=True)
    chance = f", with a chance of {percent(top['chance'], 0)} to beat it" if top["chance"] is not None else ""
    return (
        f"**{top['layout']}** promises most per GPU-hour: {percent(top['gain'])} more expected throughput than "
        f"{measured}{chance}."
    )


def next_notes(proposed: NextRuns) -> str:
    """What a test costs, how unsure it is, and which layouts are no candidates."""
    startup = "; start-up is not counted, because no run logged it"
    if proposed.startup_s is not None:
        startup = f" and {seconds(proposed.startup_s)} of start-up"
    excluded = ", ".join(f"{number(amount)} {reason}" for reason, amount in proposed.excluded.items())
    left_out = f" Left out: {excluded}." if excluded else ""
    basis = proposed.basis.replace("%", NBSP + "%", 1)
    spread = capital(basis) if basis.startswith("spread") else f"Spread: {basis}"
    return f"A test is {TEST_STEPS} steps{startup}. {spread}.{left_out}"


def worth_running(row: Row) -> tuple[str, str]:
    """One proposal of the whole grid: where and what, then its gain and its price."""
    where = f"{row['model']} on {count(row['num_nodes'], 'node')}"
    price = f"{number(row['test_gpu_hours'], 1 if row['test_gpu_hours'] < 100 else 0)}{NBSP}GPU·h"
    return f"{where}: {row['layout']}", f"~{percent(row['gain'])} more, {price}"


def shown(candidates: pl.DataFrame) -> pl.DataFrame:
    """Candidates worth a row: an expected gain that can be printed, or no measured best to gain over."""
    return candidates.filter((pl.col("gain") >= WORTHWHILE_GAIN) | pl.col("gain").is_null())


def walked(stops: Sequence[Stop], book: Book) -> str:
    """Number of rules and documents in the recipe."""
    rules = sum(len(stop.advice) for stop in stops)
    return f"{count(rules, 'rule')} of {count(len(book.documents), 'document')} apply here; they disagree"


def of_step(stop: Stop) -> str:
    """How the rules of one step fare, and which of them the store's runs bear out most."""
    if not stop.advice:
        return "No rule applies to this question at this step."
    follows = sum(advice.is_followed is True for advice in stop.advice)
    text = f"The fastest layout follows {number(follows)} of {count(len(stop.advice), 'rule')} of this step."
    tested = [advice for advice in stop.advice if advice.tested]
    if not tested:
        return f"{text} None of them was tested by this store's runs."
    best = max(tested, key=lambda advice: ((advice.held or 0) / (advice.tested or 1), advice.tested or 0))
    cells = f"{number(best.held)} of {count(best.tested or 0, 'cell')}"
    return f"{text} Borne out most by this store's runs: **{best.rule.says}**, in {cells}."


def followed(advice: Advice) -> tuple[str, str, str]:
    """Class, symbol and words on whether the fastest layout follows a rule, and what following it would cost."""
    if advice.is_followed:
        return "completed", "✓", "the fastest follows it"
    cost = "no layout near the fastest does" if advice.cost is None else f"costs ~{percent(advice.cost)} of throughput"
    if advice.is_followed is None:
        return "quiet", "–", f"does not apply to the fastest; {cost}"
    return "quiet", "✕", f"the fastest does not; {cost}"


def record(advice: Advice, chance: float | None, here: str | None) -> str:
    """In how many of the store's cells the rule held, the hit rate of chance, and the verdict of this cell."""
    if advice.tested is None:
        return "no runs to test it"
    if not advice.tested:
        return "never tested by these runs"
    by_chance = "" if chance is None else f" (chance: {percent(chance, 0)})"
    this = {FOR: "; held in this cell", AGAINST: "; not in this cell"}.get(here or "", "")
    return f"held in {number(advice.held)} of {count(advice.tested, 'cell')}{by_chance}{this}"


def verdicts_here(evidence: pl.DataFrame, model: str, request: Request) -> dict[str, str]:
    """Verdict of the cell of `model` and `request` on each rule."""
    asked = request.asked
    rows = evidence.filter(
        pl.col("model") == model,
        pl.col("num_gpus") == request.num_gpus,
        pl.col("seq_len") == asked.seq_len,
        pl.col("gbs_tokens") == request.gbs * asked.seq_len,
        pl.col("accelerator") == asked.cluster.accelerator,
    )
    return dict(rows.select("rule", "verdict").iter_rows())
