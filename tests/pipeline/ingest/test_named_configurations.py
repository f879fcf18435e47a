"""Configurations that the command in a log names: those in a folder of their own are of the runs that name them."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from tests.pipeline.ingest.lake_of_logs import LakeOfLogs

STEPS = "".join(f"step {step} | loss {9 - step / 10:.4f} | {1000 + step % 3} ms\n" for step in range(1, 31))


def config(tp: int) -> str:
    return f"parallel:\n  tp: {tp}\n  pp: 1\ntrain:\n  micro_batch_size: 2\n  seq_len: 4096\n"


def log(name: str, options: str = "") -> str:
    return f"+ srun --nodes=2 --ntasks-per-node=8 python train.py --config {name} {options}\n{STEPS}"


@pytest.fixture
def logs(tmp_path: Path) -> LakeOfLogs:
    return LakeOfLogs(tmp_path)


def degrees(logs: LakeOfLogs) -> list[int | None]:
    return logs.lake.read("runs").sort("source_path")["tp"].to_list()


@pytest.mark.parametrize("prefix", ["configs/", "./configs/", "/scratch/somebody/configs/", "../configs/"])
def test_each_log_gets_the_configuration_that_it_names(logs: LakeOfLogs, prefix: str) -> None:
    for tp in (1, 2, 4):
        logs.write(f"sweep/configs/exp_{tp}.yaml", config(tp))
        logs.write(f"sweep/logs/train_{tp}.out", log(f"{prefix}exp_{tp}.yaml"))
    logs.ingest()
    assert degrees(logs) == [1, 2, 4]
    runs = logs.lake.read("runs")
    assert set(runs["num_gpus"]) == {16}
    settings = logs.lake.read("settings").filter(name="tp")
    assert set(settings["setting_source"]) == {"named_config"}
    assert all(path.endswith(".yaml") for path in settings["source_path"])
    files = logs.lake.read("files", ["path", "kind", "status"])
    assert set(files.filter(pl.col("path").str.ends_with(".yaml")).select("kind", "status").rows()) == {
        ("config", "parsed")
    }


def test_options_of_the_command_overrule_it(logs: LakeOfLogs) -> None:
    logs.write("sweep/configs/base.yaml", config(1))
    logs.write("sweep/logs/a.out", log("configs/base.yaml", "--tp 8"))
    logs.write("sweep/logs/b.out", log("configs/base.yaml"))
    logs.ingest()
    assert degrees(logs) == [8, 1]


def test_a_configuration_that_was_edited_for_a_later_run_says_nothing_of_the_earlier(logs: LakeOfLogs) -> None:
    early = logs.write("sweep/logs/a.out", log("config/run_me.yaml", "--lr 1e-4"))
    edited = logs.write("sweep/config/run_me.yaml", config(4))
    late = logs.write("sweep/logs/b.out", log("config/run_me.yaml"))
    for path, day in ((early, 1), (edited, 2), (late, 3)):
        os.utime(path, (86_400 * day + 1.8e9,) * 2)
    logs.ingest()
    assert degrees(logs) == [None, 4]


def test_a_configuration_beside_the_log_is_surer(logs: LakeOfLogs) -> None:
    logs.write("sweep/configs/exp.yaml", config(1))
    logs.write("sweep/run/config.yaml", config(2))
    logs.write("sweep/run/train.log", log("configs/exp.yaml"))
    logs.ingest()
    assert degrees(logs) == [2]


def test_what_is_not_there_or_cannot_be_read_is_left_alone(logs: LakeOfLogs) -> None:
    logs.write("sweep/configs/broken.yaml", b"\xff\xfe\x00a: [")
    logs.write("sweep/logs/a.out", log("configs/broken.yaml"))
    logs.write("sweep/logs/b.out", log("configs/gone.yaml"))
    logs.ingest()
    assert degrees(logs) == [None, None]
