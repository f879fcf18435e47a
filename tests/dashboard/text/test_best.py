from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.format.metrics import METRICS
from sweepscope.dashboard.selection.filters import Filters, Range
from sweepscope.dashboard.selection.slices import Slice
from sweepscope.dashboard.text import best, best_cell
from sweepscope.dashboard.view_models.cells import without_untried
from sweepscope.dashboard.view_models.explorer import Pick
from sweepscope.schemas.tables.inference import DOUBTFUL_SPEED
from sweepscope.schemas.vocab import CELL_STATE
from tests.dashboard.grid_rows import cell, empty, grid, only, outcome

_SLICE = Slice("published", "H100-SXM-80GB", 4096, 1_048_576, "ultrascale_playbook")


def spaced(text: str) -> str:
    return text.replace("\xa0", " ")


def test_the_answer_says_who_wins_by_how_much_and_how_sure() -> None:
    assert spaced(best.cell_answer(only(grid(cell())))) == (
        "On 16 nodes, 8.86B trains fastest with **DP16 TP8 PP1 · GAS2 MBS8 · Z0: 36.3 % MFU** in nanotron, 5.8 % "
        "faster than the runner-up. Chance that it is the best of 114 layouts: 66 % (run-to-run noise 5.0 %)."
    )


def test_a_cell_of_several_versions_and_clusters_names_those_of_its_best() -> None:
    several = cell(framework_version="2.0", cluster="North", differing=["framework_version", "cluster"])
    found = only(grid(several))
    assert "**DP16 TP8 PP1 · GAS2 MBS8 · Z0: 36.3 % MFU** in nanotron 2.0 on cluster North, " in spaced(
        best.cell_answer(found)
    )
    assert ("Setup", "version 2.0 · cluster North") in best_cell.facts(found)


def test_a_model_that_does_not_fit_says_by_how_much() -> None:
    found = only(grid(empty(), outcomes=[outcome("80B", 1, status="failed", runs=57)]))
    assert spaced(best.cell_answer(found)) == (
        "**80B on 1 node has no working layout yet**: 57 tries, none completed. Weights, gradients and optimizer take "
        "149 GiB per GPU even fully sharded, before any activation; the card has 79.6 GiB."
    )


@pytest.mark.parametrize("state", [state for state in CELL_STATE if state != "measured"])
def test_every_empty_state_has_a_sentence(state: str) -> None:
    found = only(grid(empty(state=state, cell_reason="PP16 needs 16 GPUs")))
    assert best.cell_answer(found).startswith("**80B on 1 node ")
    assert best_cell.panel_reason(found)


def test_a_cell_that_was_not_run_does_not_claim_failures() -> None:
    assert best.cell_answer(only(grid(empty(state="not_run"), outcomes=[]))) == "**80B on 1 node was not run.**"


def test_filters_are_part_of_the_answer() -> None:
    filters = Filters(origin="published", pp=Range(16))
    rows = [cell(), cell("80B", 16, mfu=0.343), empty("80B", 1)]
    found = without_untried(grid(*rows, filters=filters))
    assert spaced(best.filtered_answer(found, filters)) == (
        "With PP ≥ 16, **2 of 3 cells have a result**; the best is 36.3 % MFU for 8.86B on 16 nodes "
        "with DP16 TP8 PP1 · GAS2 MBS8 · Z0."
    )


def test_filters_that_leave_nothing_say_why() -> None:
    filters = Filters(pp=Range(4096))
    impossible = grid(empty("80B", 1), empty("80B", 64), filters=filters, outcomes=[])
    assert spaced(best.nothing_matches(impossible, filters)) == (
        "**No completed run matches PP ≥ 4096**: PP4096 needs 4,096 GPUs, and the largest cell has 512. "
        "Remove a filter to see more."
    )
    tried = grid(empty("80B", 64), filters=Filters(pp=Range(16)), outcomes=[outcome("80B", 64, status="oom", runs=3)])
    assert "3 tries, none completed" in best.filtered_answer(tried, Filters(pp=Range(16)))


