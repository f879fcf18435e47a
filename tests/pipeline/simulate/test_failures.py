"""Each ending leaves the line by which it is known."""

from __future__ import annotations

import random

import pytest

from sweepscope.pipeline.simulate.failures import TAILS, tail
from sweepscope.schemas.vocab import STATUS
from tests.pipeline.simulate.factory import make_run

_SIGNS = {
    ("oom", "torch_1_12"): "RuntimeError: CUDA out of memory. Tried to allocate",
    ("oom", "torch_2_0"): "torch.cuda.OutOfMemoryError: CUDA out of memory.",
    ("oom", "torch_2_5"): "has a total capacity of 79.10 GiB of which",
    ("hang", "watchdog"): "NumelOut=",
    ("hang", "watchdog_old"): "OpType=_ALLGATHER_BASE, Timeout(ms)=600000) ran for",
    ("nccl_error", "system"): "torch.distributed.DistBackendError: NCCL error in:",
    ("crash", "assertion"): "AssertionError: ",
    ("crash", "value"): "ValueError: ",
    ("crash", "segfault"): "exitcode  : -11",
    ("host_oom", "slurm"): "Detected 1 oom_kill event in StepId=410022.0",
    ("timeout", "time_limit"): "DUE TO TIME LIMIT ***",
    ("cancelled", "scancel"): "CANCELLED AT 2026-03-02T08:05:00 ***",
    ("cancelled", "ctrl_c"): "got signal: 2",
    ("cancelled", "sigterm"): "got signal: 15",
    ("node_fail", "slurm"): "DUE TO NODE FAILURE",
    ("preempted", "slurm"): "DUE TO PREEMPTION",
    ("completed", "traceback_after"): "BrokenPipeError",
    ("completed", "time_limit_after"): "DUE TO TIME LIMIT ***",
}
_SILENT = {("completed", ""), ("truncated", "line_end"), ("truncated", "mid_line")}
_ALL = {(status, failure) for status, ways in TAILS.items() for failure in ways}


def _rng() -> random.Random:
    return random.Random(1)  # noqa: S311 - a test, not cryptography


def test_statuses_are_words_of_the_vocabulary() -> None:
    assert set(TAILS) <= set(STATUS)


def test_every_ending_has_a_sign_or_is_silent() -> None:
    assert set(_SIGNS) | _SILENT == _ALL


@pytest.mark.parametrize(("status", "failure"), sorted(_ALL))
def test_the_sign_is_printed(status: str, failure: str) -> None:
    lines = tail(make_run("megatron", status=status, failure=failure), "pretrain_gpt.py", _rng())
    text = "\n".join(line.text for line in lines)
    assert _SIGNS.get((status, failure), "") in text
    assert bool(lines) == ((status, failure) not in _SILENT)


def test_every_failing_rank_of_an_oom_reports_its_own_gpu() -> None:
    lines = tail(make_run("nanotron", status="oom", failure="torch_2_5"), "run_train.py", _rng())
    reports = [line for line in lines if "Tried to allocate" in line.text]
    assert len({line.rank for line in reports}) == len(reports) == 4
    assert all(f"GPU {line.rank % 8} has" in line.text for line in reports)
