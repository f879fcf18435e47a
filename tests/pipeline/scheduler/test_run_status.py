"""The log's word and the scheduler's: which of them counts, and how sure that is."""

from __future__ import annotations

import polars as pl
import pytest

from sweepscope.pipeline.scheduler import run_status
from sweepscope.pipeline.scheduler.match_jobs import PAIRS
from sweepscope.schemas.tables.runs import RUNS
from sweepscope.schemas.vocab import STATUS
from sweepscope.schemas.vocab.scheduler import JOB_STATE


def decided(
    status: str, state: str, *, sure: str = "high", last_step: int | None = 4, planned: int | None = None, **job: object
) -> tuple[str, str, str]:
    run = {
        "run_id": "a",
        "status": status,
        "status_confidence": sure,
        "status_evidence": "the log's line",
        "last_step": last_step,
        "steps_planned": planned,
    }
    pair = {"run_id": "a", "job_id": "17", "job_state": state, "is_last": True, "exit_code": 0, "exit_signal": 0, **job}
    runs = RUNS.conform(pl.DataFrame([run]))
    pairs = pl.DataFrame([{name: pair.get(name) for name in PAIRS}], schema=PAIRS)
    done = run_status.combine_status(runs, pairs)
    assert done.columns == runs.columns
    row = done.row(0, named=True)
    return row["status"], row["status_confidence"], row["status_evidence"]


@pytest.mark.parametrize(
    ("state", "word", "sure"),
    [
        ("timeout", "timeout", "high"),
        ("deadline", "timeout", "high"),
        ("out_of_memory", "host_oom", "high"),
        ("node_fail", "node_fail", "high"),
        ("boot_fail", "node_fail", "high"),
        ("preempted", "preempted", "high"),
        ("requeued", "preempted", "high"),
        ("cancelled", "cancelled", "high"),
        ("failed", "crash", "medium"),
        ("completed", "completed", "medium"),
    ],
)
@pytest.mark.parametrize("status", ["truncated", "unknown", "running"])
def test_a_log_without_an_end_takes_the_schedulers_word(status: str, state: str, word: str, sure: str) -> None:
    assert decided(status, state, sure="low")[:2] == (word, sure)


@pytest.mark.parametrize("state", list(JOB_STATE))
def test_nothing_undoes_a_completed_run(state: str) -> None:
    assert decided("completed", state) == ("completed", "high", "the log's line")


@pytest.mark.parametrize("status", ["hang", "nccl_error", "crash", "oom"])
@pytest.mark.parametrize("state", ["timeout", "cancelled", "failed", "completed", "preempted"])
def test_what_went_wrong_before_the_job_was_stopped_is_the_cause(status: str, state: str) -> None:
    assert decided(status, state)[0] == status


@pytest.mark.parametrize("status", ["hang", "nccl_error", "crash", "truncated", "cancelled", "timeout"])
def test_a_failed_node_and_host_memory_explain_what_the_log_shows(status: str) -> None:
    assert decided(status, "node_fail")[0] == "node_fail"
    assert decided(status, "out_of_memory")[0] == "host_oom"


def test_gpu_memory_stays_the_cause() -> None:
    assert decided("oom", "out_of_memory")[0] == "oom"


def test_processes_that_died_without_a_reason_died_of_the_limit() -> None:
    assert decided("crash", "timeout", sure="medium")[:2] == ("timeout", "high")
    assert decided("cancelled", "timeout")[0] == "timeout"
    assert decided("cancelled", "preempted")[0] == "preempted"


def test_exit_code_0_completes_no_run_that_fell_short_of_its_plan() -> None:
    word, sure, why = decided("truncated", "completed", sure="low", last_step=50, planned=100)
    assert (word, sure) == ("truncated", "low")
    assert why == "the log's line; the scheduler reports job 17 as COMPLETED, exit code 0:0"
    assert decided("unknown", "completed", last_step=None)[0] == "unknown"


def test_a_step_that_ran_out_of_memory_is_not_undone_by_the_scripts_exit_code_0() -> None:
    word, _, why = decided("truncated", "completed", step_state="out_of_memory", step_exit="0:125")
    assert word == "host_oom"
    assert why == "the scheduler reports job 17 as COMPLETED, exit code 0:0, a step OUT_OF_MEMORY"
    assert decided("truncated", "completed", step_state="failed", step_exit="1:0")[0] == "crash"


@pytest.mark.parametrize(
    ("code", "signal", "word"), [(143, 0, "cancelled"), (0, 15, "cancelled"), (1, 0, "crash"), (0, 9, "crash")]
)
def test_a_job_that_failed_by_sigterm_was_asked_to_stop(code: int, signal: int, word: str) -> None:
    assert decided("truncated", "failed", exit_code=code, exit_signal=signal)[0] == word


@pytest.mark.parametrize("state", ["running", "pending", "suspended", "unknown", None])
def test_a_job_without_an_end_says_nothing_on_it(state: str | None) -> None:
    assert decided("truncated", state, sure="low")[:2] == ("truncated", "low")  # type: ignore[arg-type]


def test_an_attempt_before_the_jobs_last_keeps_its_own_word() -> None:
    assert decided("truncated", "timeout", is_last=False) == ("truncated", "high", "the log's line")


def test_two_consistent_signs_are_surer_than_one() -> None:
    assert decided("timeout", "timeout", sure="low")[:2] == ("timeout", "medium")


def test_every_word_is_in_the_vocabulary() -> None:
    assert set(run_status.STATUS_OF_STATE) <= set(JOB_STATE)
    assert set(run_status.STATUS_OF_STATE.values()) <= set(STATUS)
