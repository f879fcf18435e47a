"""Picks of a plan as rows of `planned_runs`: names, time limits and the facts that launch files need."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import ceil
from typing import Any

import polars as pl

from sweepscope.pipeline.estimate.planning.order import Pick
from sweepscope.pipeline.reference.layout_text import full_layout_text
from sweepscope.pipeline.reference.model_shape import ModelShape
from sweepscope.schemas.tables.plans import PLANNED_RUNS

SLOWER = 2.0
"""Step time over the believed one that a time limit allows for where no interval is known."""
ROOM = 1.25
"""Share of a time limit beyond what the run is expected to take at the slow end of its interval."""
SHORTEST_S = 600
"""Shortest time limit: a node that loads its software from a cold file system needs minutes."""
_MINUTE = 60


@dataclass(frozen=True)
class Heading:
    """What all rows of one plan share. `model` is the name that runs of it have in the store, `cluster` one of
    `clusters`."""

    purpose: str
    framework: str | None
    model: str
    steps: int
    created_at: datetime
    cluster: str | None = None


def new_plan_id(heading: Heading, cell: Mapping[str, Any], taken: frozenset[str]) -> str:
    """A name that no other plan has: six hexadecimal digits of the hash of what it is for and when it was made."""
    for salt in range(1_000):
        text = repr((heading, sorted(cell.items()), salt))
        name = f"plan-{hashlib.sha256(text.encode()).hexdigest()[:6]}"
        if name not in taken:
            return name
    raise RuntimeError("no free name for a plan in a thousand tries")


def walltime_s(startup_s: float, steps: int, slow_step_s: float) -> int:
    """Time limit in whole minutes for a run whose steps take up to `slow_step_s`.

    >>> walltime_s(180, 20, 4.0)
    600
    >>> walltime_s(180, 100, 20.0)
    2760
    """
    return max(ceil(ROOM * (startup_s + steps * slow_step_s) / _MINUTE) * _MINUTE, SHORTEST_S)


def planned_rows(plan_id: str, picks: tuple[Pick, ...], heading: Heading, *, after: int = 0) -> pl.DataFrame:
    """Rows of PLANNED_RUNS. `after`: position of the last row that the plan has already."""
    rows = [_row(plan_id, after + at, pick, heading) for at, pick in enumerate(picks, start=1)]
    return PLANNED_RUNS.conform(pl.DataFrame(rows, infer_schema_length=None)) if rows else PLANNED_RUNS.empty()


def run_name(plan_id: str, position: int) -> str:
    """Name of a planned run.

    >>> run_name("plan-3f9a1c", 7)
    'plan-3f9a1c-007'
    """
    return f"{plan_id}-{position:03}"


def _row(plan_id: str, position: int, pick: Pick, heading: Heading) -> dict[str, Any]:
    request, found = pick.pool.request, pick.pool.rows.row(pick.row, named=True)
    asked = request.asked
    slow = found["believed_hi_s"] or SLOWER * found["believed_step_time_s"]
    return {
        "plan_id": plan_id,
        "planned_run_id": run_name(plan_id, position),
        "position": position,
        "purpose": heading.purpose,
        "created_at": heading.created_at,
        "framework": heading.framework,
        "cluster": heading.cluster,
        "accelerator": asked.cluster.accelerator,
        "num_nodes": max(request.num_gpus // asked.cluster.gpus_per_node, 1),
        "gpus_per_node": min(asked.cluster.gpus_per_node, request.num_gpus),
        "num_gpus": request.num_gpus,
        "model": heading.model,
        **shape_columns(asked.shape),
        "seq_len": asked.seq_len,
        "precision": asked.precision,
        **layout_columns(found, gbs=request.gbs, seq_len=asked.seq_len, tp_splits=asked.profile.is_sequence_parallel),
        "steps_planned": heading.steps,
        "est_step_time_s": found["est_step_time_s"],
        "est_mem_bytes": found["est_mem_bytes"],
        **{name: found[name] for name in ("believed_step_time_s", "believed_lo_s", "believed_hi_s")},
        "oom_probability": found["oom_probability"],
        "expected_gain": pick.gain,
        "planned_gpu_hours": pick.hours,
        "walltime_s": walltime_s(pick.pool.startup_s, heading.steps, slow),
        "why": found["why"],
    }


def layout_columns(found: Mapping[str, Any], *, gbs: int, seq_len: int, tp_splits: bool) -> dict[str, Any]:
    """PLAN_LAYOUT and `layout` of a row of a search.

    `tp_splits`: tensor parallelism splits activations along the sequence, too.
    """
    schedule = found["pipeline_schedule"]
    if found["vpp"] > 1 and schedule == "1f1b":
        schedule = "interleaved"
    names = ("dp", "tp", "pp", "cp", "ep", "vpp", "zero_stage", "dp_replicate", "mbs", "gas", "recompute")
    row = {name: found[name] for name in names}
    if row["dp"] * row["cp"] == 1:
        row["zero_stage"] = 0
    return {
        **row,
        "gbs": gbs,
        "gbs_tokens": gbs * seq_len,
        "sequence_parallel": row["tp"] > 1 and tp_splits,
        "pipeline_schedule": schedule,
        "layout": full_layout_text({**row, "pipeline_schedule": schedule}),
    }


def shape_columns(shape: ModelShape) -> dict[str, Any]:
    """Columns of a model's shape, as `models.shape_of` reads them back; NULL for parts that it does not have."""
    numbers = {
        "num_layers": shape.num_layers,
        "hidden_size": shape.hidden_size,
        "num_heads": shape.num_heads,
        "num_kv_heads": shape.num_kv_heads,
        "head_dim": shape.head_dim,
        "ffn_hidden_size": shape.ffn_hidden_size,
        "vocab_size": shape.vocab_size,
        "num_experts": shape.num_experts,
        "experts_per_token": shape.experts_per_token,
        "expert_ffn_hidden_size": shape.expert_ffn_hidden_size,
        "shared_expert_ffn_hidden_size": shape.shared_ffn_hidden_size,
        "num_dense_layers": shape.num_dense_layers,
        "q_lora_rank": shape.q_lora_rank,
        "kv_lora_rank": shape.kv_lora_rank,
        "qk_rope_head_dim": shape.rope_head_dim,
    }
    flags = {"gated_mlp": shape.gated_mlp, "tie_word_embeddings": shape.tie_word_embeddings}
    return {name: value or None for name, value in numbers.items()} | flags
