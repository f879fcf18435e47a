"""Columns and words of what schedulers say about jobs; `schemas.columns.shared` takes them in."""

from __future__ import annotations

from sweepscope.schemas.core.column import float_column as _float
from sweepscope.schemas.core.column import int_column as _int
from sweepscope.schemas.core.column import text_column as _text
from sweepscope.schemas.core.column import time_column as _time

JOB_STATE: dict[str, str] = {
    "completed": "ended with exit code 0 on all nodes",
    "failed": "ended with a non-zero exit code or by a signal",
    "out_of_memory": "the host ran out of memory (cgroup limit), or a pod was OOMKilled",
    "timeout": "reached its time limit",
    "deadline": "could not end before its deadline",
    "cancelled": "cancelled by its user or an administrator",
    "node_fail": "a node failed",
    "boot_fail": "a node did not boot",
    "preempted": "ended, to be replaced by another job",
    "requeued": "ended, to be started again",
    "evicted": "a pod was evicted from its node",
    "running": "was running when the table was written",
    "pending": "was waiting when the table was written",
    "suspended": "was suspended when the table was written",
    "unknown": "a state that no rule knows; the text has it",
}
"""Words of `job_state`; Slurm's names in lower case, its rarer states under the word that says the same here."""

SCHEDULER: dict[str, str] = {
    "slurm": "Slurm: sacct, squeue or scontrol",
    "kubernetes": "Kubernetes: kubectl describe pod, kubectl get pods",
    "lsf": "LSF: bjobs",
    "pbs": "PBS: qstat",
    "flux": "Flux: flux jobs",
}


_JOB = (
    _text("scheduler", "which scheduler wrote the table", SCHEDULER),
    _text("job_id_raw", "the number behind an array task's id (sacct's JobIDRaw), where it is printed"),
    _text("job_step", "job step: batch, extern, interactive or a number; NULL for the job as a whole"),
    _text("job_name", "name of the job or step"),
    _text("job_partition", "partition or queue"),
    _text("job_state", "state of the job or step", JOB_STATE),
    _text("job_reason", "what the scheduler adds to the state: who cancelled it, why it waits"),
    _int("exit_code", "id", "exit code of the job or step"),
    _int("exit_signal", "id", "signal that ended the job or step; 0 = none"),
    _time("submitted_at", "when the job was submitted (as printed, no time zone)"),
    _int("elapsed_s", "s", "time that the job or step has run"),
    _int("time_limit_s", "s", "time limit of the job"),
    _int("restarts", "count", "times that the job was started anew"),
    _text("hosts", "hosts, written out, separated by a comma and a space"),
    _int("host_mem_peak_bytes", "bytes", "peak resident memory of the host processes (MaxRSS, largest task)"),
    _text("work_dir", "directory that the job was started in"),
    _text("stdout_path", "file that the job's output goes to"),
)

_RUN = (
    _int("queue_wait_s", "s", "time from submission to start, from the scheduler"),
    _text("scheduler_state", "the scheduler's word on the run's job", JOB_STATE),
    _text("scheduler_exit", "the scheduler's exit code and signal, as code:signal"),
    _float(
        "allocated_gpu_hours",
        "GPU·h",
        "accelerator-hours that the scheduler held for the job, on its last attempt; counts waiting and hanging too",
        minimum=0,
    ),
    _int("first_failed_rank", "id", "rank that failed first, as the launcher reports"),
    _text("first_failed_host", "host of the rank that failed first, as the launcher reports"),
)

COLUMNS = (*_JOB, *_RUN)

RUN_COLUMNS = ("hosts", "host_mem_peak_bytes", *(column.name for column in _RUN))
"""What a run learns from its job, as columns of `runs`."""
