"""Sweeps whose trainer logs in folders of its own while Slurm's outputs, which hold the failures, lie elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect, current
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs

FAILED = "+ srun trainer\nsrun: error: n1: task 0: Exited with exit code 1\nsrun: Terminating StepId={job}.0\n"
LATE = (
    "slurmstepd: error: *** STEP {job}.0 ON n1 CANCELLED AT 2026-11-18T10:00:00 DUE TO TIME LIMIT ***\n"
    "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
)
STEPS = "".join(f"step={step}/60 | loss={9 - step / 10:.4f} | dt=1.5s\n" for step in range(1, 31))
SACCT = "JobID|JobName|State|Start|End|NNodes|ExitCode\n"


@pytest.fixture
def logs(tmp_path: Path) -> LakeOfLogs:
    return LakeOfLogs(tmp_path)


def training(logs: LakeOfLogs, name: str, *, job: int | None = None, seed: int = 0) -> None:
    """A folder with a configuration, and a log that stops after step 30 of 60."""
    settings: dict[str, Any] = {"model": {"name": f"tiny-{seed + 1}b", "seq_len": 2048}, "train": {"micro_batch": 2}}
    if job:
        settings["job"] = {"slurm_job_id": job, "cluster": "north"}
    logs.write(f"{name}/config.resolved.json", json.dumps(settings))
    lines = [f"step={step}/60 | loss={9 - step / 10 - seed / 100:.4f} | dt=1.5{seed}s\n" for step in range(1, 31)]
    logs.write(f"{name}/logs/rank_0.log", "".join(lines))


def shown(logs: LakeOfLogs) -> dict[str, dict[str, Any]]:
    """Rows of `runs` that count, by the name of their folder or log."""
    logs.ingest()
    home = Home.resolve(str(logs.path / "home"))
    publish(home)
    with connect(current(home.path)) as store:
        rows: pl.DataFrame = store.sql("SELECT * FROM runs WHERE duplicate_of IS NULL").pl()
    return {Path(row["run_dir"]).name: row for row in rows.to_dicts()}


def endings(logs: LakeOfLogs) -> dict[str, str]:
    return {name: row["status"] for name, row in shown(logs).items()}


def test_an_output_ends_the_run_whose_configuration_states_its_job(logs: LakeOfLogs) -> None:
    training(logs, "tp1", job=771208)
    training(logs, "tp2", job=771209, seed=1)
    training(logs, "tp4", job=771210, seed=2)
    logs.write("slurm-771208.out", FAILED.format(job=771208))
    logs.write("slurm-771209.out", LATE.format(job=771209))
    runs = shown(logs)
    assert {name: run["status"] for name, run in runs.items()} == {
        "tp1": "crash",
        "tp2": "timeout",
        "tp4": "truncated",
    }
    assert "Exited with exit code 1" in runs["tp1"]["status_evidence"]
    assert (runs["tp1"]["job_id"], runs["tp1"]["cluster"], runs["tp1"]["mbs"]) == ("771208", "north", 2)


def test_an_output_that_comes_first_waits_for_its_run(logs: LakeOfLogs) -> None:
    logs.write("out/slurm-771208.out", FAILED.format(job=771208))
    assert endings(logs) == {"out": "crash"}
    training(logs, "runs/tp1", job=771208)
    assert endings(logs) == {"tp1": "crash"}


def test_the_schedulers_table_names_the_folder_of_a_run(logs: LakeOfLogs) -> None:
    training(logs, "tp1")
    training(logs, "tp2", seed=1)
    logs.write("slurm-771208.out", FAILED.format(job=771208))
    logs.write(
        "sacct.txt",
        f"{SACCT}771208|tp1|FAILED|2026-11-18T09:00:00|2026-11-18T09:30:00|2|1:0\n"
        "771209|tp2|TIMEOUT|2026-11-18T09:00:00|2026-11-18T10:00:00|2|0:0\n",
    )
    runs = shown(logs)
    assert {name: (run["status"], run["job_id"], run["num_nodes"]) for name, run in runs.items()} == {
        "tp1": ("crash", "771208", 2),
        "tp2": ("timeout", "771209", 2),
    }


def test_a_job_of_that_number_in_another_tree_is_another(logs: LakeOfLogs) -> None:
    training(logs, "north/sweep/a/tp1", job=771208)
    logs.write("south/sweep/b/out/slurm-771208.out", LATE.format(job=771208))
    assert endings(logs) == {"tp1": "truncated", "out": "timeout"}


def test_an_output_with_steps_of_its_own_is_a_run(logs: LakeOfLogs) -> None:
    training(logs, "tp1", job=771208)
    lines = [f"step={step}/60 | loss={8 - step / 10:.4f} | dt=2.5s\n" for step in range(1, 31)]
    logs.write("slurm-771208.out", "".join(lines) + FAILED.format(job=771208))
    assert len(endings(logs)) == 2


HYDRA = "hydra:\n  job:\n    name: train\n    id: '{job}'\n    num: {num}\n  launcher:\n    nodes: 2\n    gpus_per_node: 8\n"
CONFIG = """model:
  name: tiny-3b
  n_layers: 24
  d_model: 2048
