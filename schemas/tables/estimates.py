"""Estimates, the view that compares them with measurements, and scores of the rules on layouts."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import flag, integer, number, text
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.tables.bandwidths import ACCELERATOR_LINKS
from sweepscope.schemas.tables.nccl import NCCL_FILES

_TIME = {
    "linear": "matrix products of the layers",
    "attention": "attention scores and values",
    "elementwise": "norms, activation functions, kernel launches",
    "head": "output projection and loss",
    "recompute": "work done again in the backward pass",
    "tp": "tensor-parallel exchange that compute does not hide",
    "cp": "context-parallel exchange that attention does not hide",
    "ep": "exchange of tokens between experts",
    "pp": "transfers between pipeline stages",
    "dp": "exchange of gradients and weights that compute does not hide",
    "stall": "waiting for the launch of exchanges beside a pipeline: the framework's cost, where its profile has one",
    "bubble": "idle time of the pipeline",
    "optimizer": "optimizer and gradient accumulation",
    "rest": "fixed cost per step and micro-batch",
    "stragglers": "waiting for the slowest node: larger clusters, where the profile has learned that",
}

_TIME_COLUMNS = {
    part: number(f"est_time_{part}_s", "s", f"estimated per step: {what}", minimum=0) for part, what in _TIME.items()
}

_COMM = {
    "tp": "tensor parallelism, but for what recomputation repeats",
    "cp": "context parallelism",
    "ep": "experts, but for what recomputation repeats",
    "dp": "data parallelism",
    "pp": "pipeline stages",
}
RATIO_COLUMNS = (
    *(
        number(f"est_comm_{name}_s", "s", f"estimated exchange per step, hidden or not: {what}", minimum=0)
        for name, what in _COMM.items()
    ),
    number(
        "est_rho_tp",
        "1",
        "compute over the exchange of tensor parallelism; near 1 TP communicates as long as it "
        "computes; NULL without TP",
        minimum=0,
    ),
    number(
        "est_compute_per_comm",
        "1",
        "compute over all communication, hidden or not; a rule of thumb asks for 10",
        minimum=0,
    ),
    number(
        "est_flops_per_comm_byte",
        "FLOP/byte",
        "arithmetic intensity: the model's FLOPs over bytes sent, per accelerator",
        minimum=0,
    ),
    number(
        "est_bubble_fraction", "fraction", "share of the step that waits for the pipeline to fill and drain", minimum=0
    ),
    number(
        "est_dp_per_pass",
        "1",
        "data-parallel exchange over the passes that could hide it: the last micro-batch's "
        "backward pass, under ZeRO-2 without a pipeline every one, under ZeRO-3 the forward passes too; above 1 it "
        "cannot be hidden",
        minimum=0,
    ),
    number(
        "est_pp_break_even_gas",
        "count",
        "micro-batches from which twice as many pipeline stages idle less than the "
        "data-parallel exchange now exposes; NULL: nothing exposed",
        minimum=0,
    ),
    number(
        "est_mfu_overlapped",
        "fraction",
        "MFU if overlap were perfect: what all compute outlasts does not show",
        minimum=0,
    ),
)
"""The ratios that decide between dimensions, which the verb, the search and the table share."""

ESTIMATES = Table(
    name="estimates",
    description="Memory, step time and MFU of every run as first principles predict them, with the breakdown.",
    grain="one row per run attempt",
    primary_key=("run_id",),
    columns=columns(
        "run_id origin",
        text("est_status", "ok, or why the run could not be estimated"),
        text("est_assumptions", "what the run does not say and the estimate assumes; NULL: nothing"),
        "est_profile est_mem_bytes",
        number("est_mem_reserved_bytes", "bytes", "the same with the allowance for fragmentation", minimum=0),
        flag("est_fits", "the estimate fits into the accelerator's memory"),
        "est_step_time_s",
        number("est_tokens_per_s_per_gpu", "tokens/s/GPU", "estimated throughput per accelerator", minimum=0),
        "est_mfu est_mem_weights_bytes est_mem_gradients_bytes est_mem_optimizer_bytes "
        "est_mem_activations_bytes est_mem_logits_bytes est_mem_buffers_bytes",
        number("est_mem_fragmentation_bytes", "bytes", "allowance between allocated and reserved", minimum=0),
        tuple(_TIME_COLUMNS.values()),
        RATIO_COLUMNS,
        number("est_penalty", "1", "learned slow-down on top of the physics; NULL: none learned here", positive=True),
        number("est_penalty_lo", "1", "lower end of the penalty's 80 % interval, from unseen cells", positive=True),
        number("est_penalty_hi", "1", "upper end of the penalty's 80 % interval, from unseen cells", positive=True),
        number(
            "expected_step_time_s",
            "s",
            "est_step_time_s x est_penalty; no test for the runs that the penalty was learned on",
            positive=True,
        ),
        number("est_step_time_lo_s", "s", "80 % of comparable runs lie from this to the other end", positive=True),
        number("est_step_time_hi_s", "s", "upper end, around the expected step time, else the physics'", positive=True),
        number("est_mfu_lo", "fraction", "MFU at est_step_time_hi_s", minimum=0),
        number("est_mfu_hi", "fraction", "MFU at est_step_time_lo_s", minimum=0),
        integer("est_interval_runs", "runs", "comparable runs behind the time's interval; NULL: too few", minimum=1),
        text("est_interval_basis", "which runs those are: of the profile, by pattern, or of other frameworks"),
        number("expected_mem_bytes", "bytes", "est_mem_bytes times the learned factor; NULL: none learned", minimum=0),
        number("est_mem_lo_bytes", "bytes", "lower end of the 80 % interval of peak allocated memory", minimum=0),
        number("est_mem_hi_bytes", "bytes", "upper end of the 80 % interval of peak allocated memory", minimum=0),
        integer("est_mem_interval_runs", "runs", "comparable runs behind memory's interval; NULL: too few", minimum=1),
        "source_path line_no",
    ),
)

ESTIMATOR_RESIDUALS = Table(
    name="estimator_residuals",
    description="Completed runs beside their estimate: how far each is from what its hardware allows.",
    grain="one row per completed run attempt that could be estimated (duplicates and quarantined runs left out)",
    primary_key=("run_id",),
    layer="view",
    columns=columns(
        "run_id origin sweep framework accelerator model num_nodes num_gpus layout strategy",
        text("pattern", "how the layout lies on the nodes, and its ZeRO stage: what penalties go by"),
        "est_profile step_time_s est_step_time_s",
        number("time_ratio", "1", "measured over estimated step time; 1 = as estimated", positive=True),
        number("hardware_time_ratio", "1", "the same without launch stalls; 1 = as the hardware allows", positive=True),
        number("expected_time_ratio", "1", "the same with the learned penalty; NULL: none learned", positive=True),
        flag("is_penalised", "measured more than 1.5 times slower than estimated: the implementation's doing"),
        "mfu est_mfu mem_peak_allocated_bytes est_mem_bytes",
        number("mem_ratio", "1", "measured over estimated peak of allocated memory", positive=True),
        "source_path",
    ),
)

RUN_RATIOS = Table(
    name="run_ratios",
    description="The ratios that decide between dimensions, as estimated for every run: what communicates and what "
    "shows of it, compute over communication, bubble, MFU if overlap were perfect; and what NCCL's channels take.",
    grain="one row per run attempt that could be estimated or has NCCL output (duplicates left out)",
    primary_key=("run_id",),
    layer="view",
    columns=columns(
        "run_id origin sweep framework accelerator model num_nodes num_gpus layout mfu est_mfu est_step_time_s",
        tuple(column for column in RATIO_COLUMNS if column.name.startswith("est_comm_")),
        tuple(_TIME_COLUMNS[part] for part in _COMM),
        tuple(column for column in RATIO_COLUMNS if not column.name.startswith("est_comm_")),
        tuple(column for column in NCCL_FILES.columns if column.name == "num_channels"),
        tuple(column for column in ACCELERATOR_LINKS.columns if column.name == "processors"),
        number(
            "nccl_processor_share",
            "fraction",
            "processors that NCCL takes while it communicates, one per channel: compute beside it has the others",
            minimum=0,
        ),
        "source_path",
    ),
)

RULE_SCORES = Table(
    name="rule_scores",
    description="How each rule of the documents on choosing layouts did on the runs of each origin (see `sweepscope "
    "rules`): in how many cells that could tell the best layout that follows it was within 2 % of the fastest.",
    grain="one row per rule and origin in which it applies to a cell",
    primary_key=("rule_id", "origin"),
    layer="view",
    columns=columns(
        text("rule_id", "name of a rule on choosing layouts, as in data/rules/rules.toml"),
        "origin",
        text("rule_set", "rules that one document gives as one recipe"),
        text("document", "title of the document that advises so"),
        text("section", "where in the document"),
        text("recipe_step", "step of the recipe that the rule belongs to: fit, batch or throughput"),
        text("says", "the rule in one sentence"),
        integer("rule_cells", "count", "cells in which the rule applies"),
        integer("cells_tested", "count", "of rule_cells, those with five layouts or more, some following it, some not"),
        integer("cells_held", "count", "of cells_tested, those whose best follower is within 2 % of the fastest"),
        number("hit_rate", "fraction", "cells_held / cells_tested; NULL when nothing tested the rule", minimum=0),
        number("selects", "fraction", "layouts that follow the rule: what one drawn at random would hit", minimum=0),
        number("winner_rate", "fraction", "tested cells whose fastest layout follows the rule", minimum=0),
        number("regret", "fraction", "throughput that the best follower loses to the fastest, mean", minimum=0),
        number("typical_regret", "fraction", "the same of the median follower", minimum=0),
        number("other_regret", "fraction", "the same of the median layout that does not follow", minimum=0),
    ),
)
