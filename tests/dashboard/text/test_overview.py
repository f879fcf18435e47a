from __future__ import annotations

import polars as pl
import pytest

from sweepscope.dashboard.selection.slices import Other, Slice
from sweepscope.dashboard.text import overview
from sweepscope.schemas.vocab import FINDING
from tests.dashboard.grid_rows import Row, cell, empty, grid, outcome

REASONS = pl.DataFrame(
    {"mfu_basis": ["not computed: accelerator unknown", "not computed: parameters unknown"], "runs": [3, 1]}
)


def playbook(tp_by_nodes: dict[int, int]) -> pl.DataFrame:
    return grid(
        *(
            cell("8B", nodes, tp=tp, dp=8, pp=1, strategy="DP+TP" if tp > 1 else "DP")
            for nodes, tp in tp_by_nodes.items()
        )
    )


def test_the_answer_finds_where_tensor_parallelism_sets_in() -> None:
    text = overview.answer(playbook({1: 1, 2: 1, 4: 1, 8: 2, 16: 4, 32: 8, 64: 8}))
    assert "**No single layout wins.**" in text
    assert (
        "Up to 4 nodes, tensor parallelism is off in 3 of 3 winners; from 16 nodes on, 3 of 3 use TP 4 or more." in text
    )


def test_without_such_a_border_the_best_cell_is_named() -> None:
    text = overview.answer(playbook({1: 2, 2: 2, 4: 2, 8: 2}))
    assert text.startswith("**DP+TP wins every cell.** The best is")


def test_close_races_are_counted() -> None:
    rows = [cell("a", 1), cell("b", 2, margin=0.009), cell("c", 4, margin=None)]
    assert overview.answer(grid(*rows)).endswith("1 of 2 winners leads by less than 1\xa0%.")


@pytest.mark.parametrize(
    ("rows", "start"),
    [
        ([empty()], "**No run has completed in this grid yet**: 1 try so far."),
        ([cell(runner_up_run_id=None), empty()], "**One result so far:** 8.86B on 16 nodes reaches"),
        ([cell(layouts_completed=5), empty()], "**5 layouts of 8.86B on 16 nodes completed.** The best is DP16 TP8"),
    ],
)
def test_too_few_rows_say_so(rows: list[Row], start: str) -> None:
    assert overview.answer(grid(*rows)).startswith(start)


def test_a_grid_in_a_list_names_its_models_or_how_many_they_are() -> None:
    conditions = Slice("measured", "H100", 4096, 1_048_576)
    assert (
        overview.grid_name(Other(conditions, ("70B", "8B"), 1, 1)) == "70B and 8B, H100, sequence 4,096, 1M-token batch"
    )
    study = Slice("published", None, 2048, None, "big_sweep")
    assert (
        overview.grid_name(Other(study, ("1B", "3B", "7B"), 1, 1))
        == "big sweep: 3 models, accelerator unknown, sequence 2,048"
    )


def test_the_four_figures() -> None:
    tries = [outcome(runs=30), outcome(status="oom", runs=10), outcome("80B", 1, status="failed", runs=10)]
    of_all = {"runs_judged": 120, "runs_failed": 90}
    values = overview.figures(grid(cell(), empty(), outcomes=tries), 28, 2, of_all, REASONS)
    assert [(label, value.replace("\xa0", " "), note.replace("\xa0", " ")) for label, value, note in values] == [
        ("Model × nodes with a result", "1 of 2", "1 won't fit"),
        ("Best MFU", "36.3 %", "8.86B on 16 nodes"),
        ("Runs that failed", "40 %", "20 of 50 in this grid; 75 % of all 120"),
        ("Layouts measured twice", "2", "of 28 completed; the rest are single runs"),
    ]


def test_failures_are_those_of_all_own_runs_where_the_answer_is_about_them() -> None:
    own = pl.DataFrame({"model": ["8.86B"], "num_gpus": [128], "mfu": [0.363], "runs_completed": [31]})

    def figure(judged: int, failed: int) -> tuple[str, str]:
        tries = grid(cell(), outcomes=[outcome(runs=1)])
        of_all = {"runs_judged": judged, "runs_failed": failed}
        _, value, note = overview.figures(tries, 1, 0, of_all, REASONS, own=own)[2]
        return value.replace("\xa0", " "), note.replace("\xa0", " ")

    assert figure(168, 138) == ("82 %", "138 of all 168; 0 of 1 in this grid")
    assert figure(1, 0) == ("0 %", "0 of 1")


def test_layouts_that_ran_once_are_single_runs() -> None:
    def note(layouts: int, repeated: int) -> str:
        return overview.figures(grid(cell()), layouts, repeated, {"runs_judged": 1, "runs_failed": 0}, REASONS)[3][2]

    assert [note(6, 0), note(6, 6), note(1, 0)] == [
        "of 6 completed; all are single runs",
        "of 6 completed",
        "of 1 completed",
    ]


def test_the_best_mfu_is_that_of_the_answer_where_it_is_outside_of_the_grid() -> None:
    own = pl.DataFrame({"model": ["1.35B", "8.86B"], "num_gpus": [None, 128], "mfu": [0.41, 0.363]})
    judged = {"runs_judged": 1, "runs_failed": 0}

    def best(row: Row, outside: pl.DataFrame | None) -> tuple[str, str]:
        _, value, note = overview.figures(grid(row), 1, 0, judged, REASONS, own=outside)[1]
        return value.replace("\xa0", " "), note.replace("\xa0", " ")

    elsewhere = ("41.0 %", "1.35B on an unknown number of GPUs, outside this grid")
    assert best(cell(), own) == elsewhere
    assert best(cell(mfu=None), own) == elsewhere
    assert best(cell(), own.tail(1)) == ("36.3 %", "8.86B on 16 nodes")
    assert best(cell(), None) == ("36.3 %", "8.86B on 16 nodes")


