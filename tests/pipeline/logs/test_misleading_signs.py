"""Words that say one thing and mean another: picotron's status files, exit codes of 0, summaries of other failures."""

from __future__ import annotations

import json

import pytest

from tests.pipeline.ingest_in_memory import tables_of

CONFIG = json.dumps(
    {
        "distributed": {"tp_size": 1, "cp_size": 1, "pp_size": 1, "dp_size": 4},
        "model": {"name": "tests/tiny"},
        "training": {"total_train_steps": 6, "seq_length": 128, "micro_batch_size": 2},
    }
)
STEP = (
    "[default0]:[rank 0] Step: {:<5d} | Loss: 8.1250 | Global batch size:   1.02K | Tokens/s: 8000.00 | Tokens/s/GPU: "
    "2000.00 | Tokens: {}.02K | MFU:  0.01% | Memory usage:   1.75GB\n"
)
SOME = "".join(STEP.format(step, step) for step in range(1, 4))
ALL = "".join(STEP.format(step, step) for step in range(1, 7))
ILLEGAL = "[rank2]: RuntimeError: CUDA error: an illegal memory access was encountered\n"
WATCHDOGS_ILLEGAL = (
    "[rank2]:[E1014 12:00:00.123 ProcessGroupNCCL.cpp:1515] [PG 0 Rank 2] Process group watchdog thread terminated with "
    "exception: CUDA error: an illegal memory access was encountered\n"
)
OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.90 GiB. GPU 3 has a total capacity of\n"
WATCHDOG = (
    "[rank5]:[E1014 12:00:00.123 ProcessGroupNCCL.cpp:616] [Rank 5] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1205, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600033 milliseconds\n"
)
ABORT = "terminate called after throwing an instance of 'c10::DistBackendError'\n"
CHILD = (
    "E1014 12:00:01.000000 140 torch/distributed/elastic/multiprocessing/api.py:833] failed (exitcode: -6) local_rank: 3 "
    "(pid: 4711) of binary: /opt/env/bin/python\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
)
LIMIT = "slurmstepd: error: *** JOB 19 ON n1 CANCELLED AT 2021-05-27T21:42:11 DUE TO TIME LIMIT ***\n"
HOST_OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId=17.0. Some of the step tasks have been OOM Killed.\n"
EXIT_0 = "job finished, exit code 0\nprocess 140 exited with code 0\n"

CASES = {
    "picotron's oom is an illegal access": ("oom", SOME + ILLEGAL + CHILD, "crash"),
    "of which only the watchdog tells": ("oom", SOME + WATCHDOGS_ILLEGAL, "crash"),
    "picotron's oom is one": ("oom", SOME + OOM + CHILD, "oom"),
    "picotron's oom came after the last step": ("oom", ALL + OOM, "completed"),
    "picotron's timeout is a hang": ("timeout", SOME + WATCHDOG + ABORT + CHILD, "hang"),
    "picotron's timeout is the scheduler's": ("timeout", SOME + LIMIT, "timeout"),
    "picotron's fail is a hang": ("fail", SOME + WATCHDOG + CHILD, "hang"),
    "picotron's fail is out of memory": ("fail", SOME + OOM + CHILD, "oom"),
    "picotron's completed is not": ("completed", SOME + OOM + EXIT_0, "oom"),
    "picotron's running was killed": ("running", SOME + LIMIT, "timeout"),
    "exit 0 after the GPU's memory ran out": ("completed", SOME + OOM + EXIT_0, "oom"),
    "exit 0 after the host's memory ran out": ("completed", SOME + HOST_OOM + EXIT_0, "host_oom"),
    "the host's memory ran out in a worker beside": ("completed", ALL + HOST_OOM + EXIT_0, "completed"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_log_tells(case: str) -> None:
    word, log, status = CASES[case]
    tables = tables_of({"r/config.json": CONFIG, "r/status.txt": word, "r/log_1001.out": log})
    assert tables["runs"]["status"].to_list() == [status], tables["runs"]["status_evidence"][0]


def test_a_watchdogs_end_shows_as_a_hang_with_all_its_echoes_as_evidence() -> None:
    tables = tables_of({"a.log": SOME + WATCHDOG + ABORT + CHILD})
    assert tables["runs"].select("status", "status_confidence").rows() == [("hang", "high")]
    assert set(tables["events"]["kind"]) >= {"hang", "exception", "child_failed"}
