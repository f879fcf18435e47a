"""Exit codes that a script keeps beside a log, as evidence of how the run ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.logs.sidecars.exit_code import read_exit_code
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("exit_code", "0\n", "completed"),
        ("exit_code", "1\n", "crash"),
        ("returncode.txt", "124", "timeout"),
        ("exitcode", "143\n", "cancelled"),
    ],
)
def test_a_log_without_an_end_has_that_of_its_exit_code(tmp_path: Path, name: str, text: str, status: str) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write("run/train.log", "".join(f"step {step} loss {9 - step / 10:.4f}\n" for step in range(1, 31)))
    logs.write(f"run/{name}", text)
    logs.ingest()
    assert logs.lake.read("runs", ["status", "status_confidence"]).row(0) == (status, "medium")


def test_what_the_log_says_of_its_end_counts_more(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    steps = "".join(f"step {step} loss {9 - step / 10:.4f}\n" for step in range(1, 31))
    logs.write("run/train.log", f"{steps}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    logs.write("run/exit_code", "0\n")  # of `python train.py | tee train.log`
    logs.ingest()
    assert logs.lake.read("runs", ["status"]).item() == "oom"


@pytest.mark.parametrize("text", ["", "0 1", "ok", "999", "1.5", "-1"])
def test_another_file_of_such_a_name_is_no_exit_code(text: str) -> None:
    with pytest.raises(ValueError, match="no exit code"):
        read_exit_code(text)