def test_the_meta_line_names_the_study_and_the_conditions() -> None:
    text = best.conditions(_SLICE, grid(cell(), outcomes=[outcome(runs=3280)]), 4080)
    assert text == (
        "3,280 of 4,080 published runs, ultrascale playbook, nanotron, H100-SXM-80GB, sequence 4,096, 1M-token batch. "
        "Ranked by tokens/s/GPU; MFU recomputed from it."
    )


def test_the_meta_line_does_not_invent_what_is_unknown() -> None:
    text = best.conditions(Slice("measured", None, 128, 512), grid(cell(mfu=None)), 1)
    assert "accelerator unknown" in text
    assert text.endswith("no MFU could be computed.")


def test_the_best_cell_is_selected_at_first() -> None:
    assert best.default_cell(grid(cell("80B", 4, mfu=0.1), cell("1B", 1, mfu=0.4), empty())) == ("1B", "1")
    assert best.default_cell(grid(cell("8B", 2, mfu=None), empty())) == ("8B", "2")


def test_facts_never_show_a_missing_value_as_zero() -> None:
    facts = dict(best_cell.facts(only(grid(cell(step_time_s=None, mem_peak_bytes=None)))))
    assert (facts["Step time"], facts["Peak memory"]) == ("not logged", "not logged")
    assert spaced(facts["Evidence"]) == "1 run, no repeat; 95 % interval 5,465 to 6,649"
    assert spaced(dict(best_cell.facts(only(grid(cell()))))["Peak memory"]) == "66.9 of 79.6 GiB"


def test_charts_can_be_heard() -> None:
    frame = grid(cell("1B", 1, mfu=0.4), cell(mfu=0.36), empty())
    assert spaced(best.grid_alt(frame, METRICS["mfu"])) == (
        "Grid of 3 models by 2 node counts, MFU of the best layout: from 40.0 % for 1B on 1 node "
        "to 36.0 % for 8.86B on 16 nodes; 1 empty cell."
    )
    assert "no cell has a value" in best.grid_alt(grid(empty()), METRICS["mfu"])
    assert "66.9" in best.memory_alt(frame)
    assert best.memory_alt(grid(empty())) == "No winner has a logged peak memory."


PICKED: dict[str, Any] = {
    **{"dp": 16, "tp": 8, "pp": 1, "cp": 1, "ep": 1, "vpp": 1, "gas": 2, "mbs": 8},
    **{"zero_stage": 0, "recompute": "none"},
}
STATED: dict[str, Any] = {**PICKED, "cp": None, "ep": None, "vpp": None, "dp_replicate": None, "recompute": None}
"""The same layout as a log states it."""


def tries(*rows: tuple[str | None, str, int]) -> pl.DataFrame:
    """How runs of PICKED, and of another layout, ended: recomputation, status, number."""
    known = [{**STATED, "recompute": mode, "status": status, "runs": runs} for mode, status, runs in rows]
    other = {**STATED, "tp": 4, "dp": 32, "status": "failed", "runs": 3}
    return pl.DataFrame([*known, other], schema_overrides={"recompute": pl.String})


