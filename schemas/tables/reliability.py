"""Views on reliability and cost: how runs end, how often, what that costs, and what to submit again."""

from __future__ import annotations

from sweepscope.schemas import vocab
from sweepscope.schemas.columns.reliability import COST, RATES, STRETCHED
from sweepscope.schemas.core.column import float_column, text_column
from sweepscope.schemas.core.table import Table

_RATES = tuple(column.name for column in RATES if column.name != "dimension")
_COST = tuple(column.name for column in COST)

RUN_OUTCOMES = Table(
    name="run_outcomes",
    description="The class of each run's ending, whether it failed, whether it is ranked, and what it cost.",
    grain="one row per run attempt that counts (duplicates are left out)",
    primary_key=("run_id",),
    column_names=(
        "run_id",
        "origin",
        "sweep",
        "status",
        "outcome",
        "is_failure",
        "has_cell",
        "is_ranked",
        "strategy",
        "configuration_id",
        "day",
        "duration_s",
        "gpu_hours",
        "gpu_hours_idle",
    ),
    layer="view",
    overrides=(
        float_column(
            "gpu_hours",
            "GPU·h",
            "accelerator-hours that the run took; all that the scheduler held for its job, where that is known",
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
    column_names=(
        "origin",
        "sweep",
        "dimension",
        "value",
        "runs_tried",
        "runs_judged",
        "runs_completed",
        *(name for name in _RATES if name != "runs_judged"),
    ),
    layer="view",
    overrides=(
        text_column("sweep", "the sweep; NULL: over all sweeps of the origin"),
        text_column("value", "value of the dimension, as text"),
    ),
    nullable_key=("sweep",),
)

SWEEP_COST = Table(
    name="sweep_cost",
    description="Accelerator-hours of each sweep by how its runs ended, and how many passed until its winners had run.",
    grain="one row per origin and sweep",
    primary_key=("origin", "sweep"),
    column_names=("origin", "sweep", "runs_tried", "runs_completed", "runs_failed", "gpu_hours", *_COST),
    layer="view",
    nullable_key=("sweep",),
)

STRETCHED_RUNS = Table(
    name="stretched_runs",
    description="Runs that took many times what like runs of their sweep take, and where the time went.",
    grain="one row per stretched run attempt",
    primary_key=("run_id",),
    column_names=(
        "run_id",
        "origin",
        "sweep",
        "framework",
        "model",
        "num_nodes",
        "num_gpus",
        "layout",
        "status",
        "started_at",
        "duration_s",
        *(column.name for column in STRETCHED),
        "source_path",
    ),
    layer="view",
)

RETRY_LIST = Table(
    name="retry_list",
    description="Configurations without an answer because of the machines: worth submitting again as they are.",
    grain="one row per configuration and sweep, shown by its last attempt that the infrastructure ended",
    primary_key=("run_id",),
    column_names=(
        "run_id",
        "origin",
        "sweep",
        "framework",
        "model",
        "num_nodes",
        "num_gpus",
        "accelerator",
        "seq_len",
        "gbs_tokens",
        "layout",
        "recompute",
        "precision",
        "status",
        "reason",
        "status_confidence",
        "status_evidence",
        "evidence_line_no",
        "attempts",
        "infra_failures",
        "last_step",
        "steps_planned",
        "gpu_hours_lost",
        "ended_at",
        "job_id",
        "run_dir",
        "source_path",
    ),
    layer="view",
    overrides=(
        text_column("reason", "why it is worth another try"),
        text_column("status", "how the last of them ended", vocab.STATUS),
    ),
)

VIEWS = (FAILURE_RATES, SWEEP_COST, STRETCHED_RUNS, RETRY_LIST)
