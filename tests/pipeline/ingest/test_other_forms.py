"""Runs that are kept in other forms than logs: notebooks, binary tables, and records with the begin of a run in front."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tests.pipeline.ingest.lake_of_logs import LakeOfLogs
from tests.pipeline.io.test_notebook import notebook

LOSSES = [round(2.0 + 3 / step, 4) for step in range(1, 41)]


def run_of(logs: LakeOfLogs) -> dict[str, object]:
    logs.ingest()
    (run,) = logs.lake.read("runs").to_dicts()
    return run


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_steps_in_a_binary_table_are_a_run_that_the_document_beside_it_configures(tmp_path: Path, suffix: str) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write("exp/config.yaml", "global_batch_size: 16\nseq_len: 2048\ntensor_parallel_size: 2\n")
    table = pl.DataFrame({"step": range(1, 41), "train_loss": LOSSES, "step_time_s": [0.75] * 40})
    path = logs.write(f"exp/metrics.{suffix}", "")
    table.write_parquet(path) if suffix == "parquet" else table.write_ipc(path)
    logs.touch(f"exp/metrics.{suffix}")
    run = run_of(logs)
    assert (run["last_step"], run["step_time_s"], run["gbs"], run["seq_len"], run["tp"]) == (40, 0.75, 16, 2048, 2)


def test_a_notebook_with_the_output_of_a_trainer_is_a_run(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    body = "".join(f"<tr><td>{10 * at}</td><td>{loss}</td></tr>" for at, loss in enumerate(LOSSES, 1))
    page = f"<table><tr><th>Step</th><th>Training Loss</th></tr>{body}</table>"
    source = "args = TrainingArguments(per_device_train_batch_size=2, gradient_accumulation_steps=8)\ntrainer.train()"
    logs.write("sft.ipynb", notebook({"output_type": "display_data", "data": {"text/html": page}}, source=source))
    run = run_of(logs)
    assert (run["last_step"], run["steps_logged"], run["mbs"], run["gas"]) == (400, 40, 2, 8)
    losses = logs.lake.read("steps", ["step", "loss"]).sort("step")["loss"].to_list()
    assert losses == LOSSES


def test_a_notebook_without_a_training_is_none(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write("eda.ipynb", notebook({"output_type": "stream", "text": "shape (10, 3)\n"}, source="print(df.shape)"))
    logs.ingest()
    assert logs.runs() == []


def test_records_of_steps_may_follow_one_of_the_run(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    begin = {"event": "start", "parallelism": {"tensor": 2, "data": 4}, "batch": {"micro": 2, "global": 64}}
    steps = [
        {"event": "train", "iter": at, "metrics": {"loss": {"value": loss}, "time": {"step_ms": 1260.5}}}
        for at, loss in enumerate(LOSSES, 1)
    ]
    logs.write("exp/events.jsonl", "".join(json.dumps(row) + "\n" for row in [begin, *steps]))
    run = run_of(logs)
    assert (run["last_step"], run["step_time_s"]) == (40, 1.2605)
    assert (run["tp"], run["dp"], run["mbs"], run["gbs"]) == (2, 4, 2, 64)


def test_records_of_steps_by_any_name_are_a_run(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    config = {"event": "config", "cfg": {"model": {"layers": 8}, "dist": {"world": 8}}}
    steps = [
        {"event": "step", "n": at, "m": {"train": {"loss": loss}}, "sec": 1.5} for at, loss in enumerate(LOSSES, 1)
    ]
    records = [config, *steps, {"event": "end", "reason": "max_steps"}]
    logs.write("exp/events.jsonl", "".join(json.dumps(row) + "\n" for row in records))
    run = run_of(logs)
    assert (run["first_step"], run["last_step"], run["num_gpus"], run["status"]) == (1, 40, 8, "completed")


def test_a_table_of_steps_without_a_header_is_a_run(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    rows = (f"{step},{3 + 4 / step + step % 3 / 50:.4f},0.001\n" for step in range(1, 61))
    logs.write("exp/metrics.csv", "".join(rows))
    run = run_of(logs)
    assert (run["first_step"], run["last_step"]) == (1, 60)


HPARAMS = {
    "accelerator": "cuda",
    "strategy": "fsdp",
    "devices": 4,
    "num_nodes": 2,
    "precision": "bf16-mixed",
    "batch_size": 2,
    "accumulate_grad_batches": 8,
    "block_size": 2048,
    "n_layer": 24,
    "n_embd": 2048,
    "n_head": 16,
    "max_steps": 200,
}


@pytest.mark.parametrize(
    ("strategy", "zero_stage", "replicas"), [("fsdp", 3, 8), ("ddp", 0, 8), ("model_parallel", None, None)]
)
def test_a_folder_of_lightning_loggers_is_a_run_by_what_the_script_logged(
    tmp_path: Path, strategy: str, zero_stage: int | None, replicas: int | None
) -> None:
    """CSVLogger's steps count from 0, and the columns beside the loss have the script's own names."""
    logs = LakeOfLogs(tmp_path)
    hparams = {**HPARAMS, "strategy": strategy}
    logs.write("version_0/hparams.yaml", "".join(f"{name}: {value}\n" for name, value in hparams.items()))
    rows = (f"0,{step},{loss},54321.0,0.5\n" for step, loss in zip(range(9, 200, 10), LOSSES, strict=False))
    logs.write("version_0/metrics.csv", "epoch,step,train_loss,perf/tokens_per_sec,val_loss\n" + "".join(rows))
    run = run_of(logs)
    assert (run["status"], run["last_step"], run["tokens_per_s"]) == ("completed", 199, 54321.0)
    assert (run["seq_len"], run["mbs"], run["gas"], run["precision"]) == (2048, 2, 8, "bf16")
    assert (run["num_gpus"], run["num_nodes"], run["zero_stage"], run["dp"]) == (8, 2, zero_stage, replicas)
    assert run["model"] == "24 layers × 2048"