def test_the_estimators_pick_stands_beside_what_came_of_it() -> None:
    pick = Pick(PICKED, 0.369, (0.316, 0.386), 60 * 2**30, "explorer?nodes=16")
    ranked = pl.DataFrame(
        {
            **{name: [value, value] for name, value in STATED.items()},
            "tp": [4, 8],
            "dp": [32, 16],
            "mfu": [0.37, 0.363],
            "tokens_per_s_per_gpu": [6100.0, 6028.0],
            "rank_in_cell": [1, 2],
        },
        schema_overrides={"recompute": pl.String},
    )
    untried = tries()
    by_name = {name: value.replace("\xa0", " ") for name, value in best_cell.pick_rows(pick, ranked, untried, cell())}
    assert by_name == {
        "Pick": "DP16 TP8 PP1 · GAS2 MBS8 · Z0",
        "Likely": "~36.9 %, 31.6 to 38.6 % likely",
        "Measured": "36.3 %, rank 2 of 2",
    }
    unlearned = replace(pick, interval=None)
    assert best_cell.pick_rows(unlearned, ranked, untried, cell())[1] == ("The hardware allows", "~36.9\xa0%")
    learned = replace(unlearned, row={**PICKED, "est_penalty": 1.2})
    assert best_cell.pick_rows(learned, ranked, untried, cell())[1][0] == "Likely"
    tight = Pick(None, None, None, 196 * 2**30, "")
    assert best_cell.pick_rows(tight, ranked, untried, cell()) == [
        ("Pick", "nothing fits: the leanest needs ~196\xa0GiB")
    ]
    assert best_cell.pick_rows(replace(tight, need_bytes=float("nan")), ranked, untried, cell()) == [
        ("Pick", "nothing can be launched")
    ]


@pytest.mark.parametrize(
    ("speed", "interval", "expected"),
    [
        (6000.0, None, {"The hardware allows": "~39.7 %"}),
        (5500.0, None, {"Estimated": "~36.4 %, too low: the fastest run is 9 % faster", "Rests on": "constants x"}),
        (5500.0, (0.3, 0.45), {"Likely": "~36.4 %, 29.8 to 44.7 % likely"}),
        (
            5500.0,
            (0.3, 0.395),
            {
                "Likely": "~36.4 %, 29.8 to 39.2 % likely, too low: the fastest run is 9 % faster",
                "Rests on": "constants x",
            },
        ),
    ],
)
def test_no_estimate_below_a_measurement_is_called_a_limit(
    speed: float, interval: tuple[float, float] | None, expected: dict[str, str]
) -> None:
    """The estimate counts other FLOPs here (40 % at 6,000 tokens/s): throughputs are compared, MFU is by the run's."""
    picked = {**PICKED, "est_mfu": 0.4 * speed / 6000, "est_tokens_per_s_per_gpu": speed, "est_step_time_s": 1.0}
    pick = Pick(picked, picked["est_mfu"], interval, 0.0, "", "constants x")
    found = cell(mfu=0.397, tokens_per_s_per_gpu=6000.0)
    assert {name: value.replace("\xa0", " ") for name, value in best_cell.expected(pick, found)} == expected


@pytest.mark.parametrize(
    ("rows", "found", "text"),
    [
        ([(None, "oom", 2), ("full", "completed", 1)], {"runs_tried": 9}, "tried: 2 OOM"),
        ([("full", "oom", 2)], {"runs_tried": 9}, "not tried"),
        ([], {"runs_tried": 57, "run_id": None}, "not tried; of 57 other tries none completed"),
        ([], {"runs_tried": 0, "run_id": None}, "not tried, nor is any other layout"),
    ],
)
def test_what_nobody_tried_is_told_apart_from_what_did_not_complete(
    rows: list[tuple[str | None, str, int]], found: dict[str, object], text: str
) -> None:
    pick = Pick(PICKED, 0.369, None, 60 * 2**30, "explorer?nodes=16")
    ranked = pl.DataFrame(schema=[*STATED, "rank_in_cell"])
    assert dict(best_cell.pick_rows(pick, ranked, tries(*rows), cell(**found)))["Measured"] == text


def test_the_panel_says_why_completed_runs_are_not_ranked() -> None:
    tries = [outcome("8.86B", 16), outcome("8.86B", 16, is_ranked=False, runs=3, unranked_reason=DOUBTFUL_SPEED)]
    facts = dict(best_cell.facts(only(grid(cell("8.86B", 16), outcomes=tries))))
    assert (facts["Outcomes"], facts["Not ranked"]) == ("4 completed (3 not ranked)", DOUBTFUL_SPEED)
    assert "Not ranked" not in dict(best_cell.facts(only(grid(cell()))))
