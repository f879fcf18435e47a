"""What the advisor says of proposals: a gain, none, or nothing to gain over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from sweepscope.dashboard.text import advisor as texts
from sweepscope.pipeline.estimate.advice.next_runs import NextRuns
from sweepscope.pipeline.estimate.advice.recipe import Advice, Stop
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.reference.rules import Rule, Step
from tests.dashboard.view_models.test_explorer import SETUP

ROW: dict[str, Any] = {
    "layout": "DP8 TP2 PP1",
    "gain": 0.061,
    "chance": 0.7,
    "test_gpu_hours": 0.14,
    "model": "Llama 8B",
    "num_nodes": 2,
}
BEST = {"run_id": "a", "layout": "DP16 TP1 PP1", "step_time_s": 3.26}


def proposed(*rows: dict[str, Any], best: dict[str, Any] | None = BEST, measured: int = 30) -> NextRuns:
    schema = {"layout": pl.String, "gain": pl.Float64, "chance": pl.Float64}
    frame = pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema)
    return NextRuns(frame, best, measured, {"already measured": 12}, "80% of 21 runs of hopper-nanotron", None)


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def test_the_best_proposal_tells_gain_and_chance() -> None:
    found = proposed(ROW)
    assert plain(texts.next_answer(found, texts.shown(found.candidates))) == (
        "**DP8 TP2 PP1** promises most per GPU-hour: 6.1 % more expected throughput than the best of 30 "
        "runs, DP16 TP1 PP1 (3.26 s), with a chance of 70 % to beat it."
    )


def test_proposals_without_a_gain_are_not_shown() -> None:
    found = proposed(ROW | {"gain": 0.0002}, measured=1)
    rows = texts.shown(found.candidates)
    assert rows.is_empty()
    assert plain(texts.next_answer(found, rows)) == (
        "No untried layout is expected to beat the only run, DP16 TP1 PP1 (3.26 s)."
    )


def test_nothing_measured_and_nothing_left_are_told_apart() -> None:
    assert texts.next_answer(proposed(ROW, best=None), proposed(ROW).candidates).startswith(
        "No run of this question was measured"
    )
    done = proposed()
    assert texts.next_answer(done, done.candidates).startswith("Every layout that fits and could be tried was measured")


def test_what_a_test_costs_and_what_is_no_candidate_is_said() -> None:
    assert plain(texts.next_notes(proposed(ROW))) == (
        "A test is 20 steps; start-up is not counted, because no run logged it. "
        "Spread: 80 % of 21 runs of hopper-nanotron. "
        "Left out: 12 already measured."
    )


def test_a_proposal_of_the_grid_says_where_and_for_how_much() -> None:
    text, value = texts.worth_running(ROW)
    assert (text, plain(value)) == ("Llama 8B on 2 nodes: DP8 TP2 PP1", "~6.1 % more, 0.1 GPU·h")


RULE = Rule("r", "s", "notes", "4.2", "throughput", "Keep TP inside a node", "TRUE", "tp <= 8")


def advice(**changes: Any) -> Advice:
    usual: dict[str, Any] = {"is_followed": True, "cost": 0.0, "layout": "DP8", "tested": 22, "held": 20}
    return Advice(RULE, "Lecture notes", **(usual | changes))


def test_a_rule_is_followed_or_has_a_price() -> None:
    assert texts.followed(advice()) == ("completed", "✓", "the fastest follows it")
    assert plain(texts.followed(advice(is_followed=False, cost=0.075))[2]) == (
        "the fastest does not; costs ~7.5 % of throughput"
    )
    assert texts.followed(advice(is_followed=False, cost=None))[2] == (
        "the fastest does not; no layout near the fastest does"
    )
    assert texts.followed(advice(is_followed=None, cost=0.3))[2].startswith("does not apply to the fastest")


def test_a_record_tells_cells_chance_and_this_cell() -> None:
    assert plain(texts.record(advice(), 0.34, "for")) == "held in 20 of 22 cells (chance: 34 %); held in this cell"
    assert plain(texts.record(advice(), None, "against")) == "held in 20 of 22 cells; not in this cell"
    assert texts.record(advice(), 0.3, "untested").endswith("(chance: 30\xa0%)")
    assert texts.record(advice(tested=0, held=0), None, None) == "never tested by these runs"
    assert texts.record(advice(tested=None, held=None), None, None) == "no runs to test it"


def test_a_step_names_the_rule_that_runs_bear_out_most() -> None:
    step = Step("throughput", "Raise throughput", "Where does the time go?")
    other = replace(advice(is_followed=False, tested=33, held=6), rule=replace(RULE, says="TP first"))
    text = texts.of_step(Stop(step, "16 nodes", (other, advice())))
    assert text == (
        "The fastest layout follows 1 of 2 rules of this step. Borne out most by this store's runs: "
        "**Keep TP inside a node**, in 20 of 22 cells."
    )
    untested = texts.of_step(Stop(step, "1 node", (advice(tested=0),)))
    assert untested.endswith("None of them was tested by this store's runs.")
    assert texts.of_step(Stop(step, "1 node", ())).startswith("No rule applies")


def test_only_evidence_of_the_cell_itself_is_its_verdict() -> None:
    cell = {
        "rule": "r",
        "model": "Llama 3 8B",
        "num_gpus": 16,
        "seq_len": 8192,
        "gbs_tokens": 16 * 8192,
        "accelerator": "H100-SXM-80GB",
        "verdict": "for",
    }
    found = pl.DataFrame([cell, cell | {"rule": "elsewhere", "num_gpus": 64}, cell | {"rule": "b", "model": "Other"}])
    assert texts.verdicts_here(found, "Llama 3 8B", SETUP.request(choose_profile)) == {"r": "for"}
