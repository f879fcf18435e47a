"""Columns of what the estimator predicts. Memory parts add up to est_mem_bytes, time parts to est_step_time_s."""

from __future__ import annotations

from sweepscope.schemas.core.column import bool_column, float_column, int_column, text_column

_MEMORY = {
    "weights": "weights",
    "gradients": "gradients kept over a step",
    "optimizer": "optimizer states and master weights",
    "activations": "activations kept for the backward pass",
    "logits": "logits and what the loss needs at once",
    "buffers": "gathered weights, working set of one layer, context",
}
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

_EXPECTED = (
    float_column("est_penalty", "1", "learned slow-down on top of the physics; NULL: none learned here", positive=True),
    float_column("est_penalty_lo", "1", "lower end of the penalty's 80 % interval, from unseen cells", positive=True),
    float_column("est_penalty_hi", "1", "upper end of the penalty's 80 % interval, from unseen cells", positive=True),
    float_column(
        "expected_step_time_s",
        "s",
        "est_step_time_s x est_penalty; no test for the runs that the penalty was learned on",
        positive=True,
    ),
    float_column("est_step_time_lo_s", "s", "80 % of comparable runs lie from this to the other end", positive=True),
    float_column(
        "est_step_time_hi_s",
        "s",
        "upper end of the interval: around the expected step time, else the physics' own",
        positive=True,
    ),
    float_column("est_mfu_lo", "fraction", "MFU at est_step_time_hi_s", minimum=0),
    float_column("est_mfu_hi", "fraction", "MFU at est_step_time_lo_s", minimum=0),
    int_column("est_interval_runs", "runs", "comparable runs behind the time's interval; NULL: too few", minimum=1),
    text_column("est_interval_basis", "which runs those are: profile and pattern"),
    float_column(
        "expected_mem_bytes",
        "bytes",
        "est_mem_bytes times what comparable runs needed over it; NULL: none learned",
        minimum=0,
    ),
    float_column("est_mem_lo_bytes", "bytes", "lower end of the 80 % interval of peak allocated memory", minimum=0),
    float_column("est_mem_hi_bytes", "bytes", "upper end of the 80 % interval of peak allocated memory", minimum=0),
    int_column("est_mem_interval_runs", "runs", "comparable runs behind memory's interval; NULL: too few", minimum=1),
)
"""What comparable runs add to the physics."""

PREDICTION = (
    text_column("est_status", "ok, or why the run could not be estimated"),
    text_column("est_assumptions", "what the run does not say and the estimate assumes; NULL: nothing"),
    text_column("est_profile", "constants used: <accelerator generation>-<framework>, or what stands in for it"),
    float_column("est_mem_bytes", "bytes", "estimated peak of allocated bytes, fullest rank", minimum=0),
    float_column("est_mem_reserved_bytes", "bytes", "the same with the allowance for fragmentation", minimum=0),
    bool_column("est_fits", "the estimate fits into the accelerator's memory"),
    float_column("est_step_time_s", "s", "estimated time per step", positive=True),
    float_column("est_tokens_per_s_per_gpu", "tokens/s/GPU", "estimated throughput per accelerator", minimum=0),
    float_column("est_mfu", "fraction", "estimated model FLOPs utilisation", minimum=0),
    *(float_column(f"est_mem_{part}_bytes", "bytes", f"estimated: {what}") for part, what in _MEMORY.items()),
    float_column("est_mem_fragmentation_bytes", "bytes", "allowance between allocated and reserved", minimum=0),
    *(float_column(f"est_time_{part}_s", "s", f"estimated per step: {what}") for part, what in _TIME.items()),
    *_EXPECTED,
)

RESIDUAL = (
    text_column("pattern", "how the layout lies on the nodes, and its ZeRO stage: what penalties go by"),
    float_column("time_ratio", "1", "measured over estimated step time; 1 = as estimated", positive=True),
    float_column(
        "hardware_time_ratio",
        "1",
        "measured step time over the estimate without the framework's launch stalls; 1 = as the hardware allows",
        positive=True,
    ),
    float_column(
        "expected_time_ratio",
        "1",
        "measured step time over the estimate times the learned penalty; NULL where none was learned",
        positive=True,
    ),
    float_column("mem_ratio", "1", "measured over estimated peak of allocated memory", positive=True),
    bool_column("is_penalised", "measured more than 1.5 times slower than estimated: the implementation's doing"),
)

SCORE = (
    text_column("rule_id", "name of a rule on choosing layouts, as in data/rules/rules.toml"),
    text_column("rule_set", "rules that one document gives as one recipe"),
    text_column("document", "title of the document that advises so"),
    text_column("section", "where in the document"),
    text_column("recipe_step", "step of the recipe that the rule belongs to: fit, batch or throughput"),
    text_column("says", "the rule, in our words"),
    int_column("rule_cells", "count", "cells in which the rule applies"),
    int_column("cells_tested", "count", "of rule_cells, those with five layouts and more, some following it, some not"),
    int_column("cells_held", "count", "of cells_tested, those whose best follower is within 2 % of the fastest"),
    float_column("hit_rate", "fraction", "cells_held / cells_tested; NULL when nothing tested the rule", minimum=0),
    float_column("selects", "fraction", "layouts that follow the rule: what one drawn at random would hit", minimum=0),
    float_column("winner_rate", "fraction", "tested cells whose fastest layout follows the rule", minimum=0),
    float_column("regret", "fraction", "throughput that the best follower loses to the fastest, mean", minimum=0),
    float_column("typical_regret", "fraction", "the same of the median follower", minimum=0),
    float_column("other_regret", "fraction", "the same of the median layout that does not follow", minimum=0),
)

COLUMNS = (*PREDICTION, *RESIDUAL, *SCORE)
