"""torchrun's table of failures, and the rank and host that failed first, from whole logs."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from tests.pipeline.ingest_in_memory import run_of, runs_of, tables_of

RULE = "=" * 60


def worker(number: int, time: str, host: str, rank: int, code: int = 1) -> str:
    return (
        f"[{number}]:\n  time      : {time}\n  host      : {host}\n  rank      : {rank} (local_rank: {rank % 8})\n"
        f"  exitcode  : {code} (pid: {4000 + rank})\n  error_file: <N/A>\n"
        "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n"
    )


def table(root: str, *others: str) -> str:
    listed = "".join(others) or "  <NO_OTHER_FAILURES>\n"
    return (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        f"{RULE}\ntrain.py FAILED\n{'-' * 60}\nFailures:\n{listed}{'-' * 60}\n"
        f"Root Cause (first observed failure):\n{root}{RULE}\n"
    )


def first_failure(text: str) -> tuple[object, object]:
    run = run_of(text)
    return run.get("first_failed_rank"), run.get("first_failed_host")


class TestTable:
    def test_each_worker_is_one_event(self) -> None:
        text = table(worker(0, "2024-05-27_11:00:05", "n1", 3, -9), worker(1, "2024-05-27_11:00:07", "n1", 5))
        events = tables_of({"train.log": text})["events"].filter(pl.col("kind") == "worker_failed")
        assert events.select("line_no", "ts", "rank", "host", "text").rows() == [
            (
                7,
                datetime(2024, 5, 27, 11, 0, 7),
                5,
                "n1",
                "time 2024-05-27_11:00:07, host n1, rank 5 (local_rank: 5), exitcode 1 (pid: 4005)",
            ),
            (
                16,
                datetime(2024, 5, 27, 11, 0, 5),
                3,
                "n1",
                "root cause: time 2024-05-27_11:00:05, host n1, rank 3 (local_rank: 3), exitcode -9 (pid: 4003)",
            ),
        ]

    def test_the_root_cause_failed_first(self) -> None:
        assert first_failure(table(worker(0, "2024-05-27_11:00:05", "n1", 3))) == (3, "n1")

    def test_of_several_nodes_tables_the_earliest_counts(self) -> None:
        one = table(worker(0, "2024-05-27_11:00:09", "n1", 3), worker(1, "2024-05-27_11:00:10", "n1", 0))
        two = table(worker(0, "2024-05-27_11:00:05", "n2", 12))
        assert first_failure(one + two) == (12, "n2")
        assert first_failure(two + one) == (12, "n2")

    def test_of_equal_times_the_root_cause_counts(self) -> None:
        same = "2024-05-27_11:00:09"
        assert first_failure(table(worker(0, same, "n1", 3), worker(1, same, "n1", 0))) == (3, "n1")

    @pytest.mark.slow
    @pytest.mark.parametrize("block_bytes", [64, 300, 1 << 20])
    def test_it_does_not_matter_where_a_block_ends(self, block_bytes: int) -> None:
        text = table(worker(0, "2024-05-27_11:00:05", "n1", 3), worker(1, "2024-05-27_11:00:07", "n1", 5))
        whole = tables_of({"train.log": text})
        cut = tables_of({"train.log": text}, chunk_bytes=50, block_bytes=block_bytes)
        assert cut["events"].drop("run_id").equals(whole["events"].drop("run_id"))
        assert cut["runs"]["first_failed_rank"].to_list() == [3]

    def test_prefixes_are_no_harm(self) -> None:
        lines = table(worker(0, "2024-05-27_11:00:05", "n1", 3)).splitlines()
        assert first_failure("\n".join(f"0: {line}" for line in lines)) == (3, "n1")


EARLY, LATE = "2024-05-27_11:00:05", "2024-05-27_11:00:09"
AGENT = (
    "E0527 11:00:06.000000 140 torch/distributed/elastic/multiprocessing/api.py:833] failed (exitcode: {}) "
    "local_rank: 3 (pid: 4003) of binary: /opt/env/bin/python\n"
)
SIGNAL = "  traceback : Signal 15 (SIGTERM) received by PID 4003\n"
TERMINATED = table(worker(0, EARLY, "n1", 3, -15)).replace(
    "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n", SIGNAL
)
STEP = "step:{}/9 train_loss:8.6000 train_time:300ms step_avg:150.50ms\n"
STEPS = STEP.format(2) + STEP.format(3)
AGENT_STOPPED = (
    "W0527 11:00:02.000000 140 torch/distributed/elastic/agent/server/api.py:704] Received 15 death signal\n"
)
LIMIT = "slurmstepd: error: *** STEP 17.0 ON n1 CANCELLED AT 2024-05-27T11:00:04 DUE TO TIME LIMIT ***\n"
CLEANUP = "slurmstepd: error: *** STEP 17.0 ON n1 CANCELLED AT 2024-05-27T11:00:10 ***\n"
OOM = "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"


class TestTerminatedWorkers:
    def test_whether_that_was_the_end(self) -> None:
        cases = [
            (AGENT.format(-15) + TERMINATED, "cancelled"),
            (TERMINATED, "cancelled"),
            (AGENT.format(-15), "cancelled"),
            (table(worker(0, EARLY, "n1", 3, 143)), "cancelled"),
            (table(worker(0, EARLY, "n1", 3, -15), worker(1, EARLY, "n1", 4, -15)), "cancelled"),
            # Slurm, whose line may come before or behind the table.
            (LIMIT + AGENT.format(-15) + TERMINATED, "timeout"),
            (AGENT.format(-15) + TERMINATED + LIMIT, "timeout"),
            (AGENT.format(-15) + TERMINATED + CLEANUP, "cancelled"),
            # The agent, after another worker had failed: in the same second that one may not be the root cause.
            (AGENT.format(1) + table(worker(0, EARLY, "n1", 3), worker(1, LATE, "n1", 4, -15)), "crash"),
            (AGENT.format(-15) + table(worker(0, EARLY, "n1", 3, -15), worker(1, EARLY, "n1", 4)), "crash"),
            (AGENT.format(-15) + TERMINATED + table(worker(0, EARLY, "n2", 9)), "crash"),
            (AGENT.format(-15) + TERMINATED + OOM, "oom"),
            # The agent itself was told to stop.
            (AGENT_STOPPED + table(worker(0, LATE, "n1", 3), worker(1, LATE, "n1", 4, -15)), "cancelled"),
            (AGENT.format(-6) + table(worker(0, EARLY, "n1", 3, -6)), "crash"),
        ]
        runs = runs_of([STEPS + text for text, _ in cases])
        assert [(text, run["status"]) for (text, _), run in zip(cases, runs, strict=True)] == cases

    def test_an_attempt_before_is_another_story(self) -> None:
        first = STEPS + AGENT.format(1) + table(worker(0, EARLY, "n1", 3))
        runs = tables_of({"train.log": first + STEPS + AGENT.format(-15) + TERMINATED})["runs"].sort("attempt")
        assert runs["status"].to_list() == ["crash", "cancelled"]


class TestOtherLaunchers:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("line", "rank", "host"),
        [
            (
                "mpirun noticed that process rank 53 with PID 0 on node cpu-p-435 exited on signal 9 (Killed).",
                53,
                "cpu-p-435",
            ),
            ("srun: error: node-3: task 17: Exited with exit code 1", 17, "node-3"),
            ("srun: error: node-3: tasks 8-15: Killed", None, "node-3"),
            ("x3005c0s13b0n0.hsn: rank 3 died from signal 9", 3, "x3005c0s13b0n0.hsn"),
            ("MPI_ABORT was invoked on rank 7 in communicator MPI_COMM_WORLD\nTerminated", 7, None),
            ("[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", 5, None),
        ],
    )
    def test_a_line_may_name_rank_and_host(self, line: str, rank: int | None, host: str | None) -> None:
        assert first_failure(f"CUDA out of memory. Tried to allocate 2 GiB\n{line}\n") == (rank, host)

    def test_what_a_launcher_says_counts_more_than_who_printed_first(self) -> None:
        text = (
            "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
            "srun: error: node-3: task 17: Exited with exit code 1\n"
        )
        assert first_failure(text) == (17, "node-3")

    def test_nobody_is_named_where_nobody_is(self) -> None:
        assert first_failure("RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB\n") == (None, None)


class TestJobId:
    @pytest.mark.parametrize(
        "line",
        [
            "slurmstepd: error: *** STEP 1999616.0 ON r6i4n5 CANCELLED AT 2021-05-27T21:42:11 DUE TO TIME LIMIT ***",
            "slurmstepd: error: *** JOB 1999616 ON r6i4n5 CANCELLED AT 2021-05-27T21:42:11 ***",
            "slurmstepd: error: Detected 1 oom_kill event in StepId=1999616.batch. Some of the step tasks have been OOM "
            "Killed.",
        ],
    )
    def test_slurmstepd_names_the_job(self, line: str) -> None:
        assert run_of(f"{line}\n")["job_id"] == "1999616"

    def test_a_job_id_in_the_files_name_stays(self) -> None:
        line = "slurmstepd: error: *** JOB 17 ON r6i4n5 CANCELLED AT 2021-05-27T21:42:11 ***\n"
        assert tables_of({"slurm-123_4.out": line})["runs"]["job_id"].to_list() == ["123_4"]
