"""Planned runs, and what became of them."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import MODEL, columns
from sweepscope.schemas.core.column import flag, integer, number, text, time
from sweepscope.schemas.core.rules import in_order
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.vocab.plans import PLAN_MATCH, PLAN_OUTCOME, PLAN_PURPOSE

_SHAPE = tuple(name for name in MODEL if name not in ("model", "model_logged", "params", "active_params", "seq_len"))

PLAN_LAYOUT = (
    *("dp", "tp", "pp", "cp", "ep", "vpp", "zero_stage", "dp_replicate", "mbs", "gas", "gbs", "gbs_tokens"),
    *("recompute", "sequence_parallel", "pipeline_schedule"),
)
"""Columns of a planned layout, all of them filled."""

_KEY = (
    text("plan_id", "plan that the run belongs to, as in plan-3f9a1c"),
    text("planned_run_id", "name of the planned run, which its job and its directory carry: plan-3f9a1c-007"),
    integer("position", "count", "place within the plan: the most informative run is 1", minimum=1),
    text("purpose", "question that the plan is made for", PLAN_PURPOSE),
    text("mends", "planned run in whose place it is: the same with the smallest change that fits; NULL for others"),
    text("plan_change", "what was changed against the run that it mends"),
)
_BELIEVED = (
    number("believed_step_time_s", "s", "step time predicted when it was planned", positive=True),
    number("believed_lo_s", "s", "lower end of its 80 % interval; NULL: none is known", positive=True),
    number("believed_hi_s", "s", "upper end of its 80 % interval", positive=True),
    number("oom_probability", "fraction", "chance to run out of memory, as predicted when it was planned", minimum=0),
    number(
        "expected_gain",
        "fraction",
        "expected gain in throughput over the best known then, measured or planned before it",
        minimum=0,
    ),
    number("planned_gpu_hours", "GPU·h", "accelerator-hours that it is expected to take", minimum=0),
    integer("walltime_s", "s", "time limit to ask the scheduler for", minimum=1),
    text("why", "why it is worth running, with the figures"),
)

PLANNED_RUNS = Table(
    name="planned_runs",
    description="Runs that `sweepscope plan` proposes: layout, prediction and reason. Kept when logs are read again.",
    grain="one row per planned run",
    primary_key=("planned_run_id",),
    layer="reference",
    replaced_by="plan_id",
    rules=(in_order("believed_lo_s", "believed_hi_s"),),
    columns=columns(
        *_KEY,
        time("created_at", "when the plan, or this addition to it, was made (UTC)"),
        "framework cluster accelerator num_nodes gpus_per_node num_gpus model",
        _SHAPE,
        "seq_len precision",
        PLAN_LAYOUT,
        "layout",
        "steps_planned",
        text("allocator_conf", "PYTORCH_CUDA_ALLOC_CONF that it is to be started with; NULL: the default"),
        "est_step_time_s est_mem_bytes",
        _BELIEVED,
    ),
)

PLAN_STATUS = Table(
    name="plan_status",
    description="Every planned run with the run that fills it: the attempt with its name in a path or a job, else a "
    "run of the same cell, framework and layout that was read later.",
    grain="one row per planned run",
    primary_key=("planned_run_id",),
    layer="view",
    columns=columns(
        _KEY,
        "framework accelerator num_nodes num_gpus model seq_len gbs_tokens layout",
        text("plan_outcome", "how far it is", PLAN_OUTCOME),
        text("matched_by", "what joins the run to it; NULL without one", PLAN_MATCH),
        flag("is_trial", "that run was on a CPU: it shows that the files start, not how fast they are"),
        text("layout_differs", "columns in which the run has another layout than was planned, with both values"),
        "run_id",
        integer("plan_attempts", "count", "attempts with its name"),
        "status status_evidence step_time_s tokens_per_s_per_gpu mem_peak_reserved_bytes gpu_hours",
        _BELIEVED,
        number("step_time_over_predicted", "1", "measured over predicted step time", positive=True),
        flag("is_mended", "it failed, and a run that mends it completed; NULL: it did not fail"),
    ),
)

TABLES = (PLANNED_RUNS,)
VIEWS = (PLAN_STATUS,)
