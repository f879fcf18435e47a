"""How a run ended, from the lines of whole logs: each case is a log, and the word and certainty it deserves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from sweepscope.pipeline.logs.runs import outcome
from sweepscope.schemas.thresholds import STALE_AFTER
from sweepscope.schemas.vocab import CONFIDENCE, EVENT_KIND, STATUS
from tests.pipeline.ingest_in_memory import run_of, runs_of, tables_of


def step(number: int, planned: int = 10) -> str:
    """A Megatron step line, which names the last step of the run."""
    return (
        f" [2025-02-03 04:05:{number:02d}] iteration {number:8d}/{planned:8d} | consumed samples: {256 * number:12d} | "
        "elapsed time per iteration (ms): 812.5 | learning rate: 2.500000E-05 | global batch size:   256 | "
        "lm loss: 9.125000E+00 | loss scale: 1.0 | grad norm: 3.250 | number of skipped iterations:   0 | "
        "number of nan iterations:   0 |"
    )


def steps(first: int, last: int, planned: int = 10) -> str:
    return "\n".join(step(number, planned) for number in range(first, last + 1))


SOME = steps(1, 4)
OOM = (
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.90 GiB. GPU 3 has a total capacity of "
    "79.35 GiB of which 1.90 GiB is free."
)
OLD_OOM = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 6; 79.15 GiB total capacity; 1 GiB free)"
HIP_OOM = "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 191 GiB"
HANG = (
    "[rank5]:[E1014 12:00:00.123 ProcessGroupNCCL.cpp:616] [Rank 5] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1205, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600033 milliseconds"
)
NCCL = "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error"
REMOTE = "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely."
TRACE = '[rank2]: Traceback (most recent call last):\n[rank2]:   File "pretrain_gpt.py", line 9, in <module>'
RAISED = f"{TRACE}\n[rank2]: ValueError: sequence length 4097 is not divisible by 8"
CHILD = (
    "E1014 12:00:01.000000 140 torch/distributed/elastic/multiprocessing/api.py:833] failed (exitcode: 1) "
    "local_rank: 3 (pid: 4711) of binary: /opt/env/bin/python\n"
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"
)
SIGTERM = (
    "W1014 12:00:02.000000 140 torch/distributed/elastic/agent/server/api.py:704] Received Signals.SIGTERM death "
    "signal, shutting down workers"
)
ABORTED = "torch.distributed.elastic.multiprocessing.api.SignalException: Process 140 got signal: 15"
EXIT = "srun: error: node-3: task 3: Exited with exit code 1"
KILLED = "traceback : Signal 9 (SIGKILL) received by PID 4711"
LIMIT = "slurmstepd: error: *** STEP 1999616.0 ON r6i4n5 CANCELLED AT 2021-05-27T21:42:11 DUE TO TIME LIMIT ***"
SCANCEL = "slurmstepd: error: *** JOB 1999616 ON r6i4n5 CANCELLED AT 2021-05-27T21:42:11 ***"
CLEANUP = "slurmstepd: error: *** STEP 1999616.0 ON r6i4n5 CANCELLED AT 2021-05-27T21:42:11 ***"
NODE = "slurmstepd: error: *** JOB 17 ON n1 CANCELLED AT 2021-05-27T21:42:11 DUE TO NODE FAILURE, SEE SLURMCTLD LOG ***"
PREEMPTED = "slurmstepd: error: *** JOB 17 ON n1 CANCELLED AT 2021-05-27T21:42:11 DUE TO PREEMPTION ***"
HOST_OOM = (
    "slurmstepd: error: Detected 1 oom_kill event in StepId=1999616.0. Some of the step tasks have been OOM Killed."
)
TERMINATE = "terminate called after throwing an instance of 'std::runtime_error'"
RESET = "[rank1]: torch.distributed.DistNetworkError: Connection reset by peer"
TASK_FAILURE = "slurmstepd: error: *** STEP 17.0 ON n1 CANCELLED AT 2026-04-29T23:36:37 DUE TO TASK FAILURE ***"
ENDED = "srun: error: n1: tasks 0-57,59-63: Terminated"
CTRL_C = "[rank0]: KeyboardInterrupt"
DONE = "[after training is done] datetime: 2025-02-03 04:10:00"

# Words of failure in text that says nothing of the kind.
DUMP = """------------------------ arguments ------------------------
  distributed_timeout_minutes ..................... 10
  check_for_nan_in_loss_and_grad .................. True
  error_injection_rate ............................ 0
  oom_observer .................................... out of memory hooks are off
  exit_signal_handler ............................. SIGTERM
  train_iters ..................................... 10