data:
  seq_len: 2048
  global_batch_size: 256
  micro_batch_size: {mbs}
strategy:
  sharding: full_shard
"""


def hydra_sweep(logs: LakeOfLogs, *, stops: dict[int, str]) -> None:
    """Two runs as Hydra's submitit launcher leaves them: all have one seed, and so the same losses.

    `stops` has what stands behind the steps of a run on the standard error of its job; it has no step then.
    """
    for num, mbs in enumerate((2, 4)):
        job = f"440917_{num}"
        logs.write(f"{num}/.hydra/config.yaml", CONFIG.format(mbs=mbs))
        logs.write(f"{num}/.hydra/hydra.yaml", HYDRA.format(job=job, num=num))
        steps = "".join(
            f"[2026-11-19 18:{step:02d}:00,123][__main__][INFO] - step {step} loss {9 - step / 10:.4f} "
            f"lr 3.0e-04 step/s {(0.1 + num / 100):.4f}\n"
            for step in range(1, 31)
            if num not in stops
        )
        begin = "[2026-11-19 18:00:00,123][__main__][INFO] - 3,000,000,000 parameters\n"
        logs.write(f"{num}/train.log", begin + steps)
        start = (
            f"submitit INFO (2026-11-19 18:00:00,000) - Starting with JobEnvironment(job_id={job}, hostname=h{num})\n"
        )
        logs.write(f".submitit/{job}/{job}_0_log.out", start + begin + steps)
        logs.write(f".submitit/{job}/{job}_0_log.err", stops.get(num, "a warning\n"))


def test_a_sweep_of_hydra_and_submitit_is_read_with_what_lies_in_hidden_folders(logs: LakeOfLogs) -> None:
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.95 GiB. GPU 0 has a total capacity of 79.10 GiB"
    hydra_sweep(logs, stops={1: f"Traceback (most recent call last):\n{oom}\n"})
    runs = shown(logs)
    assert set(runs) == {"0", "1"}
    names = ("job_id", "num_gpus", "dp", "mbs", "gas", "seq_len", "zero_stage")
    assert [runs["0"][name] for name in names] == ["440917_0", 16, 16, 2, 8, 2048, 3]
    assert (runs["1"]["job_id"], runs["1"]["mbs"], runs["1"]["status"]) == ("440917_1", 4, "oom")


def test_logs_of_other_jobs_with_the_same_losses_stay_runs(logs: LakeOfLogs) -> None:
    hydra_sweep(logs, stops={})
    runs = shown(logs)
    assert {name: (run["mbs"], run["last_step"]) for name, run in runs.items()} == {"0": (2, 30), "1": (4, 30)}


def test_trainings_of_one_job_and_seed_stay_runs(logs: LakeOfLogs) -> None:
    for mbs in (2, 4):
        training(logs, f"mbs{mbs}", job=771208)
        settings = {"model": {"seq_len": 2048}, "train": {"micro_batch": mbs}, "job": {"slurm_job_id": 771208}}
        logs.write(f"mbs{mbs}/config.resolved.json", json.dumps(settings | ({"dp": 4, "tp": 2} if mbs == 4 else {})))
        logs.write(f"mbs{mbs}/logs/rank_0.log", f"micro batch {mbs}\n" + STEPS)  # equal logs would be copies
    assert {name: run["mbs"] for name, run in shown(logs).items()} == {"mbs2": 2, "mbs4": 4}
