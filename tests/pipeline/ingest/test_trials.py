"""Trials of a tuner, in the files that Ray Tune leaves of each (ray/tune/logger: json.py, csv.py)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from sweepscope.pipeline.simulate.sweep import write_sweep
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs

SETTINGS = {"tp": 2, "dp": 8, "micro_batch": 4, "global_batch": 256, "seq_len": 4096, "num_gpus": 16}


def results(*, is_done: bool = True, **others: object) -> list[dict[str, object]]:
    return [
        {
            "loss": 10 - at / 2,
            "step": at * 20,
            "timestamp": 1793610000 + 82 * at,
            "done": is_done and at == 10,
            "training_iteration": at,
            "time_this_iter_s": 82.0,
            "trial_id": "4f2a1_00000",
            "config": {"train_loop_config": SETTINGS | others},
        }
        for at in range(1, 11)
    ]


def as_json(rows: list[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_csv(rows: list[dict[str, object]]) -> str:
    out = io.StringIO()
    flat = [
        {name: value for name, value in row.items() if name != "config"}
        | {f"config/train_loop_config/{name}": value for name, value in SETTINGS.items()}
        | {f"config/train_loop_config/unused_option_of_the_model_{at}": at for at in range(20)}
        for row in rows
    ]
    writer = csv.DictWriter(out, flat[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()


def run_of(logs: LakeOfLogs) -> Mapping[str, object]:
    logs.ingest()
    (run,) = logs.lake.read("runs").to_dicts()
    return run


@pytest.mark.parametrize("kinds", [("json",), ("csv",), ("json", "csv")])
def test_a_trial_is_one_run_with_its_settings_and_step_times(tmp_path: Path, kinds: tuple[str, ...]) -> None:
    logs = LakeOfLogs(tmp_path)
    if "json" in kinds:
        logs.write("exp/train_0/result.json", as_json(results()))
    if "csv" in kinds:
        logs.write("exp/train_0/progress.csv", as_csv(results()))
    run = run_of(logs)
    assert (run["last_step"], run["steps_logged"], run["step_time_s"]) == (200, 10, 4.1)
    assert (run["tp"], run["dp"], run["mbs"], run["gbs"], run["num_gpus"]) == (2, 8, 4, 256, 16)


@pytest.mark.parametrize(("is_done", "status"), [(True, "completed"), (False, "unknown")])
def test_the_flag_of_the_last_result_says_whether_the_trial_was_done(
    tmp_path: Path, is_done: bool, status: str
) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write("exp/train_0/result.json", as_json(results(is_done=is_done)))
    logs.write("exp/train_0/params.json", json.dumps(SETTINGS))
    assert run_of(logs)["status"] == status


def test_a_trial_that_died_before_its_first_result_is_a_run(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write("exp/train_0/params.json", json.dumps(SETTINGS))
    logs.write("exp/train_0/result.json", "")
    error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB."
    logs.write("exp/train_0/error.txt", f"Failure # 1 (occurred at 2026-11-02_09-03-12)\n{error}\n")
    run = run_of(logs)
    assert (run["status"], run["tp"], run["mbs"]) == ("oom", 2, 4)


def test_records_with_a_layout_each_are_no_steps(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    rows = [
        {"steps": 100 * at, "loss": 3.0 - at / 10, "tp": at, "dp": 8, "tokens_per_s": 9000 * at} for at in (1, 2, 4)
    ]
    logs.write("results.json", as_json(rows))
    logs.ingest()
    assert logs.lake.read("runs")["tp"].sort().to_list() == [1, 2, 4]


def test_a_pickle_of_something_else_is_left_out_without_a_complaint(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write("exp/train_0/result.json", as_json(results()))
    (Path(logs.write("exp/tuner.pkl", "x"))).write_bytes(b"\x80\x04N.")
    logs.touch("exp/tuner.pkl")
    logs.ingest()
    files = {row["path"].rpartition("/")[2]: row["status"] for row in logs.lake.read("files").to_dicts()}
    assert files == {"result.json": "parsed", "tuner.pkl": "skipped"}


def test_the_truth_of_a_simulated_sweep_is_a_list_of_runs_and_none_itself(tmp_path: Path) -> None:
    write_sweep(tmp_path / "logs" / "sweep", runs=4, seed=4)
    logs = LakeOfLogs(tmp_path)
    logs.ingest()
    assert {row["source_path"].rpartition("/")[2] for row in logs.lake.read("runs").to_dicts()}.isdisjoint(
        {"truth.jsonl"}
    )
