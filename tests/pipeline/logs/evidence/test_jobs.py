"""Jobs that logs name, and runs of several jobs in one file."""

from __future__ import annotations

import pytest

from tests.pipeline.ingest_in_memory import tables_of

STEP = (
    " [2024-05-27 {hour:02d}:{minute:02d}:00] iteration {step:8d}/     100 | consumed samples: {samples:12d} | elapsed time "
    "per iteration (ms): 1000.0 | learning rate: 1.0E-04 | global batch size:     8 | lm loss: {loss:.6E} | loss scale: 1.0 |\n"
)
LIMIT = "slurmstepd: error: *** JOB {} ON n1 CANCELLED AT 2024-05-27T11:00:04 DUE TO TIME LIMIT ***\n"
OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId={}.0. Some of the step tasks have been OOM Killed.\n"
RAISED = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\nKeyError: {}\n'
ENDS = (LIMIT, OOM, RAISED)
STATUS = ("timeout", "host_oom", "crash")


def steps(first: int, last: int, hour: int = 0) -> str:
    return "".join(
        STEP.format(hour=hour, minute=step % 60, step=step, samples=8 * step, loss=9 - step / 100)
        for step in range(first, last + 1)
    )


@pytest.mark.parametrize("begin", ["SLURM_JOB_ID={}\n", "Job ID: {}\n", "=== slurm job id is {} ===\n"])
@pytest.mark.parametrize("more", [5, 3], ids=["from the last step on", "from a checkpoint before it"])
def test_twelve_jobs_that_append_to_one_file(begin: str, more: int) -> None:
    parts = [
        begin.format(5001 + n) + steps(n * more + 1, n * more + 5, n) + ENDS[n % 3].format(5001 + n) for n in range(12)
    ]
    runs = tables_of({"train.out": "".join(parts)})["runs"].sort("attempt")
    assert runs.select("job_id", "first_step", "last_step", "status").rows() == [
        (str(5001 + n), n * more + 1, n * more + 5, STATUS[n % 3]) for n in range(12)
    ]


def test_jobs_that_are_named_by_their_ends_only() -> None:
    text = steps(1, 5) + LIMIT.format(17) + steps(6, 9) + LIMIT.format(18) + steps(10, 12)
    runs = tables_of({"train.log": text})["runs"].sort("attempt")
    assert runs.select("job_id", "first_step", "last_step").rows() == [("17", 1, 5), ("18", 6, 12)]


def test_a_job_that_dies_at_once_is_a_run() -> None:
    text = "SLURM_JOB_ID=17\n" + steps(1, 5) + LIMIT.format(17) + "SLURM_JOB_ID=18\n" + RAISED.format("'lr'")
    runs = tables_of({"train.log": text})["runs"].sort("attempt")
    assert runs.select("job_id", "last_step", "status").rows() == [("17", 5, "timeout"), ("18", None, "crash")]


@pytest.mark.parametrize(
    ("name", "line", "job"),
    [
        ("train_410022.log", "SLURM_JOBID=410099\n", "410099"),
        ("train.log", "export PBS_JOBID='410099.pbs01'\n", "410099"),
        ("train.log", "[2024-05-27 11:00:00] JobID: 410099\n", "410099"),
        ("train.log", "  job_id ........................................ 410099\n", None),
        ("slurm-2631_7.out", "SLURM_JOB_ID=2638\n", "2631_7"),
        ("slurm-2631.out", "job id 7\n", "2631"),
        ("slurm-2631.out", "rdzv_id: 99\n", "2631"),
    ],
)
def test_what_a_log_prints_of_its_job_counts_more_than_its_name(name: str, line: str, job: str | None) -> None:
    assert tables_of({name: line + steps(1, 3)})["runs"]["job_id"].to_list() == [job]


def test_a_job_that_every_rank_names_is_noted_once() -> None:
    text = "".join(f"[rank{rank}]: SLURM_JOB_ID=17\n" for rank in range(8)) + steps(1, 3)
    assert tables_of({"train.log": text})["events"].filter(kind="job")["line_no"].to_list() == [1]


def report(job: int, code: int, *, is_below: bool = True) -> str:
    end = f"Exited with exit code {code}.\n" if code else "Successfully completed.\n"
    where = "is above this job summary." if is_below else "follows:\n"
    return (
        f"Sender: LSF System <lsfadmin@n1>\nSubject: Job {job}: <train> in cluster <c> {'Exited' if code else 'Done'}\n\n"
        f"Your job looked like:\npython train.py --lr 1e-3\n\n{end}\nThe output (if any) {where}\n\n"
    )


def cancelled(job: int) -> str:
    return f"slurmstepd: error: *** JOB {job} ON n1 CANCELLED AT 2024-05-27T11:00:04 ***\n"


@pytest.mark.parametrize(
    "text",
    [
        "".join(RAISED.format(f"'{job}'") + report(job, 1) for job in (17, 18, 19)),
        "".join(report(job, 1, is_below=False) + RAISED.format(f"'{job}'") for job in (17, 18, 19)),
        "".join(RAISED.format(f"'{job}'") + cancelled(job) for job in (17, 18, 19)),
    ],
    ids=["LSF, below", "LSF, above", "Slurm"],
)
def test_jobs_that_end_without_a_step_are_runs(text: str) -> None:
    runs = tables_of({"train.out": text})["runs"].sort("attempt")
    assert runs.select("job_id", "status").rows() == [(job, "crash") for job in ("17", "18", "19")]
    assert [f"'{job}'" in text for job, text in runs.select("job_id", "status_evidence").rows()] == [True] * 3


def test_a_job_without_a_step_stands_between_others() -> None:
    text = steps(1, 5) + report(17, 0) + RAISED.format("'lr'") + report(18, 1) + steps(1, 7, 1) + report(19, 0)
    runs = tables_of({"train.out": text})["runs"].sort("attempt")
    assert runs.select("job_id", "last_step").rows() == [("17", 5), ("18", None), ("19", 7)]
