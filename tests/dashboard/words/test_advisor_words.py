"""What the advisor says of proposals: a gain, none, or nothing to gain over."""

from __future__ import annotations

from typing import Any

import polars as pl

from dashboard.words import advisor as words
from pipeline.estimate.next_runs import NextRuns

ROW: dict[str, Any] = {
    "layout": "DP8 TP2 PP1", "gain": 0.061, "chance": 0.7, "test_gpu_hours": 0.14, "model": "Llama 8B", "num_nodes": 2,
}  # fmt: skip
BEST = {"run_id": "a", "layout": "DP16 TP1 PP1", "step_time_s": 3.26}


def proposed(*rows: dict[str, Any], best: dict[str, Any] | None = BEST, measured: int = 30) -> NextRuns:
    schema = {"layout": pl.String, "gain": pl.Float64, "chance": pl.Float64}
    frame = pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema)
    return NextRuns(frame, best, measured, {"already measured": 12}, "80% of 21 runs of hopper-nanotron", None)


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def test_the_best_proposal_tells_gain_and_chance() -> None:
    found = proposed(ROW)
    assert plain(words.next_answer(found, words.shown(found.candidates))) == (
        "**DP8 TP2 PP1** promises most per GPU-hour: 6.1 % more throughput than the best of 30 measured runs, "
        "DP16 TP1 PP1 (3.26 s) is expected of it, with a chance of 70 % to beat it."
    )


def test_proposals_without_a_gain_are_not_shown() -> None:
    found = proposed(ROW | {"gain": 0.0002}, measured=1)
    rows = words.shown(found.candidates)
    assert rows.is_empty()
    assert plain(words.next_answer(found, rows)) == (
        "No layout that nobody tried is expected to beat the only measured run, DP16 TP1 PP1 (3.26 s)."
    )


def test_nothing_measured_and_nothing_left_are_told_apart() -> None:
    assert words.next_answer(proposed(ROW, best=None), proposed(ROW).candidates).startswith("Nothing was measured")
    done = proposed()
    assert words.next_answer(done, done.candidates).startswith("Every layout that fits and could be tried was measured")


def test_what_a_test_costs_and_what_is_no_candidate_is_said() -> None:
    assert plain(words.next_notes(proposed(ROW))) == (
        "A test is 20 steps; start-up is not counted, as no run tells it. Spread: 80 % of 21 runs of hopper-nanotron. "
        "No candidates: 12 already measured."
    )


def test_a_proposal_of_the_grid_says_where_and_for_how_much() -> None:
    text, value = words.worth_running(ROW)
    assert (text, plain(value)) == ("Llama 8B on 2 nodes: DP8 TP2 PP1", "~+6.1 % for 0.1 GPU·h")
