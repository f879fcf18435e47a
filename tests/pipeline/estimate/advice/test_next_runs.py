"""What to run next: never what was measured or cannot fit, and ranked by gain per GPU-hour."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.advice.cell import cells, startup_of
from sweepscope.pipeline.estimate.advice.exclusions import AS_LARGE, FAILED, MEASURED, RAN_OUT
from sweepscope.pipeline.estimate.advice.near_equal import ALIKE
from sweepscope.pipeline.estimate.advice.next_runs import EARLY, PROPOSED, next_runs
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.reference.layout_text import layout_key
from sweepscope.schemas.tables.runs import RUNS

CELL = {
    "origin": "measured",
    "framework": "nanotron",
    "accelerator": "H100-SXM-80GB",
    "num_nodes": 2,
    "gpus_per_node": 8,
    "num_gpus": 16,
    "model": "Llama 2 7B",
    "seq_len": 4096,
    "gbs_tokens": 2**20,
    "gbs": 256,
    "status": "completed",
    "zero_stage": 1,
    "cp": 1,
    "ep": 1,
    "precision": "bf16",
}


def runs(*changes: dict[str, Any]) -> pl.DataFrame:
    rows = []
    for place, change in enumerate(changes):
        row = {**CELL, "run_id": f"r{place}", "pp": 1, "mbs": 1, **change}
        row["dp"] = row["num_gpus"] // (row["tp"] * row["pp"])
        row["gas"] = row["gbs"] // (row["dp"] * row["mbs"])
        row["layout"] = f"DP{row['dp']} TP{row['tp']} PP{row['pp']} MBS{row['mbs']}"
        rows.append(row)
    return RUNS.conform(pl.DataFrame(rows, infer_schema_length=None))


def only_cell(frame: pl.DataFrame) -> Any:
    found = list(cells(frame))
    assert len(found) == 1
    assert found[0].request is not None
    return found[0]


def test_what_was_measured_is_not_proposed_and_gain_is_over_the_best() -> None:
    frame = runs(
        {"tp": 8, "step_time_s": 12.0},
        {"tp": 8, "mbs": 2, "step_time_s": 11.0},
        {"tp": 1, "pp": 8, "step_time_s": 60.0},
    )
    cell = only_cell(frame)
    advice = next_runs(cell.request, cell.runs, top=400, keeps_alike=True)
    assert advice.best == {"run_id": "r1", "layout": "DP2 TP8 PP1 · GAS64 MBS2 · Z1", "step_time_s": 11.0}
    assert advice.excluded[MEASURED] == 3
    proposed, done = (
        set(one.select("dp", "tp", "pp", "mbs", "zero_stage").rows()) for one in (advice.candidates, frame)
    )
    assert not proposed & done
    assert set(PROPOSED) <= set(advice.candidates.columns)
    best = advice.candidates.row(0, named=True)
    assert advice.candidates["gain_per_gpu_hour"].is_sorted(descending=True)
    assert best["test_gpu_hours"] == pytest.approx(16 * 20 * best["believed_step_time_s"] / 3600)
    assert best["believed_lo_s"] < best["believed_step_time_s"] < best["believed_hi_s"] < 11.0
    assert best["chance"] > 0.9
    assert "to beat DP2 TP8 PP1 · GAS64 MBS2 · Z1 (11 s)" in best["why"]
    assert 0.3 < best["gain"] < 11.0 / (0.9 * best["est_step_time_s"]) - 1  # physics bounds what can be gained


def test_what_ran_out_of_memory_takes_larger_layouts_with_it() -> None:
    good = {"tp": 8, "step_time_s": 12.0}
    cell = only_cell(runs(good, {"tp": 4, "mbs": 1, "status": "oom", "step_time_s": None}))
    without = only_cell(runs(good))
    found, free = (next_runs(one.request, one.runs, top=400, keeps_alike=True) for one in (cell, without))
    assert found.excluded[RAN_OUT] == 1
    assert found.excluded[AS_LARGE] >= 1
    left, before = (set(one.candidates.select("dp", "tp", "pp", "mbs", "zero_stage").rows()) for one in (found, free))
    assert (4, 4, 1, 1, 1) in before - left
    assert (4, 4, 1, 2, 1) in before - left  # larger micro-batches than what ran out
    assert (2, 8, 1, 2, 1) in left


def test_a_failure_without_a_reason_is_not_repeated_but_a_node_s_failure_is() -> None:
    base = [{"tp": 8, "step_time_s": 12.0}, {"tp": 4, "status": "failed"}, {"tp": 2, "status": "node_fail"}]
    cell = only_cell(runs(*base))
    advice = next_runs(cell.request, cell.runs, top=400, keeps_alike=True)
    assert advice.excluded[FAILED] == 1
    again = advice.candidates.filter(
        (pl.col("tp") == 2) & (pl.col("pp") == 1) & (pl.col("mbs") == 1) & (pl.col("zero_stage") == 1)
    )
    assert again["tried"].to_list() == ["node_fail"]
    assert "tried before: node_fail" in again["why"][0]


def test_without_a_record_there_is_no_chance_only_the_estimate() -> None:
    cell = only_cell(runs({"tp": 8, "step_time_s": 12.0, "framework": "home-made"}))
    advice = next_runs(cell.request, cell.runs)
    assert advice.candidates["chance"].is_null().all()
    assert advice.candidates["believed_lo_s"].is_null().all()
    assert advice.basis == "spread unknown: only 1 comparable run"
    best = advice.candidates.row(0, named=True)
    assert best["gain"] == pytest.approx(12.0 / best["est_step_time_s"] - 1)


def test_a_cell_without_measurements_proposes_what_is_expected_to_be_fastest() -> None:
    cell = only_cell(runs({"tp": 8, "status": "timeout", "step_time_s": None}))
    advice = next_runs(cell.request, cell.runs)
    assert advice.best is None
    assert advice.candidates["gain"].is_null().all()
    assert advice.candidates["believed_step_time_s"].is_sorted()
    assert advice.candidates["why"].str.ends_with("nothing was measured in this cell yet.").all()
    unknown = only_cell(runs({"tp": 8, "status": "timeout", "step_time_s": None, "framework": "home-made"}))
    assert next_runs(unknown.request, unknown.runs).basis == "spread unknown: no comparable run"


def test_cells_keep_frameworks_and_batches_apart_and_say_why_not() -> None:
    frame = pl.concat(
        [
            runs({"tp": 8, "step_time_s": 12.0}, {"tp": 8, "framework": "megatron"}),
            runs({"tp": 8, "gbs_tokens": 2**21, "gbs": 512}),
            runs({"tp": 8, "model": "unheard-of"}),
            runs({"tp": 8, "seq_len": None}),
        ]
    )
    found = list(cells(frame))
    assert [(cell.key["framework"], cell.key["gbs_tokens"]) for cell in found if cell.request is not None] == [
        ("megatron", 2**20),
        ("nanotron", 2**20),
        ("nanotron", 2**21),
    ]
    assert [cell.reason.partition(":")[0] for cell in found if cell.request is None] == ["shape unknown"]


def test_rows_are_read_once_for_all_cells_and_once_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a row costs as much as reading a thousand: read one by one, they took four fifths of the time."""
    heights: list[int] = []

    def counted(frame: pl.DataFrame) -> pl.DataFrame:
        heights.append(frame.height)
        return read_rows(frame)

    monkeypatch.setattr("sweepscope.pipeline.estimate.advice.cell.read_rows", counted)
    monkeypatch.setattr("sweepscope.pipeline.estimate.advice.next_runs.read_rows", counted)
    monkeypatch.setattr("sweepscope.pipeline.estimate.rows.estimate_rows.read_rows", counted)
    changes = [
        {"tp": 8, "step_time_s": 12.0},
        {"tp": 8, "mbs": 2, "status": "oom"},
        {"tp": 8, "framework": "megatron"},
    ]
    found = list(cells(runs(*changes)))
    assert heights == [2]
    assert {cell.key["framework"]: cell.request for cell in found} == {
        change["framework"]: only_cell(runs(change)).request for change in (CELL | changes[0], changes[2])
    }
    heights.clear()
    next_runs(found[1].request, found[1].runs, top=1)
    assert heights == [2]


