"""Sacred's record of an experiment, and the run of its folder."""

from __future__ import annotations

import json

import pytest

from sweepscope.pipeline.logs.sidecars.sacred_files import read_run
from tests.pipeline.ingest_in_memory import tables_of

STEPS = 30


def run_json(status: str = "COMPLETED", gpus: tuple[str, ...] = ("NVIDIA H100 80GB HBM3",) * 8) -> str:
    host = {"hostname": "n1", "gpus": {"driver_version": "550", "gpus": [{"model": model} for model in gpus]}}
    return json.dumps({"experiment": {"name": "llm"}, "heartbeat": "2025", "status": status, "host": host})


def test_a_folder_of_sacred_is_one_run() -> None:
    steps = list(range(1, STEPS + 1))
    series = {"steps": steps, "timestamps": ["2025-03-04T09:12:00"] * STEPS}
    metrics = {
        "train.loss": {**series, "values": [round(9 / (1 + step / 10), 4) for step in steps]},
        "lr": {**series, "values": [1e-3] * STEPS},
    }
    files = {
        "1/metrics.json": json.dumps(metrics, indent=2),
        "1/config.json": json.dumps({"batch_size": 8, "seq_len": 1024, "tp_size": 2, "num_gpus": 8}),
        "1/run.json": run_json("FAILED"),
        "1/cout.txt": "building the model\n",
    }
    run = tables_of(files)["runs"].to_dicts()
    assert len(run) == 1
    assert (run[0]["status"], run[0]["steps_logged"], run[0]["last_step"]) == ("crash", STEPS, STEPS)
    assert (run[0]["seq_len"], run[0]["tp"], run[0]["num_gpus"]) == (1024, 2, 8)
    assert run[0]["accelerator"] == "NVIDIA H100 80GB HBM3"


@pytest.mark.parametrize(
    ("status", "ended"), [("COMPLETED", "completed"), ("INTERRUPTED", "cancelled"), ("RUNNING", None)]
)
def test_the_state_is_how_it_ended(status: str, ended: str | None) -> None:
    assert read_run(run_json(status)).get("status_file") == ended


def test_gpus_of_two_models_are_no_accelerator_and_other_json_is_refused() -> None:
    assert read_run(run_json(gpus=("A", "B"))) == {"status_file": "completed"}
    with pytest.raises(ValueError, match="not the record of an experiment"):
        read_run('{"status": "done"}')


def test_a_run_json_of_another_program_is_skipped() -> None:
    found = tables_of({"a/run.json": '{"status": "done"}'})
    assert found["runs"].is_empty()
    assert found["rejects"].is_empty()
