"""Experiments of DeepSpeed's autotuner."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweepscope.pipeline.logs.sidecars.deepspeed_autotuning import read_experiment, read_metrics
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs

CONFIG = {
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 1,
    "train_batch_size": 64,
    "zero_optimization": {"stage": 2},
    "fp16": {"enabled": True},
}
OOM = "Traceback (most recent call last):\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


def experiment(**ds_config: object) -> str:
    return json.dumps({"name": "z2", "ds_config": CONFIG | ds_config, "num_gpus": 8, "num_nodes": 2})


def test_gpus_are_those_of_all_nodes_and_replicas_those_over_the_model() -> None:
    found = read_experiment(experiment(autotuning={"enabled": True, "mp_size": 2}))
    assert {name: found[name] for name in ("num_gpus", "num_nodes", "tp", "dp", "mbs", "gas", "zero_stage")} == {
        "num_gpus": "16",
        "num_nodes": "2",
        "tp": "2",
        "dp": "8",
        "mbs": "4",
        "gas": "1",
        "zero_stage": "2",
    }


@pytest.mark.parametrize("text", ["[]", "{}", '{"ds_config": {}, "num_gpus": "8", "num_nodes": 1}', "step 1"])
def test_other_files_of_these_names_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"holds no|object|Expecting"):
        read_experiment(text)
    with pytest.raises(ValueError, match=r"holds no|object|Expecting"):
        read_metrics(text)


def test_each_experiment_is_a_run(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    for mbs, error in ((4, ""), (16, OOM)):
        name = f"z2_gas1_tmbspg{mbs}"
        folder = f"autotuning_results/{name}"
        sizes = {"train_micro_batch_size_per_gpu": mbs, "train_batch_size": mbs * 16}
        logs.write(f"{folder}/exp.json", experiment(**sizes))
        logs.write(f"{folder}/ds_config.json", json.dumps(CONFIG | sizes))
        logs.write(
            f"{folder}/cmd.txt", "deepspeed --num_nodes 2 train.py --deepspeed ds_config.json --block_size 1024\n"
        )
        logs.write(
            f"{folder}/stdout.log", "[2026-11-20 10:00:00,000] [INFO] [runner.py:568:main] cmd = python train.py\n"
        )
        logs.write(f"{folder}/stderr.log", error)
        if not error:
            metrics = {"forward": 2e5, "latency": 1.6e6, "FLOPS_per_gpu": 45e12, "throughput": 40.0}
            logs.write(f"{folder}/metrics.json", json.dumps(metrics))
    logs.ingest()
    columns = ["status", "num_gpus", "num_nodes", "dp", "mbs", "step_time_s", "tflops_per_gpu_logged"]
    assert logs.lake.read("runs", columns).sort("status").select(columns).rows() == [
        ("completed", 16, 2, 16, 4, 1.6, 45.0),
        ("oom", 16, 2, 16, 16, None, None),
    ]
