"""Jobs as schedulers report them."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import integer, text, time
from sweepscope.schemas.core.rules import in_order
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.vocab.scheduler import JOB_STATE, SCHEDULER

SCHEDULER_JOBS = Table(
    name="scheduler_jobs",
    description="Every job and job step in a table of sacct, squeue, scontrol, kubectl, bjobs, "
    "qstat or Flux. The store joins it to `runs` by job id or directory.",
    grain="one row per job or job step and line of a scheduler's table",
    primary_key=("source_path", "line_no"),
    rules=(in_order("started_at", "ended_at"),),
    redefines=("started_at", "ended_at", "job_id", "run_dir"),
    columns=columns(
        text("scheduler", "which scheduler wrote the table", SCHEDULER),
        "cluster",
        text("job_id", "job id as the scheduler shows it, array tasks as 123_4; a pod's name"),
        text("job_id_raw", "the number behind an array task's id (sacct's JobIDRaw), where it is printed"),
        text("job_step", "job step: batch, extern, interactive or a number; NULL for the job as a whole"),
        text("job_name", "name of the job or step"),
        text("job_partition", "partition or queue"),
        text("job_state", "state of the job or step", JOB_STATE),
        text("job_reason", "the scheduler's reason for the state: who cancelled it, why it waits"),
        integer("exit_code", "id", "exit code of the job or step"),
        integer("exit_signal", "id", "signal that ended the job or step; 0 = none"),
        time("submitted_at", "when the job was submitted (as printed, no time zone)"),
        time("started_at", "when the job or step started (as printed, no time zone)"),
        time("ended_at", "when the job or step ended (as printed, no time zone)"),
        integer("elapsed_s", "s", "time that the job or step has run"),
        integer("time_limit_s", "s", "time limit of the job"),
        "queue_wait_s",
        integer("restarts", "count", "times that the job was started anew"),
        "num_nodes num_gpus accelerator hosts host_mem_peak_bytes",
        text("work_dir", "directory that the job was started in"),
        text("stdout_path", "file that the job's output goes to"),
        text("run_dir", "directory that holds the table"),
        "text source_path line_no",
    ),
)