def test_figures_of_a_store_without_results_say_so() -> None:
    values = [
        value
        for _, value, _ in overview.figures(
            grid(empty(state="not_run"), outcomes=[]), 0, 0, {"runs_judged": 0, "runs_failed": 0}, REASONS.clear()
        )
    ]
    assert values == ["0 of 1", "not computed", "–", "0"]


@pytest.mark.parametrize(
    ("reasons", "note"),
    [
        (REASONS, "accelerator unknown (3 runs); parameters unknown (1 run)"),
        (REASONS.head(1), "accelerator unknown"),
        (REASONS.clear(), "no run has completed"),
    ],
)
def test_a_grid_without_mfu_says_why(reasons: pl.DataFrame, note: str) -> None:
    values = overview.figures(grid(cell(mfu=None)), 1, 0, {"runs_judged": 1, "runs_failed": 0}, reasons)
    assert values[1] == ("Best MFU", "not computed", note)


def test_the_closest_ties_are_worth_a_repeat() -> None:
    rows = [cell("a", 1, margin=0.009, is_tie=True), cell("b", 2, margin=0.0001, is_tie=True), cell("c", 4, margin=0.2)]
    assert [
        (item.text, item.value.replace("\xa0", " "), item.cell) for item in overview.worth_running(grid(*rows))
    ] == [
        ("Repeat b on 2 nodes", "tie, under 0.1 % apart", ("b", "2")),
        ("Repeat a on 1 node", "tie, 0.9 % apart", ("a", "1")),
    ]


def test_findings_are_counted_in_words() -> None:
    audit = pl.DataFrame({"finding": ["tied_embedding_counted_twice", "claimed_best_not_fastest"], "runs": [655, 7]})
    items = overview.worth_a_look(audit)
    assert [item.text for item in items] == [
        "7 runs: presented as best, but not the fastest run",
        "655 runs: printed MFU counts the tied embedding twice",
    ]
    assert {item.key for item in items} <= set(FINDING)
    assert overview.worth_a_look(audit.clear()) == []


def test_only_problems_that_happened_are_listed() -> None:
    row = {
        "lines_rejected": 0,
        "values_doubted": 4,
        "files_rejected": 1,
        "regressions": 2,
        "runs_quarantined": 26,
        "runs_diverged": 2,
        "runs_cut_off": 14,
        "runs_without_end": 1,
        "runs_without_cell": 72,
        "runs_without_accelerator": 3,
        "runs_in_conflict": 0,
    }
    assert [item.text for item in overview.quiet_problems(row)] == [
        "2 layouts slower in a newer version, beyond the noise",
        "4 rows with values that cannot all be right",
        "1 file could not be read at all",
        "26 runs kept out of every ranking",
        "2 runs whose loss became NaN or infinite: ranked by speed all the same",
        "14 runs counted as failed: the log stops without a reason",
        "1 run without evidence of an end: in no failure rate",
        "72 runs without model, nodes, sequence or batch: in no grid",
        "3 completed runs without an accelerator: no MFU",
    ]


def test_cells_far_behind_their_hardware_are_looked_at_first() -> None:
    cells = pl.DataFrame({"run_id": ["a", "b", "c", None], "model": ["m", "m", "m", "m"]})
    ratios = pl.DataFrame({"run_id": ["a", "b", "c", "other"], "time_ratio": [1.1, 3.0, 1.2, 9.0]})
    assert [row["run_id"] for row in overview.furthest_behind(cells, ratios, limit=2)] == ["b", "c"]


def test_runs_without_a_model_are_not_counted_as_of_the_known_one() -> None:
    runs = {"model": ["8.86B", None], "accelerator": [None, None], "num_gpus": [16, 8], "layout": ["DP16", "DP8"]}
    values = {"mfu": [0.4, None], "tokens_per_s_per_gpu": [None, None], "runs_completed": [2, 11]}
    types = {"tokens_per_s_per_gpu": pl.Float64, "accelerator": pl.String, "step_time_s": pl.Float64}
    own = pl.DataFrame({**runs, **values, "step_time_s": [None, None]}, schema_overrides=types)
    assert overview.own_answer(own).startswith("**13 completed runs** of 1 model (11 name none) on")
    unnamed = own.filter(pl.col("model").is_null())
    assert overview.own_answer(unnamed).startswith("**11 completed runs** of an unknown model on")


def test_an_mfu_that_no_hardware_reaches_is_not_the_best() -> None:
    runs = {
        "model": ["8.86B", "80B"],
        "accelerator": ["H100-SXM-80GB", None],
        "num_gpus": [16, 8],
        "layout": ["DP16", "DP8"],
        "mfu": [1.876, 0.53],
        "tokens_per_s_per_gpu": [36_052.0, 8600.0],
        "runs_completed": [5, 1],
    }
    own = pl.DataFrame(runs)
    assert "The best is 53.0\xa0% MFU: 80B on 8 GPUs" in overview.own_answer(own)
    alone = overview.own_answer(own.head(1))
    assert alone.endswith("The best is 187.6\xa0% MFU (above the hardware's peak): 8.86B on 16 GPUs, DP16.")
    judged = {"runs_judged": 6, "runs_failed": 0}
    figures = overview.figures(grid(cell(mfu=None)), 1, 0, judged, REASONS, own=own)
    assert figures[1][1] == "53.0\xa0%"
