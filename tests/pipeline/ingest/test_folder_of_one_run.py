"""What lies beside the one log of a folder: task files with the command, bindings, documents of any name; logs of hosts."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from tests.pipeline.ingest.lake_of_logs import LakeOfLogs
from tests.pipeline.ingest_in_memory import tables_of

TASK = """name: ft
resources: {accelerators: "H100:8"}
num_nodes: 2
run: |
  torchrun --nnodes $NODES --nproc_per_node 8 ft.py \\
    --zero-stage 3 --per-device-bs 2 --ga 4 --max-len 4096
"""
GIN = """import trainer.loop
# Parameters for Train:
Train.global_batch_size = 1024
Train.max_seq_len = 8192
Train.schedule = @cosine()
Model.num_layers = 42
Model.emb_dim = 3584
mesh/Mesh.tensor = 1
"""
CODE = """import torch
batch_size = 8
block_size = 1024
n_layer = 12
gradient_accumulation_steps = 5 * 8
model = dict(type="GPT", hidden_size=768)
device = torch.device("cuda")
"""
PLAN = "n_layers: 24\nd_model: 2048\nbatch: {micro: 2, global: 64, sequence: 2048}\n"


def log(*, seed: int = 1, prefix: str = "", steps: int = 40) -> str:
    rng = random.Random(seed)  # noqa: S311 -- made-up losses, no secret
    return "".join(
        f"{prefix}update {step} of {steps} -- loss {2 + 8 / step + rng.uniform(0, 0.1):.4f}, {rng.uniform(400, 410):.0f} ms\n"
        for step in range(1, steps + 1)
    )


@pytest.mark.parametrize(
    ("name", "text", "stated"),
    [
        ("task.yaml", TASK, {"zero_stage": 3, "mbs": 2, "gas": 4, "seq_len": 4096, "gpus_per_node": 8}),
        ("operative_config.gin", GIN, {"gbs": 1024, "seq_len": 8192, "num_layers": 42, "hidden_size": 3584}),
        ("config.py", CODE, {"mbs": 8, "seq_len": 1024, "num_layers": 12, "gas": 40, "hidden_size": 768}),
        ("llama_tp4.yml", PLAN, {"mbs": 2, "gbs": 64, "seq_len": 2048, "num_layers": 24}),
    ],
)
def test_a_document_of_any_name_beside_the_one_log_configures_its_run(
    name: str, text: str, stated: dict[str, int]
) -> None:
    for place in ("run/", "run/logs/../"):
        tables = tables_of({"run/logs/train.log" if ".." in place else "run/train.log": log(), f"run/{name}": text})
        (run,) = tables["runs"].to_dicts()
        assert {column: run[column] for column in stated} == stated


def test_beside_the_logs_of_several_runs_it_configures_none() -> None:
    tables = tables_of({"sweep/tp2.log": log(), "sweep/tp4.log": log(seed=2), "sweep/plan.yml": PLAN})
    assert tables["runs"].height == 2
    assert "seq_len" not in tables["runs"].columns


@pytest.mark.parametrize(
    ("name", "text"), [("mkdocs.yml", "site_name: x\n"), ("broken.yaml", "a: [1\nb: }"), ("tokenizer.json", "{}")]
)
def test_a_document_that_states_nothing_is_left_out(tmp_path: Path, name: str, text: str) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write("run/train.log", log())
    logs.write(f"run/{name}", text)
    logs.ingest()
    files = logs.lake.read("files", ["path", "kind", "status"])
    assert {path.rpartition("/")[2]: rest for path, *rest in files.iter_rows()}[name] == ["other", "skipped"]


def test_logs_of_hosts_side_by_side_are_one_run_with_its_configuration() -> None:
    files = {f"exp30/host-{host:04d}.log": log(prefix=f"gpu{host:03d} worker[{host}]: ") for host in range(17, 21)}
    (run,) = tables_of({**files, "exp30/cfg.yaml": PLAN})["runs"].to_dicts()
    assert (run["steps_logged"], run["gbs"], run["num_layers"]) == (40, 64, 24)


def test_so_are_those_that_are_named_by_addresses() -> None:
    files = {f"try/10.0.0.{host}.log": log(prefix=f"[node {host}] ") for host in (9, 10, 11)}
    (run,) = tables_of({**files, "try/plan.yml": PLAN})["runs"].to_dicts()
    assert (run["steps_logged"], run["gbs"]) == (40, 64)


@pytest.mark.parametrize(
    "end",
    [
        "5f2b || INFO: resources exited successfully with a zero exit code",
        "trainer-1 exited with code 0",
        "✓ Job finished (status: SUCCEEDED).",
        "### finished, exit 0",
    ],
)
def test_what_runs_the_process_says_that_it_has_ended(end: str) -> None:
    lines = log(steps=40).splitlines(keepends=True)[:30]
    (run,) = tables_of({"run/train.log": "".join([*lines, f"{end}\n"])})["runs"].to_dicts()
    (other,) = tables_of({"run/train.log": "".join([*lines, "worker exited with code 1\n"])})["runs"].to_dicts()
    assert (run["status"], other["status"] == "completed") == ("completed", False)


def test_a_failure_on_one_host_is_the_run_s() -> None:
    failure = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 1 has a total capacity of 79.15 GiB\n"
    files = {f"exp/gpu{host:03d}.log": "".join(log().splitlines(keepends=True)[:9]) for host in (8, 9)}
    files["exp/gpu009.log"] += failure
    (run,) = tables_of(files)["runs"].to_dicts()
    assert (run["status"], run["last_step"]) == ("oom", 9)


def test_numbers_that_double_are_settings_and_not_hosts() -> None:
    runs = tables_of({f"scaling/node{count:02d}.log": log(seed=count) for count in (1, 2, 4)})["runs"]
    assert runs.height == 3


def test_an_export_of_cloudwatch_is_a_log(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    path = logs.folder / "exported/4711/job-algo-1/000000.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress(log(prefix="2026-09-01T03:00:00.000Z [1,mpirank:0,algo-1]<stdout>:").encode()))
    logs.ingest()
    assert logs.lake.read("runs", ["last_step"])["last_step"].to_list() == [40]
