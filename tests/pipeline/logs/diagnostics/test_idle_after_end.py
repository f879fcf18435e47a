"""Runs that were done and held their GPUs: whole logs, for the end of a run is weighed from all its lines."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import polars as pl
import pytest

from sweepscope.pipeline.logs.diagnostics.idle_after_end import held_by_job
from tests.pipeline.ingest_in_memory import tables_of


def steps(last: int, planned: int = 10, hour: int = 4) -> str:
    """A Megatron run, a step a second, on 64 GPUs."""
    head = (
        "using world size: 64, data-parallel size: 64, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n"
    )
    return head + "".join(
        f" [2025-02-03 {hour:02d}:05:{number:02d}] iteration {number:8d}/{planned:8d} | consumed samples: {256 * number:12d} | "
        "elapsed time per iteration (ms): 812.5 | learning rate: 2.500000E-05 | global batch size:   256 | "
        "lm loss: 9.125000E+00 | loss scale: 1.0 | grad norm: 3.250 | number of skipped iterations:   0 | "
        "number of nan iterations:   0 |\n"
        for number in range(1, last + 1)
    )


DONE = steps(10)
LIMIT = "slurmstepd: error: *** JOB 1999616 ON r6i4n5 CANCELLED AT 2025-02-03T{} DUE TO TIME LIMIT ***\n"
SCANCEL = "slurmstepd: error: *** JOB 1999616 ON r6i4n5 CANCELLED AT 2025-02-03T{} ***\n"
WATCHDOG = (
    "[rank5]:[E203 {} ProcessGroupNCCL.cpp:616] [Rank 5] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1205, OpType=BARRIER, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600033 milliseconds\n"
)
SAID = "[after training is done] datetime: 2025-02-03 04:50:10 \n"

CASES = {
    "time limit": (
        DONE + LIMIT.format("06:30:20"),
        "GPUs were held for 145.2 min after the last step 10 (154.8 GPU-hours on 64 GPUs), until the scheduler's time limit",
    ),
    "scancel": (
        DONE + SCANCEL.format("04:25:10"),
        "GPUs were held for 20.0 min after the last step 10 (21.3 GPU-hours on 64 GPUs), until a cancellation",
    ),
    "from the trainer's own last word on": (
        DONE + SAID + LIMIT.format("06:30:10"),
        "GPUs were held for 100.0 min after the last step 10 (106.7 GPU-hours on 64 GPUs), until the scheduler's time limit",
    ),
    "a watchdog says how long it waited": (
        DONE + WATCHDOG.format("??:??:??"),
        "GPUs were held for at least 10.0 min after the last step 10 (10.7 GPU-hours on 64 GPUs), until a collective's watchdog",
    ),
    "a watchdog with its clock": (
        DONE + WATCHDOG.replace("E203", "E0203").format("04:35:10.123456"),
        "GPUs were held for 30.0 min after the last step 10 (32.0 GPU-hours on 64 GPUs), until a collective's watchdog",
    ),
    "whole hours may be another time zone": (
        DONE + LIMIT.format("06:05:40"),
        "GPUs were held for 120.5 min after the last step 10 (128.5 GPU-hours on 64 GPUs), until the scheduler's time limit; a whole number of hours may be the difference of two time zones",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_completed_run_that_was_ended_long_after(case: str) -> None:
    log, text = CASES[case]
    tables = tables_of({"train.log": log})
    found = tables["events"].filter(kind="held_after_end")
    assert found.select("line_no", "text").rows() == [(log.count("\n"), text)]
    assert tables["runs"].select("status", "status_confidence").rows() == [("completed", "high")]
    minutes = float(re.search(r"held for (?:at least )?([0-9.]+) min", text)[1])
    assert tables["runs"]["held_after_end_s"].to_list() == [pytest.approx(60 * minutes, abs=3)]


def test_the_scheduler_speaks_in_a_file_of_its_own() -> None:
    tables = tables_of({"r/train.out": DONE, "r/train.err": LIMIT.format("06:30:20")})
    found = tables["events"].filter(kind="held_after_end")
    assert found.select("source_path", "line_no").rows() == [("r/train.err", 1)]
    assert tables["runs"]["status"].to_list() == ["completed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "log",
    [
        DONE,
        DONE + SAID,
        DONE + LIMIT.format("04:08:00"),  # three minutes: the last checkpoint
        DONE + "Traceback (most recent call last):\nRuntimeError: wandb is down\n",
        steps(4) + LIMIT.format("08:30:20"),  # not completed: that is a time limit
    ],
    ids=["ends", "says so", "soon", "traceback", "not completed"],
)
def test_nothing_was_held(log: str) -> None:
    tables = tables_of({"train.log": log})
    assert tables["events"].filter(kind="held_after_end").is_empty()
    assert tables["runs"]["held_after_end_s"].to_list() == [None]


END = datetime(2025, 2, 3, 4, 5, 10)


def run_with_job(state: str, after_s: float, **changes: object) -> pl.DataFrame:
    """A completed run with its job, which ended that long after the log's last line."""
    row = {
        "run_id": "a",
        "status": "completed",
        "ended_at": END,
        "num_gpus": 64,
        "is_last": True,
        "job_state": state,
        "ended_at_job": END + timedelta(seconds=after_s),
        "source_path_job": "sacct.txt",
        "line_no_job": 7,
        **changes,
    }
    return pl.DataFrame([row])


def test_a_job_that_outlived_its_completed_run() -> None:
    found, held = held_by_job(run_with_job("timeout", 5400 + 300))
    assert held.rows() == [("a", 5700.0)]
    assert found.select("run_id", "source_path", "line_no", "ts", "kind", "text").rows() == [
        (
            "a",
            "sacct.txt",
            7,
            END + timedelta(seconds=5700),
            "held_after_end",
            "GPUs were held for 95.0 min after the log's last line (101.3 GPU-hours on 64 GPUs), until the end of the job, "
            "whose state is timeout",
        )
    ]


@pytest.mark.parametrize(
    "job",
    [
        run_with_job("timeout", 60),
        run_with_job("completed", 1200),  # a last evaluation
        run_with_job("timeout", 5700, status="timeout"),
        run_with_job("timeout", 5700, is_last=False),
        run_with_job("running", 0.0, ended_at_job=None).cast({"ended_at_job": pl.Datetime("us")}),
    ],
    ids=["soon", "afterwards", "not completed", "another attempt followed", "runs on"],
)
def test_a_job_that_did_not(job: pl.DataFrame) -> None:
    found, held = held_by_job(job)
    assert found.is_empty()
    assert held.is_empty()


def test_a_completed_job_counts_from_half_an_hour_on() -> None:
    assert held_by_job(run_with_job("completed", 2000))[1].height == 1