def test_the_shape_comes_from_a_run_that_is_ranked() -> None:
    mislabelled = {"tp": 8, "quarantine_reason": "label_shape_mismatch", "num_layers": 80, "hidden_size": 8192}
    cell = only_cell(runs(mislabelled, {"tp": 8, "step_time_s": 12.0}))
    assert cell.request.asked.shape.num_layers == 32


@pytest.mark.parametrize(("seq_len", "used", "largest"), [(4096, 1, 1), (4096, None, 1), (16_384, 1, 4), (4096, 2, 2)])
def test_short_sequences_are_split_only_where_a_run_splits_them(seq_len: int, used: int | None, largest: int) -> None:
    batch = {"seq_len": seq_len, "gbs_tokens": 2**20, "gbs": 2**20 // seq_len}
    cell = only_cell(runs({"tp": 8, "step_time_s": 12.0, **batch, "cp": used}))
    assert cell.request.max_cp == largest
    proposed = next_runs(cell.request, cell.runs, top=400, keeps_alike=True).candidates
    assert proposed["cp"].max() <= largest


def test_layouts_are_named_as_a_search_names_them() -> None:
    frame = runs({"tp": 8, "pp": 2, "zero_stage": 1, "cp": None, "ep": None})
    assert [layout_key(row) for row in read_rows(frame).iter_rows(named=True)] == [
        (1, 8, 2, 1, 1, 1, 256, 1, 0, "none", 1)
    ]


def test_start_up_is_what_runs_spent_outside_of_their_steps() -> None:
    begin = datetime(2026, 1, 1)
    times = {"started_at": begin, "ended_at": begin + timedelta(seconds=300), "steps_logged": 20}
    assert startup_of(runs({"tp": 8, "step_time_s": 5.0, **times})) == pytest.approx(200.0)
    assert startup_of(runs({"tp": 8, "step_time_s": 5.0})) is None


@pytest.mark.parametrize("framework", ["nanotron", "home-made"])
@pytest.mark.parametrize("top", [1, 5, 20])
def test_a_list_is_not_filled_with_near_equal_layouts(framework: str, top: int) -> None:
    cell = only_cell(runs({"tp": 8, "step_time_s": 12.0, "framework": framework}))
    everything = next_runs(cell.request, cell.runs, top=400, keeps_alike=True).candidates
    advice = next_runs(cell.request, cell.runs, top=top)
    assert advice.candidates.height == top
    assert advice.candidates["layout"][0] == everything["layout"][0]  # the most promising stays
    rows = advice.candidates.select("tp", "pp", "cp", "ep", "believed_step_time_s").rows()
    for place, (*mesh, took) in enumerate(rows):
        assert not any(mesh == other and abs(took / time - 1) <= 0.02 for *other, time in rows[:place])
    if top > 1:
        assert advice.excluded[ALIKE] >= 1  # and how many were passed over is said


def test_runs_faster_than_estimated_promise_no_more_than_is_believed_of_any() -> None:
    own = [{"tp": tp, "step_time_s": 2.0 + tp / 10, "framework": "other"} for tp in (1, 2, 4, 8)]
    cell = only_cell(runs(*own))
    advice = next_runs(cell.request, cell.runs, top=400, keeps_alike=True)
    assert advice.best is not None
    assert "were" in advice.candidates["why"][0]
    most = advice.best["step_time_s"] / (EARLY * advice.candidates["est_step_time_s"]) - 1
    assert (advice.candidates["gain"] <= most.clip(0) + 1e-9).all()
