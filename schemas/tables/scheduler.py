"""The table of what schedulers say about jobs."""

from __future__ import annotations

import polars as pl

from sweepscope.schemas.core.column import Column
from sweepscope.schemas.core.table import Table

SCHEDULER_JOBS = Table(
    name="scheduler_jobs",
    description="What schedulers say: every job and job step in a table of sacct, squeue, scontrol, kubectl, bjobs, "
    "qstat or Flux. The store joins it to `runs` by job id or directory.",
    grain="one row per job or job step and place in a scheduler's table",
    primary_key=("source_path", "line_no"),
    column_names=(
        "scheduler",
        "cluster",
        "job_id",
        "job_id_raw",
        "job_step",
        "job_name",
        "job_partition",
        "job_state",
        "job_reason",
        "exit_code",
        "exit_signal",
        "submitted_at",
        "started_at",
        "ended_at",
        "elapsed_s",
        "time_limit_s",
        "queue_wait_s",
        "restarts",
        "num_nodes",
        "num_gpus",
        "accelerator",
        "hosts",
        "host_mem_peak_bytes",
        "work_dir",
        "stdout_path",
        "run_dir",
        "text",
        "source_path",
        "line_no",
    ),
    overrides=(
        Column("started_at", pl.Datetime("us"), "when the job or step started (as printed, no time zone)"),
        Column("ended_at", pl.Datetime("us"), "when the job or step ended (as printed, no time zone)"),
        Column("job_id", pl.String, "job id as the scheduler shows it, array tasks as 123_4; a pod's name"),
        Column("run_dir", pl.String, "directory that holds the table"),
    ),
)
