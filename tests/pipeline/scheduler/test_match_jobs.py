"""Which job a run was: by id, by output file, by directory; requeues, arrays, clusters and jobs of another year."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from sweepscope.pipeline.scheduler.match_jobs import PAIRS, match
from sweepscope.schemas.tables.runs import RUNS
from sweepscope.schemas.tables.scheduler import SCHEDULER_JOBS

T = datetime(2024, 5, 27, 12)
HOUR = timedelta(hours=1)


def run(run_id: str = "a", **values: object) -> dict[str, object]:
    return {
        "run_id": run_id,
        "attempt": 1,
        "source_path": f"/s/{run_id}/train.out",
        "run_dir": f"/s/{run_id}",
        "job_id": "17",
        **values,
    }


def job(line_no: int = 2, **values: object) -> dict[str, object]:
    return {
        "scheduler": "slurm",
        "job_id": "17",
        "job_state": "failed",
        "source_path": "/s/sacct.txt",
        "run_dir": "/s",
        "line_no": line_no,
        "text": f"line {line_no}",
        **values,
    }


def matched(runs: list[dict[str, object]], jobs: list[dict[str, object]]) -> pl.DataFrame:
    runs_frame = pl.concat([RUNS.empty(), *(RUNS.conform(pl.DataFrame([row])) for row in runs)])
    jobs_frame = pl.concat([SCHEDULER_JOBS.empty(), *(SCHEDULER_JOBS.conform(pl.DataFrame([row])) for row in jobs)])
    found = match(runs_frame, jobs_frame)
    backwards = match(runs_frame.reverse(), jobs_frame.reverse())
    assert found.schema == PAIRS
    assert found.sort("run_id").equals(backwards.sort("run_id")), "the order of the rows decided"
    return found.sort("run_id")


def lines_of(runs: list[dict[str, object]], jobs: list[dict[str, object]]) -> dict[str, int]:
    return dict(matched(runs, jobs).select("run_id", "line_no").iter_rows())


class TestById:
    def test_one_table_of_many_runs(self) -> None:
        runs = [run("a", job_id="17"), run("b", job_id="18"), run("c", job_id="19"), run("d", job_id=None)]
        assert lines_of(runs, [job(2), job(3, job_id="18"), job(4, job_id="20")]) == {"a": 2, "b": 3}

    def test_an_array_task_is_known_by_both_its_ids(self) -> None:
        jobs = [job(2, job_id="100_3", job_id_raw="103"), job(3, job_id="100_4", job_id_raw="104")]
        assert lines_of([run("a", job_id="100_3"), run("b", job_id="104")], jobs) == {"a": 2, "b": 3}

    def test_the_parts_of_a_heterogeneous_job_are_one_job(self) -> None:
        assert list(lines_of([run()], [job(2, job_id="17+0"), job(3, job_id="17+1")])) == ["a"]

    def test_the_parts_of_a_heterogeneous_job_add_up(self) -> None:
        parts = [
            job(2, job_id="17+0", num_nodes=1, num_gpus=4, hosts="n1", accelerator="H100"),
            job(3, job_id="17+1", num_nodes=4, num_gpus=32, hosts="n[2-5]", accelerator="H100"),
        ]
        again = [{**part, "source_path": "/s/later.txt"} for part in parts]  # the same parts, not further ones
        names = ("num_nodes", "num_gpus", "hosts", "accelerator")
        again.append({**parts[0], "source_path": "/s/squeue.txt", "job_id": "17"})
        assert matched([run()], [*parts, *again]).select(names).rows() == [(5, 36, "n1,n[2-5]", "H100")]
        odd = [parts[0], {**parts[1], "num_gpus": None, "accelerator": "A100"}]
        assert matched([run()], odd).select(names).rows() == [(5, None, "n1,n[2-5]", None)]

    def test_a_job_told_in_one_table_is_not_made_up_from_its_steps_in_another(self) -> None:
        step = job(2, job_step="batch", job_state="completed", source_path="/s/a.txt")
        assert matched([run()], [step, job(3)]).select("job_state", "line_no").rows() == [("failed", 3)]
        assert matched([run()], [step])["job_state"].to_list() == ["completed"]

    def test_a_job_of_another_year_is_another_job(self) -> None:
        old = job(2, started_at=T, ended_at=T + HOUR)
        assert not lines_of([run(started_at=T + 400 * 24 * HOUR)], [old])
        assert not lines_of([run(started_at=T - 400 * 24 * HOUR)], [old])
        assert lines_of([run(started_at=T - 9 * HOUR)], [old]) == {"a": 2}  # a log in UTC

    def test_of_two_clusters_the_one_whose_table_lies_nearer(self) -> None:
        near = job(2, cluster="one")
        far = job(2, cluster="two", source_path="/elsewhere/sacct.txt", run_dir="/elsewhere")
        assert matched([run()], [near, far])["cluster"].to_list() == ["one"]
        assert matched([run()], [job(2, cluster="one"), job(3, cluster="two")]).is_empty()

    def test_a_table_without_the_clusters_name_is_of_the_only_one(self) -> None:
        found = matched([run()], [job(2, cluster="one", elapsed_s=5), job(2, source_path="/s/b.txt", num_nodes=2)])
        assert found.select("cluster", "elapsed_s", "num_nodes").rows() == [("one", 5, 2)]


class TestByPlace:
    def test_the_jobs_output_file(self) -> None:
        jobs = [job(2, stdout_path="/s/a/train.out"), job(3, job_id="18", stdout_path="/s/b/train.out")]
        assert lines_of([run("a", job_id=None), run("b", job_id="7")], jobs) == {"a": 2, "b": 3}

    def test_a_pod_by_the_name_of_its_log(self) -> None:
        pod = job(2, scheduler="kubernetes", job_id="llama-worker-0")
        assert lines_of([run(job_id=None, source_path="/s/x/llama-worker-0.log.gz"), run("b", job_id=None)], [pod]) == {
            "a": 2
        }

    def test_one_run_and_one_job_in_a_directory(self) -> None:
        beside = job(2, source_path="/s/a/sacct.txt", run_dir="/s/a")
        assert lines_of([run(job_id=None), run("b", job_id=None)], [beside]) == {"a": 2}
        assert not lines_of([run(job_id="99")], [beside])

    def test_a_working_directory_of_one_run_and_one_job(self) -> None:
        assert lines_of([run(job_id=None)], [job(2, work_dir="/s/a"), job(3, job_id="18")]) == {"a": 2}

    def test_a_folder_with_the_name_of_one_job(self) -> None:
        jobs = [job(2, job_name="a"), job(3, job_id="18", job_name="c")]
        assert lines_of([run("a", job_id=None), run("b", job_id=None)], jobs) == {"a": 2}
        again = [job(2, job_name="a"), job(3, job_id="18", job_name="a")]
        assert not lines_of([run("a", job_id=None)], again)
        assert not lines_of([run("a", job_id=None)], [job(2, job_name="a", run_dir="/elsewhere")])

    def test_two_of_either_are_no_answer(self) -> None:
        here = {"source_path": "/s/a/sacct.txt", "run_dir": "/s/a"}
        assert not lines_of([run(job_id=None)], [job(2, **here), job(3, job_id="18", **here)])
        two = [run("a", job_id=None), run("b", job_id=None, run_dir="/s/a")]
        assert not lines_of(two, [job(2, **here)])


class TestFacts:
    def test_tables_taken_while_it_ran_and_after_it_are_merged(self) -> None:
        jobs = [
            job(2, job_state="pending", source_path="/s/1.txt", submitted_at=T - HOUR),
            job(2, job_state="running", source_path="/s/2.txt", started_at=T, elapsed_s=60, hosts="n1", exit_code=0),
            job(2, job_state="timeout", source_path="/s/3.txt", started_at=T, ended_at=T + HOUR, elapsed_s=3600),
        ]
        (found,) = (
            matched([run()], jobs)
            .select("job_state", "submitted_at", "elapsed_s", "hosts", "exit_code", "source_path")
            .rows()
        )
        assert found == ("timeout", T - HOUR, 3600, "n1", None, "/s/3.txt")

    def test_a_table_without_the_time_elapsed_gives_it_by_start_and_end(self) -> None:
        assert matched([run()], [job(2, started_at=T, ended_at=T + HOUR)])["elapsed_s"].to_list() == [3600]
        assert matched([run()], [job(2, started_at=T)])["elapsed_s"].to_list() == [None]

    def test_steps_give_their_memory_and_their_gravest_end(self) -> None:
        steps = [
            job(3, job_step="batch", job_state="completed", host_mem_peak_bytes=5),
            job(4, job_step="extern", job_state="failed", host_mem_peak_bytes=50),
            job(5, job_step="0", job_state="out_of_memory", host_mem_peak_bytes=7, exit_code=0, exit_signal=125),
            job(6, job_step="1", job_state="failed"),
        ]
        found = matched([run()], [job(2, job_state="completed"), *steps])
        assert found.select("job_state", "step_state", "step_exit", "host_mem_peak_bytes").rows() == [
            ("completed", "out_of_memory", "0:125", 50)
        ]

    def test_steps_alone_stand_for_their_job(self) -> None:
        found = matched(
            [run()], [job(3, job_step="0", job_state="failed"), job(4, job_step="batch", job_state="timeout")]
        )
        assert found.select("job_state", "job_step", "line_no").rows() == [("timeout", None, 4)]


class TestAttempts:
    def test_the_steps_of_an_incarnation_that_still_runs_are_its_own(self) -> None:
        jobs = [
            job(2, job_state="requeued", started_at=T, ended_at=T + HOUR),
            job(3, job_state="running", started_at=T + 2 * HOUR),
            job(4, job_step="0", started_at=T, ended_at=T + HOUR, host_mem_peak_bytes=5),
            job(5, job_step="0", started_at=T + 2 * HOUR, ended_at=T + 3 * HOUR, host_mem_peak_bytes=7),
        ]
        found = matched([run("a", started_at=T), run("b", started_at=T + 2 * HOUR, attempt=2)], jobs)
        assert found["host_mem_peak_bytes"].to_list() == [5, 7]
        assert found["step_state"].to_list() == ["failed", "failed"]

    def test_a_requeued_job_and_its_attempts_go_together(self) -> None:
        runs = [run("a", attempt=1), run("b", attempt=2, source_path="/s/a/train.out", run_dir="/s/a")]
        jobs = [job(2, job_state="requeued", started_at=T), job(3, job_state="completed", started_at=T + HOUR)]
        found = matched(runs, jobs)
        assert found.select("run_id", "job_state", "is_first", "is_last").rows() == [
            ("a", "requeued", True, True),
            ("b", "completed", True, True),
        ]

    def test_a_restart_within_a_job_ends_the_last_attempt_only(self) -> None:
        runs = [run("a", attempt=1), run("b", attempt=2, source_path="/s/a/train.out", run_dir="/s/a")]
        assert matched(runs, [job(2)]).select("run_id", "is_first", "is_last").rows() == [
            ("a", True, False),
            ("b", False, True),
        ]

    def test_of_several_runs_in_one_job_the_latest_was_ended_by_it(self) -> None:
        runs = [run("a", started_at=T + HOUR), run("b", started_at=T)]
        assert matched(runs, [job(2, started_at=T)])["is_last"].to_list() == [True, False]
        assert matched([run("a"), run("b")], [job(2)])["is_last"].to_list() == [False, False]

    def test_a_log_that_was_overwritten_is_of_the_last_start(self) -> None:
        jobs = [job(2, job_state="preempted", started_at=T), job(3, job_state="timeout", started_at=T + HOUR)]
        assert lines_of([run()], jobs) == {"a": 3}


def test_no_rows_are_no_pairs() -> None:
    assert matched([], [job()]).is_empty()
    assert matched([run()], []).is_empty()
