"""Sentences of the advisor: what to run next, and what each proposal rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from dashboard.labels import NBSP, count, number, percent, seconds
from pipeline.estimate.next_runs import TEST_STEPS, NextRuns

Row = Mapping[str, Any]

LITTLE = 0.001
"""Expected gain in throughput below which a proposal is not worth a sentence."""


def next_answer(proposed: NextRuns, rows: pl.DataFrame) -> str:
    """What is to be gained in this cell, and by which layout; or why nothing is. `rows` are the candidates shown."""
    best = proposed.best
    if best is None:
        return "Nothing was measured for this question yet, so the fastest layouts above are the first to try."
    runs = (
        "the only measured run" if proposed.measured == 1 else f"the best of {number(proposed.measured)} measured runs"
    )
    measured = f"{runs}, {best['layout']} ({seconds(best['step_time_s'])})"
    if proposed.candidates.is_empty():
        return f"Every layout that fits and could be tried was measured; {measured}, stands."
    if rows.is_empty():
        return f"No layout that nobody tried is expected to beat {measured}."
    top = rows.row(0, named=True)
    chance = f", with a chance of {percent(top['chance'], 0)} to beat it" if top["chance"] is not None else ""
    return (
        f"**{top['layout']}** promises most per GPU-hour: {percent(top['gain'])} more throughput than {measured} is "
        f"expected of it{chance}."
    )


def next_notes(proposed: NextRuns) -> str:
    """What a test costs, how unsure it is, and which layouts are no candidates."""
    startup = (
        f" and {seconds(proposed.startup_s)} of start-up"
        if proposed.startup_s is not None
        else "; start-up is not counted, as no run tells it"
    )
    left_out = ", ".join(f"{number(amount)} {reason}" for reason, amount in proposed.excluded.items())
    return f"A test is {TEST_STEPS} steps{startup}. Spread: {proposed.basis.replace('%', NBSP + '%', 1)}." + (
        f" No candidates: {left_out}." if left_out else ""
    )


def worth_running(row: Row) -> tuple[str, str]:
    """One proposal of the whole grid: where and what, then its gain and its price."""
    where = f"{row['model']} on {count(row['num_nodes'], 'node')}"
    price = f"{number(row['test_gpu_hours'], 1 if row['test_gpu_hours'] < 100 else 0)}{NBSP}GPU·h"
    return f"{where}: {row['layout']}", f"~+{percent(row['gain'])} for {price}"


def shown(candidates: pl.DataFrame) -> pl.DataFrame:
    """Candidates worth a row: an expected gain that can be printed, or no measured best to gain over."""
    return candidates.filter((pl.col("gain") >= LITTLE) | pl.col("gain").is_null())
