"""The scripts around a planned run: valid for their readers, with the switches that leave something to read."""

from __future__ import annotations

import os
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.launch.framework import Framework
from sweepscope.pipeline.launch.jobs import JOBSET, SBATCH, SCRIPT, launch_files
from sweepscope.pipeline.launch.planned import CPU
from sweepscope.pipeline.launch.registry import FRAMEWORKS
from sweepscope.pipeline.launch.toml_text import toml_text
from sweepscope.pipeline.logs.declared.statements import read_statements
from tests.pipeline.launch.planned import planned

TORCHRUN = '#!/bin/bash\nprintf "%s\\n" "$@"; env | grep -E "^(NCCL|TORCH_|PYTORCH_)"; exit 7\n'


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_the_script_starts_torchrun_and_keeps_what_it_prints(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "a run"
    folder.mkdir()
    for file, text in launch_files(planned(), FRAMEWORKS[name], {"PYTORCH_CUDA_ALLOC_CONF": "a:True"}).items():
        (folder / file).write_text(text)
    fake = tmp_path / "torchrun"
    fake.write_text(TORCHRUN)
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    environment = {
        **os.environ,
        "TORCHRUN": str(fake),
        "TRAINER_DIR": "/trainer",
        "NODE_RANK": "1",
        "MASTER_ADDR": "n0",
    }
    environment.pop("SLURM_JOB_ID", None)
    done = subprocess.run(["bash", folder / SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 7, "the exit code of the training is that of the script"
    log = (folder / "train1.log").read_text()
    assert log == done.stdout
    words = log.splitlines()
    assert words[:5] == ["--nnodes=2", "--nproc_per_node=8", "--node_rank=1", "--master_addr=n0", "--master_port=29500"]
    assert f"NCCL_DEBUG_FILE={folder}/nccl.%h.%p.log" in words
    assert f"TORCH_FR_DUMP_TEMP_FILE={folder}/flight_recorder_rank_" in words
    assert "PYTORCH_CUDA_ALLOC_CONF=a:True" in words


def test_a_trial_on_a_cpu_compiles_nothing() -> None:
    texts = [launch_files(planned(accelerator=name), FRAMEWORKS["litgpt"])[SCRIPT] for name in (CPU, "H100-SXM-80GB")]
    assert ["TORCHDYNAMO_DISABLE=1" in text for text in texts] == [True, False]


def test_the_script_names_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / SCRIPT).write_text(launch_files(planned(), FRAMEWORKS["picotron"])[SCRIPT])
    environment = {name: value for name, value in os.environ.items() if name != "TRAINER_DIR"}
    done = subprocess.run(["bash", tmp_path / SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "TRAINER_DIR: set it to the folder of the training script" in done.stderr


def test_a_slurm_job_has_the_size_name_and_limit_of_its_run() -> None:
    text = launch_files(planned(walltime_s=7_380), FRAMEWORKS["nanotron"])[SBATCH]
    options = [line.removeprefix("#SBATCH --") for line in text.splitlines() if line.startswith("#SBATCH")]
    assert {"job-name=plan-0a1b2c-001", "nodes=2", "gpus-per-node=8", "time=02:03:00", "exclusive"} <= set(options)
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


def test_a_jobset_has_a_pod_per_node_that_ends_by_its_limit() -> None:
    document = yaml.safe_load(launch_files(planned(), FRAMEWORKS["nanotron"])[JOBSET])
    assert (document["apiVersion"], document["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    job = document["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (job["parallelism"], job["completions"], job["activeDeadlineSeconds"]) == (2, 2, 900)
    assert job["template"]["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": 8}


def test_what_logs_do_not_say_is_stated_beside_them() -> None:
    text = launch_files(planned(), FRAMEWORKS["picotron"])["sweepscope.toml"]
    (stated,) = read_statements(text, "/runs/sweepscope.toml", "/runs")
    assert stated.values["accelerator"] == "H100-SXM-80GB"
    assert stated.values["num_gpus"] == "16"


_PLAIN = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.lists(st.text(), max_size=5)
_NAMES = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)


@given(st.dictionaries(_NAMES, st.dictionaries(_NAMES, _PLAIN, max_size=5), max_size=4))
def test_toml_is_read_back_as_it_was_given(sections: dict[str, dict[str, object]]) -> None:
    assert tomllib.loads(toml_text(sections)) == sections


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("picotron", {"zero_stage": 1}, "picotron has no ZeRO-1"),
        ("picotron", {"recompute": "full"}, "picotron has no full recomputation"),
        ("hf-trainer", {}, "hf-trainer has no tensor parallelism"),
        ("nanotron", {"pp": 2, "pipeline_schedule": "zb-v"}, "nanotron has no zb-v schedule"),
        ("nanotron", {"vpp": 2}, "nanotron has no interleaved pipelines"),
        ("litgpt", {"tp": 1, "zero_stage": 0}, "litgpt always shards"),
        ("litgpt", {"tp": 1, "zero_stage": 3}, "litgpt shards within nodes and copies over them, no other way"),
        ("torchtitan", {"model": "Llama 2 7B"}, "torchtitan has no flavor for Llama 2 7B"),
        ("torchtitan", {"cp": 2}, "torchtitan shards over context parallel ranks, too"),
        ("nanotron", {"precision": "fp8"}, "its launch files for nanotron cannot ask for FP8"),
        ("megatron", {"precision": "fp4"}, "its launch files for megatron cannot ask for FP4"),
        ("megatron", {"pp": 3}, "layers do not divide evenly into pipeline stages"),
        ("megatron", {"zero_stage": 3, "pp": 2}, "Megatron-FSDP runs without pipelines"),
    ],
)
def test_a_framework_names_why_it_cannot_run_a_layout(name: str, changes: dict[str, object], reason: str) -> None:
    run = planned(**changes)
    row = {**vars(run), "num_layers": run.shape.num_layers}
    refusal = FRAMEWORKS[name].refusal(row)
    assert refusal is not None
    assert refusal.startswith(reason)


def test_experts_are_refused_by_those_that_cannot_describe_them() -> None:
    refusing = {name for name, one in FRAMEWORKS.items() if one.refusal_of_model(8)}
    assert refusing == set(FRAMEWORKS) - {"megatron", "megatron-bridge"}
    assert not any(isinstance(one, Framework) and one.refusal_of_model(0) for one in FRAMEWORKS.values())
