"""Estimates, the view that compares them with measurements, and scores of the rules on layouts."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import flag, integer, number, text
from sweepscope.schemas.core.table import Table

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
        tuple(
            number(f"est_time_{part}_s", "s", f"estimated per step: {what}", minimum=0) for part, what in _TIME.items()
        ),
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
