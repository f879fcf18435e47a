"""Rows as `queries.cells` returns them, with overrides, and grids made of them."""

from __future__ import annotations

from typing import Any

import polars as pl

from sweepscope.dashboard.format.implementation import IMPLEMENTATION
from sweepscope.dashboard.selection.filters import Filters
from sweepscope.dashboard.view_models import cells
from sweepscope.schemas.registry import COLUMNS

Row = dict[str, Any]

_EXTRA = {
    "mem_peak_bytes": pl.Int64,
    **{f"runner_up_{name}": pl.String for name in IMPLEMENTATION},
    "differing": pl.List(pl.String),
    "margin": pl.Float64,
    "noise": pl.Float64,
    "layouts_completed": pl.Int64,
    "chance_best": pl.Float64,
    "is_tie": pl.Boolean,
}


def cell(model: str = "8.86B", num_nodes: int = 16, **changes: Any) -> Row:
    """A cell with a winner 5.8 % faster than the runner-up, on 8 H100 a node."""
    return {
        "model": model,
        "params": 8_860_000_000,
        "num_nodes": num_nodes,
        "num_gpus": 8 * num_nodes,
        "gpus_per_node": 8,
        "memory_bytes": 85_471_526_912,
        "states_lower_bound_bytes": 16 * 8.86e9 / (8 * num_nodes),
        "cell_state": "measured",
        "cell_reason": None,
        "run_id": f"{model}-{num_nodes}",
        "variant": None,
        "layout": "DP16 TP8 PP1 · GAS2 MBS8 · Z0",
        "framework": "nanotron",
        "framework_version": None,
        "torch_version": None,
        "nccl_version": None,
        "cluster": None,
        "dp": 16,
        "tp": 8,
        "pp": 1,
        "cp": 1,
        "ep": None,
        "vpp": None,
        "zero_stage": 0,
        "mbs": 8,
        "gas": 2,
        "recompute": None,
        "precision": "bf16",
        "strategy": "DP+TP",
        "mfu": 0.363,
        "hfu": None,
        "usd_per_gpu_hour": None,
        "usd_per_m_tokens": None,
        "tokens_per_s_per_gpu": 6028.0,
        "tokens_per_s": 6028.0 * 8 * num_nodes,
        "step_time_s": 1.36,
        "model_tflops_per_gpu": 359.0,
        "mem_peak_allocated_bytes": 71_833_747_456,
        "mem_peak_reserved_bytes": None,
        "repeats": 1,
        "repeat_spread": None,
        "mean_tokens_per_s_per_gpu": 6028.0,
        "repeat_speeds": "6028",
        "run_noise": 0.05,
        "noise_basis": "bundled",
        "noise_repeats": 0,
        "low_tokens_per_s_per_gpu": 5465.3,
        "high_tokens_per_s_per_gpu": 6648.6,
        "mem_peak_bytes": 71_833_747_456,
        "runner_up_run_id": "second",
        "runner_up_framework": "nanotron",
        **{f"runner_up_{name}": None for name in IMPLEMENTATION[1:]},
        "differing": [],
        "runner_up_layout": "DP32 TP4 PP1 · GAS4 MBS2 · Z0",
        "runner_up_tokens_per_s_per_gpu": 5696.0,
        "margin": 0.058,
        "layouts_completed": 114,
        "noise": 0.073,
        "is_tie": False,
        "chance_best": 0.66,
    } | changes


def empty(model: str = "80B", num_nodes: int = 1, *, state: str = "wont_fit", **changes: Any) -> Row:
    """A cell without a ranked run: everything about a winner is NULL."""
    winner = dict.fromkeys(
        set(cell())
        - {
            "model",
            "params",
            "num_nodes",
            "num_gpus",
            "gpus_per_node",
            "memory_bytes",
            "states_lower_bound_bytes",
            "cell_state",
            "cell_reason",
            "layouts_completed",
            "noise",
        }
    )
    return cell(model, num_nodes, params=80_000_000_000, states_lower_bound_bytes=16 * 80e9 / (8 * num_nodes)) | {
        **winner,
        "cell_state": state,
        **changes,
    }


def outcome(
    model: str = "8.86B", num_nodes: int = 16, *, status: str = "completed", runs: int = 1, **changes: Any
) -> Row:
    """How often runs of one cell ended in one status."""
    return {
        "model": model,
        "num_nodes": num_nodes,
        "num_gpus": 8 * num_nodes,
        "status": status,
        "is_ranked": status == "completed",
        "is_failure": {"completed": False, "running": None}.get(status, True),
        "runs": runs,
        "unranked_reason": None,
    } | changes


def cells_frame(*rows: Row) -> pl.DataFrame:
    """Rows in the types of the store."""
    schema = {name: _EXTRA.get(name) or COLUMNS[name].dtype for name in cell()}
    return pl.DataFrame(list(rows), schema=schema)


def outcomes_frame(*rows: Row) -> pl.DataFrame:
    """Outcomes in the types of the store."""
    schema = {
        "model": pl.String,
        "num_nodes": pl.Int64,
        "num_gpus": pl.Int64,
        "status": pl.String,
        "is_ranked": pl.Boolean,
        "is_failure": pl.Boolean,
        "runs": pl.Int64,
        "unranked_reason": pl.String,
    }
    return pl.DataFrame(list(rows), schema=schema)


def grid(*rows: Row, outcomes: list[Row] | None = None, filters: Filters | None = None) -> pl.DataFrame:
    """A settled grid; without `outcomes`, each answered cell completed one run and each empty one failed once."""
    if outcomes is None:
        outcomes = [
            outcome(
                row["model"],
                row["num_nodes"],
                num_gpus=row["num_gpus"],
                status="completed" if row["run_id"] else "failed",
            )
            for row in rows
            if row["cell_state"] != "not_run"
        ]
    return cells.with_outcomes(cells_frame(*rows), outcomes_frame(*outcomes), filters or Filters())


def only(frame: pl.DataFrame) -> Row:
    """The single row of a frame."""
    assert frame.height == 1
    return frame.row(0, named=True)
