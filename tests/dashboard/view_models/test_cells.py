from __future__ import annotations

import pytest

from sweepscope.dashboard.selection.filters import Filters, Range
from sweepscope.dashboard.view_models.cells import MOST_MODELS, drawn, needed_gpus, with_scale, without_untried
from tests.dashboard.grid_rows import cell, cells_frame, empty, grid, only, outcome

_PP16 = Filters(pp=Range(16))


def test_an_answered_cell_counts_its_tries_in_words() -> None:
    tries = [outcome(runs=114), outcome(status="failed", runs=60), outcome(status="running", runs=2)]
    found = only(grid(cell(), outcomes=tries))
    assert (found["runs_tried"], found["runs_completed"], found["runs_judged"], found["runs_failed"]) == (
        176,
        114,
        174,
        60,
    )
    assert found["outcome"] == "114 completed, 60 failed, 2 running"
    assert found["failure_rate"] == pytest.approx(60 / 174)


def test_runs_that_completed_without_a_rank_do_not_count_as_ranked() -> None:
    found = only(grid(cell(), outcomes=[outcome(runs=3), outcome(runs=2, is_ranked=False)]))
    assert found["runs_completed"] == 3
    assert found["outcome"] == "5 completed (2 not ranked)"
    assert found["failure_rate"] == 0


def test_nothing_is_said_of_a_failure_rate_before_a_run_has_ended() -> None:
    found = only(grid(empty(state="running"), outcomes=[outcome("80B", 1, status="running")]))
    assert found["failure_rate"] is None


def test_without_filters_the_store_decides_on_the_state() -> None:
    found = only(grid(empty(state="infra", cell_reason="3 of 3 node_fail"), outcomes=[]))
    assert (found["cell_state"], found["cell_reason"]) == ("infra", "3 of 3 node_fail")


def test_a_filter_that_needs_more_gpus_than_the_cell_has_makes_it_impossible() -> None:
    found = only(grid(empty("8.86B", 1, state="failed", params=8_860_000_000), filters=_PP16, outcomes=[]))
    assert (found["cell_state"], found["cell_reason"]) == ("impossible", "PP16 needs 16 GPUs")
    assert found["short_reason"] == "PP16 needs 16 GPUs"


def test_a_model_whose_states_exceed_the_card_wont_fit() -> None:
    found = only(grid(empty("80B", 2), filters=_PP16, outcomes=[outcome("80B", 2, status="failed", runs=9)]))
    assert found["cell_state"] == "wont_fit"
    assert found["short_reason"].replace("\xa0", " ") == "75 GiB + activations"


def test_models_nobody_tried_under_a_filter_leave_the_grid() -> None:
    rows = [cell("8.86B", 16), empty("8.86B", 1, state="failed", params=8_860_000_000), empty("7B", 1, state="failed")]
    found = without_untried(grid(*rows, filters=_PP16, outcomes=[outcome()]))
    # the column of 1 node stays: that 16 stages cannot fit there is a result
    assert found.select("model", "num_nodes", "cell_state").rows() == [
        ("8.86B", 16, "measured"),
        ("8.86B", 1, "impossible"),
    ]


def test_columns_nobody_tried_under_a_filter_leave_the_grid() -> None:
    narrow = Filters(framework=("nanotron",))
    rows = [cell("8.86B", 16), empty("8.86B", 32, state="not_run")]
    found = without_untried(grid(*rows, filters=narrow, outcomes=[outcome()]))
    assert found["scale"].to_list() == ["16"]


def test_columns_name_the_gpus_only_where_nodes_do_not_tell() -> None:
    rows = [cell(num_nodes=1, num_gpus=1), cell(num_nodes=1, num_gpus=4), cell(num_nodes=2), cell("80B", 2)]
    assert with_scale(cells_frame(*rows))["scale"].to_list() == ["1 (1 GPU)", "1 (4 GPUs)", "2", "2"]


def test_expert_parallel_lives_inside_data_parallel() -> None:
    assert needed_gpus(Filters(ep=Range(64), dp=Range(16))) == (64, "DP16 EP64")
    assert needed_gpus(Filters(tp=Range(8), pp=Range(4), cp=Range(None, 2))) == (32, "TP8 PP4")


def test_an_empty_grid_settles_to_an_empty_grid() -> None:
    found = grid()
    assert found.is_empty()
    assert {"cell_state", "outcome", "scale", "failure_rate"} <= set(found.columns)


def test_of_many_models_those_with_most_completed_runs_are_drawn_and_the_picked_one() -> None:
    names = [f"m{at:02}" for at in range(MOST_MODELS + 6)]
    found = grid(
        *(cell(name, 4) for name in names), outcomes=[outcome(name, 4, runs=at + 1) for at, name in enumerate(names)]
    )
    assert drawn(found)["model"].to_list() == names[6:]
    assert drawn(found, "m02")["model"].to_list() == ["m02", *names[7:]]
    assert drawn(found.head(3))["model"].to_list() == names[:3]
