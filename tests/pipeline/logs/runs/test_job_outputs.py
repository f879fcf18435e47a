"""The output of a job whose tasks log each to a file of its own: `slurm-771204.out` beside `logs/771204_0.txt`."""

from __future__ import annotations

from pathlib import Path

from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect, current
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs

COMMAND = "srun python -u pretrain.py --tp 2 --micro-batch 4 --global-batch 256 --seq 4096\n"
STEPS = "".join(f"step {step} loss {9 - step / 10:.4f} 7.500 sec\n" for step in range(1, 31))
OOM = (
    'Traceback (most recent call last):\n  File "pretrain.py", line 88, in <module>\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 5 has a total capacity of 79.11 GiB\n"
)
ENDED = "srun: error: gpu11: task 5: Exited with exit code 1\nsrun: Terminating StepId=771205.0\n"


def counted(logs: LakeOfLogs) -> list[tuple[str, str, int | None, int | None]]:
    """Log, status, TP and steps of each run that counts."""
    logs.ingest()
    home = Home.resolve(str(logs.path / "home"))
    publish(home)
    with connect(current(home.path)) as store:
        rows = store.sql(
            "SELECT source_path, status, tp, steps_logged FROM runs WHERE duplicate_of IS NULL ORDER BY source_path"
        ).fetchall()
    return [(Path(path).name, *rest) for path, *rest in rows]


def test_what_the_output_states_is_known_of_the_steps_in_the_log_of_a_task(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write("sweep/slurm-771204.out", f"Job 771204 on gpu[11-12]\nCommand: {COMMAND}Job 771204 ended\n")
    logs.write("sweep/logs/771204_0.txt", f"rank 0 on NVIDIA H100 80GB HBM3\n{STEPS}finished\n")
    assert counted(logs) == [("771204_0.txt", "completed", 2, 30)]


def test_the_cause_in_the_log_of_a_task_is_that_of_its_job(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write("sweep/slurm-771205.out", f"Command: {COMMAND}{ENDED}")
    logs.write("sweep/logs/771205_5.txt", f"rank 5 on NVIDIA H100 80GB HBM3\n{OOM}")
    assert counted(logs) == [("slurm-771205.out", "oom", 2, None)]


def test_tasks_of_an_array_are_runs_of_their_own(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    for task in range(2):
        logs.write(
            f"sweep/slurm-771206_{task}.out", f"Command: {COMMAND}{STEPS.replace('7.500', f'7.{task}00')}finished\n"
        )
    assert [status for _, status, _, _ in counted(logs)] == ["completed", "completed"]
