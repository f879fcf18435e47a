"""Views on reliability and cost: how runs end, how often, what that costs, and what to submit again."""

from __future__ import annotations

from sweepscope.schemas import vocab
from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import Column, flag, integer, number, text
from sweepscope.schemas.core.table import Table


def _spent(word: str) -> Column:
    if word == "held":
        return number("gpu_hours_held", "GPU·h", "accelerator-hours held by runs after they had completed", minimum=0)
    meaning = vocab.OUTCOME[word]
    return number(f"gpu_hours_{word}", "GPU·h", f"accelerator-hours of runs that ended so: {meaning}", minimum=0)


RUN_OUTCOMES = Table(
    name="run_outcomes",
    description="The class of each run's ending, whether it failed, whether it is ranked, and what it cost.",
    grain="one row per run attempt that counts (duplicates are left out)",
    primary_key=("run_id",),
    layer="view",
    is_stored=True,
    is_run_by_run=True,
    redefines=("gpu_hours", "gpu_hours_held", "gpu_hours_idle"),
    columns=columns(
        "run_id origin sweep status",
        text("outcome", "class of the run's ending", vocab.OUTCOME),
        flag("is_failure", "the run ended without completing; NULL where that is unknown (see `outcome`)"),
        flag("has_cell", "model, node count, sequence length and batch are known"),
        flag("is_ranked", "completed, with a cell and a throughput, and not in quarantine"),
        "strategy",
        text("configuration_id", "hash of all that a user can choose: equal for repeats of one configuration"),
        text("day", "date of the start as logged, YYYY-MM-DD"),
        "duration_s",
        number("gpu_hours", "GPU·h", "accelerator-hours of the run; those held for its job, where known", minimum=0),
        number("gpu_hours_idle", "GPU·h", "of gpu_hours, beyond the log: start-up, waiting, hanging", minimum=0),
        number(
            "gpu_hours_held", "GPU·h", "of those, held after the run had completed; NULL where none were", minimum=0
        ),
        number(
            "gpu_hours_kept",
            "GPU·h",
            "of those, of steps of a failure from which a later attempt of the run went on; NULL where none did",
            minimum=0,
        ),
    ),
)

FAILURE_RATES = Table(
    name="failure_rates",
    description="How often runs fail, by one dimension at a time (a configuration pattern, host, day, sweep ...), with "
    "the class of the failures, a 95 % interval and the accelerator-hours lost.",
    grain="one row per origin, sweep (NULL: over all sweeps of the origin), dimension and value",
    primary_key=("origin", "sweep", "dimension", "value"),
    layer="view",
    nullable_key=("sweep",),
    redefines=("sweep", "value"),
    columns=columns(
        "origin",
        text("sweep", "the sweep; NULL: over all sweeps of the origin"),
        text("dimension", "what runs are grouped by", vocab.DIMENSION),
        text("value", "value of the dimension, as text"),
        "runs_tried runs_judged runs_completed",
        integer("runs_held", "count", "of the completed, runs that then held their GPUs until something ended the job"),
        "runs_failed",
        integer("runs_oom", "count", "failures: the GPU ran out of memory"),
        integer("runs_hang", "count", "failures: a collective hung"),
        integer("runs_infra", "count", "failures: node, network or preemption"),
        integer("runs_timeout", "count", "failures: the scheduler's time limit"),
        integer("runs_crash", "count", "failures: an exception, or the host ran out of memory"),
        integer("runs_unexplained", "count", "failures without a reason in the log or the source"),
        "failure_rate failure_rate_low failure_rate_high gpu_hours_lost",
        integer("failures_without_gpu_hours", "count", "failures whose accelerator-hours are unknown"),
    ),
)

SWEEP_COST = Table(
    name="sweep_cost",
    description="Accelerator-hours of each sweep by how its runs ended, and how many passed until its winners had run.",
    grain="one row per origin and sweep",
    primary_key=("origin", "sweep"),
    layer="view",
    is_stored=True,
    nullable_key=("sweep",),
    columns=columns(
        "origin sweep runs_tried runs_completed runs_failed gpu_hours",
        tuple(_spent(word) for word in vocab.OUTCOME if word not in {"running", "undecided"}),
        number("gpu_hours_undecided", "GPU·h", "accelerator-hours of runs that go on, or cannot be judged", minimum=0),
        number(
            "gpu_hours_idle",
            "GPU·h",
            "of gpu_hours, GPUs held without training, where known; NULL: of no run",
            minimum=0,
        ),
        number("gpu_hours_startup", "GPU·h", "before the first step, where logs tell; NULL: of no run", minimum=0),
        number("gpu_hours_queued", "GPU·h", "wait in the queue x accelerators asked for: passed, not spent", minimum=0),
        integer("runs_without_gpu_hours", "count", "run attempts whose accelerator-hours are unknown: in no sum here"),
        integer("cells_answered", "count", "cells with a ranked run of this sweep"),
        integer("cells_in_order", "count", "of those, cells of which every run's start is known"),
        number(
            "gpu_hours_until_winner",
            "GPU·h",
            "accelerator-hours of the runs that began before or with the winner's first run, over the cells in order",
            minimum=0,
        ),
        number("gpu_hours_of_cells_in_order", "GPU·h", "accelerator-hours of all runs of those cells", minimum=0),
    ),
)

STRETCHED_RUNS = Table(
    name="stretched_runs",
    description="Runs that took many times what like runs of their sweep take, and where the time went.",
    grain="one row per stretched run attempt",
    primary_key=("run_id",),
    layer="view",
    is_stored=True,
    columns=columns(
        "run_id origin sweep framework model num_nodes num_gpus layout status started_at duration_s",
        number("usual_duration_s", "s", "median of completed runs of the same sweep, cell and steps", positive=True),
        number("stretch", "1", "duration_s / usual_duration_s", positive=True),
        integer("runs_alike", "count", "completed runs behind the usual duration"),
        number("in_steps_s", "s", "steps times median step time: what the steps themselves account for", positive=True),
        text("stretch_cause", "where the time went", vocab.STRETCH_CAUSE),
        number("excess_gpu_hours", "GPU·h", "accelerator-hours beyond the usual duration"),
        "source_path",
    ),
)

RETRY_LIST = Table(
    name="retry_list",
    description="Configurations without an answer because of the machines: worth submitting again as they are.",
    grain="one row per configuration and sweep, shown by its last attempt that the infrastructure ended",
    primary_key=("run_id",),
    layer="view",
    is_stored=True,
    redefines=("reason", "status"),
    columns=columns(
        "run_id origin sweep framework model num_nodes num_gpus accelerator seq_len gbs_tokens layout "
        "recompute precision",
        text("status", "how the last of them ended", vocab.STATUS),
        text("reason", "why it is worth another try"),
        "status_confidence status_evidence",
        integer("evidence_line_no", "count", "line of the log with the evidence", minimum=1),
        integer("attempts", "count", "run attempts of this configuration so far", minimum=1),
        integer("infra_failures", "count", "of those, ended by node, network, preemption or hang", minimum=1),
        "last_step steps_planned gpu_hours_lost ended_at job_id run_dir source_path",
    ),
)

VIEWS = (FAILURE_RATES, SWEEP_COST, STRETCHED_RUNS, RETRY_LIST)