-------------------- end of arguments ---------------------
Synchronizing and adjusting timeout to 0:10:00
NCCL_ASYNC_ERROR_HANDLING=1 TORCH_NCCL_ENABLE_MONITORING=0
Error handling: retry on OutOfMemory is disabled; Watchdog enabled
will stop on KeyboardInterrupt or SIGINT, and checkpoint on Received signal
INFO no ChildFailedError will be raised when the exit code is 0; exited with code 0
"""

CASES: dict[str, tuple[str, str, str]] = {
    "last step reached": (steps(1, 10), "completed", "high"),
    "trainer says so before the last step": (f"{SOME}\n{DONE}", "completed", "high"),
    "traceback after the last step": (f"{steps(1, 10)}\n{RAISED}\n{CHILD}", "completed", "high"),
    "time limit after the last step": (f"{steps(1, 10)}\n{LIMIT}", "completed", "high"),
    "traceback after the trainer's last word": (f"{SOME}\n{DONE}\n{RAISED}", "completed", "high"),
    "gpu out of memory": (f"{SOME}\n{TRACE}\n{OOM}\n{CHILD}", "oom", "high"),
    "gpu out of memory, torch 1": (f"{SOME}\n{TRACE}\n{OLD_OOM}\n{EXIT}", "oom", "high"),
    "gpu out of memory on rocm": (f"{SOME}\n{HIP_OOM}", "oom", "high"),
    "gpu out of memory before any step": (f"{DUMP}{OOM}", "oom", "high"),
    "one rank out of memory, the others hang": (f"{SOME}\n{OOM}\n{HANG}\n{CHILD}", "oom", "high"),
    "the out-of-memory rank's output arrives late": (f"{SOME}\n{HANG}\n{REMOTE}\n{OOM}", "oom", "high"),
    "out of memory just before another rank's last step": (f"{steps(1, 3)}\n{OOM}\n{step(4)}\n{CHILD}", "oom", "high"),
    "out of memory that training survived": (f"{step(1)}\n{OOM}\n{steps(2, 7)}", "truncated", "low"),
    "survived, then a time limit": (f"{step(1)}\n{OOM}\n{steps(2, 7)}\n{LIMIT}", "timeout", "high"),
    "steps flushed behind the traceback": (f"{step(1)}\n{OOM}\n{steps(2, 7)}\n{CHILD}", "oom", "low"),
    "watchdog then torchrun's summary": (f"{SOME}\n{HANG}\n{CHILD}", "hang", "high"),
    "watchdog then its own abort": (f"{SOME}\n{HANG}\n{NCCL}\n{REMOTE}\n{KILLED}", "hang", "high"),
    "nccl error": (f"{SOME}\n{TRACE}\n[rank2]: {NCCL}\n{CHILD}", "nccl_error", "high"),
    "nccl's own result line": (f"{SOME}\n{REMOTE}", "nccl_error", "high"),
    "exception": (f"{SOME}\n{RAISED}\n{CHILD}", "crash", "high"),
    "exception then sigterm to the others": (f"{SOME}\n{RAISED}\n{SIGTERM}\n{ABORTED}", "crash", "high"),
    "exception, then hanging until the time limit": (f"{SOME}\n{RAISED}\n{LIMIT}", "crash", "high"),
    "exception of one rank, the others hang": (f"{SOME}\n{RAISED}\n{HANG}\n{CHILD}", "crash", "medium"),
    "exception of one rank, the others lose it": (f"{SOME}\n{RAISED}\n{NCCL}\n{REMOTE}", "crash", "medium"),
    "the watchdog's exception in two lines": (f"{SOME}\n{TERMINATE}\n  what():  {HANG}", "hang", "high"),
    "a rank that lost the store, after an exception": (f"{SOME}\n{RESET}\n{RAISED}", "crash", "high"),
    "a rank that lost the store": (f"{SOME}\n{RESET}\n{CHILD}", "nccl_error", "medium"),
    "a task failed and slurm ends the step": (f"{SOME}\n{TASK_FAILURE}\n{ENDED}", "crash", "medium"),
    "exception that training survived": (f"{step(1)}\n{RAISED}\n{steps(2, 6)}", "truncated", "low"),
    "an exception that is caught time and again": (
        f"{step(1)}\n{RAISED}\n{steps(2, 6)}\n{RAISED.replace('4097', '512')}",
        "truncated",
        "low",
    ),
    "another exception than the one that was caught": (
        f"{step(1)}\n{RAISED}\n{steps(2, 6)}\n{RAISED.replace('sequence length', 'batch size')}",
        "crash",
        "high",
    ),
    "a worker dies of the exception that was caught before": (
        f"{step(1)}\n{RAISED}\n{steps(2, 6)}\n{RAISED}\n{CHILD}",
        "crash",
        "medium",
    ),
    "slurm time limit": (f"{SOME}\n{LIMIT}\n{SIGTERM}\n{ABORTED}", "timeout", "high"),
    "exceptions as the time limit ends the ranks": (f"{SOME}\n{LIMIT}\n{RAISED}\n{NCCL}", "timeout", "high"),
    "scancel": (f"{SOME}\n{SCANCEL}\n{SIGTERM}\n{EXIT}", "cancelled", "high"),
    "slurm cleans up after a failed task": (f"{SOME}\n{EXIT}\n{CLEANUP}", "crash", "medium"),
    "node failure": (f"{SOME}\n{NODE}", "node_fail", "high"),
    "node failure seen first as a network error": (f"{SOME}\n{REMOTE}\n{HANG}\n{NODE}", "node_fail", "high"),
    "preemption": (f"{SOME}\n{PREEMPTED}\n{SIGTERM}", "preempted", "high"),
    "ctrl-c": (f"{SOME}\n{TRACE}\n{CTRL_C}", "cancelled", "high"),
    "ctrl-c and what it interrupts": (f"{SOME}\n{CTRL_C}\n{RAISED}", "cancelled", "high"),
    "sigterm and nothing else": (f"{SOME}\n{SIGTERM}\n{ABORTED}", "cancelled", "medium"),
    "host out of memory": (f"{SOME}\n{KILLED}\n{EXIT}\n{HOST_OOM}", "host_oom", "high"),
    "host out of memory behind slurm's cleanup": (f"{SOME}\n{CLEANUP}\n{HOST_OOM}", "host_oom", "high"),
    "exit code only": (f"{SOME}\n{EXIT}", "crash", "medium"),
    "sigkill only": (f"{SOME}\n{KILLED}", "crash", "low"),
    "segmentation fault": (f"{SOME}\n!!! Segfault\nFatal Python error: Segmentation fault", "crash", "high"),
    "the log stops": (SOME, "truncated", "low"),
    "the log stops within a line": (f"{SOME}\n{step(5)[:60]}", "truncated", "low"),
    "the log stops before the first step": (DUMP, "truncated", "low"),
    "words of failure in a dump": (
        f"{DUMP}{steps(1, 4)}\n{DUMP.replace('- arguments -', '- again -')}",
        "truncated",
        "low",
    ),
}


def test_every_log_has_its_word() -> None:
    runs = runs_of([text for text, _, _ in CASES.values()])
    found = {case: (run["status"], run["status_confidence"]) for case, run in zip(CASES, runs, strict=True)}
    assert found == {case: (status, confidence) for case, (_, status, confidence) in CASES.items()}


@pytest.mark.parametrize(("line_feed", "end"), [("\n", "\n"), ("\r\n", "")])
def test_the_word_stands_with_a_last_line_feed_and_with_windows_line_ends(line_feed: str, end: str) -> None:
    runs = runs_of([text.replace("\n", line_feed) + end for text, _, _ in CASES.values()])
    found = {case: run["status"] for case, run in zip(CASES, runs, strict=True)}
    assert found == {case: status for case, (_, status, _) in CASES.items()}


def test_the_evidence_is_the_line_itself() -> None:
    assert run_of(f"{SOME}\n{TRACE}\n{OOM}")["status_evidence"] == OOM.removeprefix("[rank3]: ")


def test_a_dump_yields_no_evidence_at_all() -> None:
    kinds = set(tables_of({"train.log": DUMP})["events"]["kind"])
    assert kinds <= {"launch"}


def test_every_word_is_in_the_vocabulary() -> None:
    assert {status for _, status, _ in CASES.values()} <= set(STATUS)
    assert {confidence for _, _, confidence in CASES.values()} <= set(CONFIDENCE)
    assert set(outcome._STATUS) <= set(EVENT_KIND)
    assert {*outcome._STATUS.values(), *outcome._STATUS_FILE.values()} <= set(STATUS)


class TestSeveralFiles:
    def test_stderr_explains_what_stdout_does_not(self) -> None:
        runs = tables_of({"a/train.out": SOME, "a/train.err": f"{TRACE}\n{OOM}"})["runs"]
        assert runs.select("status", "source_path").rows() == [("oom", "a/train.out")]

    def test_out_of_memory_in_stderr_beats_the_watchdog_in_stdout(self) -> None:
        runs = tables_of({"a/train.out": f"{SOME}\n{HANG}", "a/train.err": OOM})["runs"]
        assert runs["status"].to_list() == ["oom"]

    def test_the_schedulers_word_beats_a_network_error_in_the_other_file(self) -> None:
        runs = tables_of({"a/train.out": f"{SOME}\n{REMOTE}", "a/train.err": LIMIT})["runs"]
        assert runs["status"].to_list() == ["timeout"]


class TestFreshness:
    def test_a_fresh_log_without_an_end_is_running(self) -> None:
        now = datetime.now(UTC).replace(tzinfo=None)
        run = run_of(SOME.replace("2025-02-03", f"{now:%Y-%m-%d}"), now=now)
        assert (run["status"], run["status_confidence"]) == ("running", "medium")

    def test_a_fresh_copy_of_an_old_log_was_cut_off(self) -> None:
        assert run_of(SOME, now=datetime.now(UTC).replace(tzinfo=None))["status"] == "truncated"

    def test_a_fresh_log_with_an_end_has_ended(self) -> None:
        assert run_of(f"{SOME}\n{OOM}", now=datetime.now(UTC).replace(tzinfo=None))["status"] == "oom"

    def test_a_fresh_log_whose_tracker_has_closed_is_not_running(self) -> None:
        closed = f"{SOME}\nwandb: Find logs at: ./wandb/run-20250203_040506-abcd1234/logs"
        now = datetime.now(UTC).replace(tzinfo=None)
        assert run_of(closed.replace("2025-02-03", f"{now:%Y-%m-%d}"), now=now)["status"] == "truncated"

    def test_it_is_stale_after_a_quarter_of_an_hour(self) -> None:
        soon = datetime.now(UTC).replace(tzinfo=None) + STALE_AFTER + timedelta(seconds=30)
        assert run_of(SOME, now=soon)["status"] == "truncated"


def attempt(**values: object) -> pl.DataFrame:
    """One attempt as `classify` takes it; unknown unless overridden."""
    row: dict[str, object] = {
        "key": "a",
        "last_step": None,
        "steps_planned": None,
        "last_step_line": None,
        "previous_step_line": None,
        "is_plan_guessed": False,
        "is_from_zero": False,
        "stride": None,
        "has_settings": False,
        "is_of_records": False,
        "modified_at": None,
        "stamped_at": None,
        "is_step_stamped": False,
        "step_time_s": None,
        "status_file": None,
        "longest_pause_s": None,
        "silence": None,
    }
    schema = {
        "key": pl.String(),
        "last_step": pl.Int64(),
        "steps_planned": pl.Int64(),
        "last_step_line": pl.Int64(),
        "previous_step_line": pl.Int64(),
        "is_plan_guessed": pl.Boolean(),
        "is_from_zero": pl.Boolean(),
        "stride": pl.Float64(),
        "has_settings": pl.Boolean(),
        "is_of_records": pl.Boolean(),
        "modified_at": pl.Datetime("us"),
        "stamped_at": pl.Datetime("us"),
        "is_step_stamped": pl.Boolean(),
        "step_time_s": pl.Float64(),
        "status_file": pl.String(),
        "longest_pause_s": pl.Float64(),
        "silence": pl.String(),
    }
    return pl.DataFrame([row | values], schema=schema)


def judged(attempts: pl.DataFrame, *events: tuple[str, int, str, bool]) -> list[tuple[str, str]]:
    rows = [(key, line, kind, f"{kind} at {line}", beside) for key, line, kind, beside in events]
    schema = ["key", "line_no", "kind", "text", "is_secondary"]
    types = [pl.String(), pl.Int64(), pl.String(), pl.String(), pl.Boolean()]
    frame = pl.DataFrame(rows, schema=dict(zip(schema, types, strict=True)), orient="row")
    found = outcome.classify(attempts, frame, now=datetime(2030, 1, 1))
    assert found["key"].to_list() == attempts["key"].to_list()
    return found.select("status", "status_confidence").rows()


class TestClassify:
    @pytest.mark.parametrize(
        ("days_ago", "is_step_stamped", "step_time_s", "status"),
        [
            (None, False, None, "running"),
            (0.5, True, 1.0, "running"),  # clocks of two time zones
            (900, True, 1.0, "truncated"),
            (900, False, 1.0, "truncated"),
            (3, True, 1.0, "truncated"),
            (3, False, 1.0, "running"),  # its only time may be that of its start
            (60, False, 50_000.0, "running"),  # its 100 steps took 58 days
        ],
    )
    def test_a_fresh_copy_of_an_old_log_is_not_running(
        self, days_ago: float | None, is_step_stamped: bool, step_time_s: float | None, status: str
    ) -> None:
        now = datetime(2030, 1, 1)
        log = attempt(
            last_step=100,
            last_step_line=9,
            modified_at=now - timedelta(minutes=1),
            stamped_at=None if days_ago is None else now - timedelta(days=days_ago),
            is_step_stamped=is_step_stamped,
            step_time_s=step_time_s,
        )
        assert [found for found, _ in judged(log)] == [status]

    def test_nothing_at_all_is_unknown(self) -> None:
        assert judged(attempt()) == [("unknown", "low")]

    def test_no_attempts(self) -> None:
        assert judged(attempt().clear()) == []

    def test_a_last_step_that_may_be_an_epochs_counts_where_nothing_failed(self) -> None:
        guessed = attempt(last_step=9, steps_planned=9, is_plan_guessed=True, last_step_line=1)
        assert judged(guessed) == [("completed", "medium")]
        assert judged(guessed, ("a", 2, "exception", False)) == [("crash", "high")]
        assert judged(attempt(last_step=9, steps_planned=9), ("a", 2, "exception", False)) == [("completed", "high")]

    @pytest.mark.parametrize(
        ("last", "planned", "is_from_zero", "stride", "status"),
        [
            (19, 20, True, 1.0, ("completed", "medium")),
            (18, 20, True, 1.0, ("truncated", "low")),
            (19, 20, False, 1.0, ("truncated", "low")),
            (19, 20, False, 2.0, ("completed", "medium")),  # 1, 3, ... 19
            (990, 1000, True, 10.0, ("completed", "medium")),
            (990, 1000, False, 10.0, ("truncated", "low")),
            (1000, 1500, False, 1000.0, ("truncated", "low")),
        ],
    )
    def test_the_last_step_that_can_be_logged(
        self, last: int, planned: int, *, is_from_zero: bool, stride: float, status: tuple[str, str]
    ) -> None:
        found = attempt(last_step=last, steps_planned=planned, is_from_zero=is_from_zero, stride=stride)
        assert judged(found) == [status]

    def test_what_only_looks_finished_is_not_where_it_failed(self) -> None:
        found = attempt(last_step=19, steps_planned=20, stride=2.0, last_step_line=1)
        assert judged(found, ("a", 2, "exception", False)) == [("crash", "high")]

    def test_a_status_file_alone_is_believed_a_little(self) -> None:
        assert judged(attempt(status_file="completed")) == [("completed", "medium")]
        assert judged(attempt(status_file="fail")) == [("crash", "medium")]

    def test_a_status_file_that_says_running_says_nothing(self) -> None:
        assert judged(attempt(status_file="running", last_step=3)) == [("truncated", "low")]

    def test_the_log_beats_the_status_file(self) -> None:
        assert judged(attempt(status_file="oom"), ("a", 9, "timeout", False)) == [("timeout", "high")]
        assert judged(attempt(status_file="timeout", last_step=5, steps_planned=5)) == [("completed", "high")]

    def test_unknown_plans_are_not_reached(self) -> None:
        assert judged(attempt(last_step=5)) == [("truncated", "low")]

    def test_the_first_step_may_be_the_only_one(self) -> None:
        only = attempt(last_step=1, last_step_line=40)
        assert judged(only, ("a", 3, "oom", False)) == [("oom", "high")]
        assert judged(only, ("a", 3, "exception", False)) == [("truncated", "low")]

    def test_two_events_of_one_line_are_judged_the_same_in_any_order(self) -> None:
        events = [("a", 7, kind, False) for kind in ("exit_code", "exception", "nccl_error", "hang", "cancelled")]
        assert len({judged(attempt(), *order)[0] for order in (events, events[::-1])}) == 1

    def test_attempts_are_judged_apart(self) -> None:
        both = pl.concat([attempt(key="b"), attempt(key="a")])
        assert judged(both, ("a", 1, "oom", False), ("c", 1, "hang", False)) == [("unknown", "low"), ("oom", "high")]


RENDEZVOUS = (
    "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed."
)
RESTART = "[default] Worker group FAILED. 2/3 attempts left; will restart worker group"


class TestRendezvous:
    def test_nodes_that_do_not_find_each_other_are_a_network_error(self) -> None:
        run = run_of(f"Traceback (most recent call last):\n{RENDEZVOUS}\n")
        assert (run["status"], run["status_confidence"], run["status_evidence"]) == ("nccl_error", "medium", RENDEZVOUS)

    def test_it_is_the_echo_of_an_exception(self) -> None:
        assert run_of(f"{SOME}\n{RAISED}\n{RENDEZVOUS}\n")["status"] == "crash"

    def test_it_does_not_undo_a_completed_run(self) -> None:
        assert run_of(f"{steps(1, 10)}\n{RENDEZVOUS}\n")["status"] == "completed"


def test_a_restart_by_the_launcher_begins_an_attempt() -> None:
    runs = tables_of({"train.log": f"{SOME}\n{RAISED}\n{RESTART}\n{steps(5, 10)}\n"})["runs"].sort("attempt")
    assert runs.select("attempt", "status", "first_step", "last_step").rows() == [
        (1, "crash", 1, 4),
        (2, "completed", 5, 10),
    ]
