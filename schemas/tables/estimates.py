"""The table of estimates and the view that sets them beside measurements."""

from __future__ import annotations

from sweepscope.schemas.columns.estimates import PREDICTION
from sweepscope.schemas.core.table import Table

ESTIMATES = Table(
    name="estimates",
    description="Memory, step time and MFU of every run as first principles predict them, with the breakdown.",
    grain="one row per run attempt",
    primary_key=("run_id",),
    column_names=("run_id", "origin", *(column.name for column in PREDICTION), "source_path", "line_no"),
)

ESTIMATOR_RESIDUALS = Table(
    name="estimator_residuals",
    description="Completed runs beside their estimate: how far each is from what its hardware allows.",
    grain="one row per completed run attempt that could be estimated (duplicates and quarantined runs left out)",
    primary_key=("run_id",),
    column_names=(
        "run_id",
        "origin",
        "sweep",
        "framework",
        "accelerator",
        "model",
        "num_nodes",
        "num_gpus",
        "layout",
        "strategy",
        "pattern",
        "est_profile",
        "step_time_s",
        "est_step_time_s",
        "time_ratio",
        "hardware_time_ratio",
        "expected_time_ratio",
        "is_penalised",
        "mfu",
        "est_mfu",
        "mem_peak_allocated_bytes",
        "est_mem_bytes",
        "mem_ratio",
        "source_path",
    ),
    layer="view",
)

RULE_SCORES = Table(
    name="rule_scores",
    description="How each rule of the documents on choosing layouts did on the runs of each origin (see `sweepscope "
    "rules`): in how many cells that could tell the best layout that follows it was within 2 % of the fastest.",
    grain="one row per rule and origin in which it applies to a cell",
    primary_key=("rule_id", "origin"),
    column_names=(
        "rule_id",
        "origin",
        "rule_set",
        "document",
        "section",
        "recipe_step",
        "says",
        "rule_cells",
        "cells_tested",
        "cells_held",
        "hit_rate",
        "selects",
        "winner_rate",
        "regret",
        "typical_regret",
        "other_regret",
    ),
    layer="view",
)
