from __future__ import annotations

import time
from datetime import datetime

import polars as pl

from sweepscope.pipeline.scheduler import registry, slurm_scontrol

BLOCKS = """\
JobId=17 JobName=a job with blanks
   UserId=someone(1000) GroupId=users(100) MCS_label=N/A
   Priority=4294901735 Nice=0 Account=(null) QOS=normal
   JobState=NODE_FAIL Reason=NodeDown Dependency=(null)
   Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:1
   RunTime=1-02:03:04 TimeLimit=2-00:00:00 TimeMin=N/A
   SubmitTime=2024-05-27T10:00:00 EligibleTime=2024-05-27T10:00:00
   StartTime=2024-05-27T10:10:00 EndTime=2024-05-28T12:13:04 Deadline=N/A
   NodeList=rack[1-2]n[08-09]
   BatchHost=rack1n08
   NumNodes=4 NumCPUs=256 NumTasks=4 CPUs/Task=64 ReqB:S:C:T=0:0:*:*
   AllocTRES=cpu=256,mem=2T,node=4,billing=256,gres/gpu=32
   Command=/home/someone/job.slurm --config a=b
   WorkDir=/home/someone/run
   StdErr=/home/someone/run/log_17.out
   StdOut=/home/someone/run/log_17.out

JobId=19 ArrayJobId=18 ArrayTaskId=3 JobName=array
   JobState=PENDING Reason=Resources Dependency=(null)
   SubmitTime=2024-05-27T10:00:00 StartTime=Unknown
"""


def read(text: str) -> pl.DataFrame:
    parts = list(slurm_scontrol.read(text.splitlines()))
    assert all(rejects.is_empty() for _, rejects in parts)
    return pl.concat([rows for rows, _ in parts])


def test_a_block_is_a_job() -> None:
    job = read(BLOCKS).row(0, named=True)
    assert {name: value for name, value in job.items() if value is not None} == {
        "scheduler": "slurm",
        "job_id": "17",
        "job_id_raw": "17",
        "job_name": "a job with blanks",
        "job_state": "node_fail",
        "job_reason": "NodeDown",
        "exit_code": 0,
        "exit_signal": 1,
        "restarts": 2,
        "submitted_at": datetime(2024, 5, 27, 10),
        "started_at": datetime(2024, 5, 27, 10, 10),
        "ended_at": datetime(2024, 5, 28, 12, 13, 4),
        "elapsed_s": 93_784,
        "time_limit_s": 172_800,
        "queue_wait_s": 600,
        "num_nodes": 4,
        "num_gpus": 32,
        "hosts": "rack1n08, rack1n09, rack2n08, rack2n09",
        "work_dir": "/home/someone/run",
        "stdout_path": "/home/someone/run/log_17.out",
        "line_no": 1,
        "text": "JobId=17 JobName=a job with blanks JobState=NODE_FAIL Reason=NodeDown Dependency=(null)",
    }


def test_an_array_task_is_named_as_sacct_names_it() -> None:
    task = read(BLOCKS).row(1, named=True)
    assert (task["job_id"], task["job_id_raw"], task["job_state"]) == ("18_3", "19", "pending")
    assert (task["started_at"], task["line_no"]) == (None, 18)


def test_one_line_per_job() -> None:
    lines = " ".join(line.strip() for line in BLOCKS.splitlines()[:16])
    assert read(lines + "\n" + lines.replace("JobId=17", "JobId=20"))["job_id"].to_list() == ["17", "20"]


def test_a_log_that_begins_with_a_record_stays_a_log() -> None:
    assert registry.recognise(BLOCKS) is not None
    assert registry.recognise(BLOCKS + "step: 1  loss: 9.0\n" * 20) is None


def test_heads_that_lead_nowhere_are_soon_left() -> None:
    for head in ("\n" * 8000, "# \n" * 2700, " " * 8000, " \n \n" * 2000, "1" * 8192, "1.a" * 2700, "jobid jobi" * 800):
        begin = time.process_time()
        assert registry.recognise(head + "x") is None
        assert time.process_time() - begin < 2  # 0.0005 s; a pattern that backtracks takes minutes
