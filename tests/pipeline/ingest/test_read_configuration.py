"""Files that are called as configurations are: those with settings of a training, others, and damaged ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipeline.ingest.lake_of_logs import LakeOfLogs

STATES = {"model": {"n_layers": 24, "d_model": 2048}, "data": {"seq_len": 2048}}
SCRIPT = "#!/bin/bash\nset -e\n"


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("config.resolved.json", json.dumps(STATES), "parsed"),
        ("config.json", json.dumps({"version": 1, "loggers": {}}), "skipped"),
        ("config.logging.yaml", "version: 1\nloggers: {}\n", "skipped"),
        (".hydra/hydra.yaml", "hydra:\n  job:\n    id: '12345'\n", "skipped"),
        ("run.sh", f"{SCRIPT}python train.py --seq-len 2048 --micro-batch-size 2\n", "parsed"),
        ("run.sh", f"{SCRIPT}echo begin\n", "skipped"),
        ("config.resolved.json", '{"model": {"n_layers"', "rejected"),
        ("ds_config.json", json.dumps({"version": 1}), "rejected"),
    ],
)
def test_what_states_nothing_of_a_training_is_skipped_and_what_is_damaged_rejected(
    tmp_path: Path, name: str, text: str, status: str
) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write(f"run/{name}", text)
    logs.write("run/train.log", "".join(f"step {step} loss {9 - step / 10:.4f}\n" for step in range(1, 31)))
    logs.ingest()
    files = logs.lake.read("files", ["path", "status"])
    assert dict(files.iter_rows())[str(logs.folder / f"run/{name}")] == status
