"""Trackers beside a sweep: real files of W&B, TensorBoard and MLflow in folders of their own, and logs that state nothing."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect, current
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs

RECORDED = Path(__file__).parents[2] / "trackers"
MLFLOW_LOSSES = {name: [9.0 / step + len(name) for step in range(1, 13)] for name in ("tp2", "tp4", "tp8")}


def log_of(losses: list[float]) -> str:
    return "".join(f"step {step} loss {loss:.6f}\n" for step, loss in enumerate(losses, 1))


@pytest.fixture
def logs(tmp_path: Path) -> LakeOfLogs:
    return LakeOfLogs(tmp_path)


def put(logs: LakeOfLogs, recorded: str, name: str) -> None:
    logs.write(name, b"")
    shutil.copyfile(RECORDED / recorded, logs.folder / name)
    logs.touch(name)


def shown(logs: LakeOfLogs) -> dict[str, dict[str, Any]]:
    """Rows of `runs` of logs, by the name of the log."""
    home = Home.resolve(str(logs.path / "home"))
    publish(home)
    with connect(current(home.path)) as store:
        rows = store.sql("SELECT * FROM runs WHERE duplicate_of IS NULL ORDER BY source_path").pl().to_dicts()
    return {row["source_path"].rpartition("/")[2]: row for row in rows}


@pytest.mark.parametrize("is_log_first", [True, False])
def test_a_run_of_wandb_lends_its_layout_rates_and_ending(logs: LakeOfLogs, *, is_log_first: bool) -> None:
    wandb = "wandb/offline-run-20260101_000000-abc/run-abc.wandb"
    writes: list[Callable[[], object]] = [
        lambda: logs.write("logs/train_1.log", log_of([10.0 - step / 4 for step in range(1, 13)])),
        lambda: put(logs, "run-picotron.wandb", wandb),
    ]
    for write in writes if is_log_first else reversed(writes):
        write()
        logs.ingest()
    (run,) = shown(logs).values()
    assert (run["source_path"].rpartition("/")[2], run["tp"], run["pp"]) == ("train_1.log", 4, 2)
    assert (run["tokens_per_s"], run["status"]) == (20007.5, "completed")


def test_event_files_beside_the_sweep_lend_rates(logs: LakeOfLogs) -> None:
    logs.write("logs/train_1.log", log_of([8.0 / step for step in range(1, 13)]))
    put(logs, "events.out.tfevents.torchtitan", "runs/Jan01_host/events.out.tfevents.1790000000.host.1.0")
    logs.ingest()
    (run,) = shown(logs).values()
    assert (run["source_path"].rpartition("/")[2], run["step_time_s"]) == ("train_1.log", 0.75)
    assert run["mem_peak_reserved_bytes"] == 60.5 * 2**30


def test_runs_of_one_seed_in_a_database_go_to_the_logs_that_are_named_as_they_are(logs: LakeOfLogs) -> None:
    assert len({tuple(losses) for losses in MLFLOW_LOSSES.values()}) == 1
    for name, losses in MLFLOW_LOSSES.items():
        logs.write(f"logs/{name}.log", f"layout of {name}\n{log_of(losses)}")  # equal logs would be copies
    logs.write("mlruns/mlflow.db", gzip.decompress((RECORDED / "stores" / "sweep.db.gz").read_bytes()))
    logs.ingest()
    found = shown(logs)
    assert {name: (run["tp"], run["dp"], run["num_gpus"]) for name, run in found.items()} == {
        "tp2.log": (2, 4, 8),
        "tp4.log": (4, 2, 8),
        "tp8.log": (8, 1, 8),
    }
