"""What the store holds that a what-if can start from, and the measured runs that it can be set beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweepscope.dashboard.queries.query import ESTIMATED_MFU, Query
from sweepscope.pipeline.reference.model_shape import ModelShape

_SHAPE = (
    "num_layers, hidden_size, num_heads, num_kv_heads, head_dim, ffn_hidden_size, gated_mlp, vocab_size, "
    "tie_word_embeddings, num_experts, experts_per_token, expert_ffn_hidden_size, shared_expert_ffn_hidden_size, "
    "num_dense_layers, kv_lora_rank"
)
_LAYOUT = "num_nodes, num_gpus, dp, tp, pp, cp, ep, vpp, gas, mbs, zero_stage, dp_replicate, recompute"
_RANKED = "status = 'completed' AND duplicate_of IS NULL AND quarantine_reason IS NULL AND step_time_s IS NOT NULL"

_SAME_MODEL = """(model = $model OR (num_layers = $num_layers AND hidden_size = $hidden_size AND num_heads = $num_heads
    AND coalesce(num_experts, 0) = $num_experts))"""


def models(origin: str | None) -> Query:
    """One row per model of the store as its runs state it: its shape, and how many runs; `origin` first, then most."""
    return Query(_models("model IS NOT NULL"), {"origin": origin})


def of_models(origin: str | None, names: Sequence[str]) -> Query:
    """The rows of `models` about some models, in the same order."""
    return Query(_models("list_contains($models, model)"), {"origin": origin, "models": list(names)})


def _models(condition: str) -> str:
    return f"""SELECT model, any_value(params) AS params, {_SHAPE}, any_value(seq_len) AS seq_len, count(*) AS runs
FROM runs
WHERE {condition} AND duplicate_of IS NULL
GROUP BY model, {_SHAPE}
ORDER BY count(*) FILTER (origin = $origin) > 0 DESC, runs DESC, model"""


def setups(origin: str | None) -> Query:
    """One row per model, accelerator, nodes, sequence, batch, framework and origin that completed, `origin` first."""
    sql = f"""SELECT model, accelerator, num_nodes, gpus_per_node, seq_len, gbs_tokens, framework, origin,
  count(*) AS runs
FROM runs
WHERE {_RANKED} AND model IS NOT NULL AND accelerator IS NOT NULL AND num_nodes IS NOT NULL
  AND seq_len IS NOT NULL AND gbs_tokens IS NOT NULL
GROUP BY model, accelerator, num_nodes, gpus_per_node, seq_len, gbs_tokens, framework, origin
ORDER BY origin = $origin DESC, runs DESC, model, num_nodes"""
    return Query(sql, {"origin": origin})


def software(origin: str, accelerator: str) -> Query:
    """Versions that completed runs of an origin on an accelerator state, with the latest start of each."""
    sql = f"""SELECT framework, framework_version, torch_version, max(started_at) AS started_at
FROM runs
WHERE {_RANKED} AND origin = $origin AND accelerator = $accelerator
GROUP BY framework, framework_version, torch_version
ORDER BY ALL"""
    return Query(sql, {"origin": origin, "accelerator": accelerator})


def cell(
    origin: str | None, model: str, shape: ModelShape, question: Mapping[str, object], framework: str | None
) -> Query:
    """Every run, of any outcome, of one question: its accelerator, num_gpus, seq_len and gbs_tokens."""
    of = "\n  AND framework = $framework" if framework is not None else ""
    of_framework = {"framework": framework} if framework is not None else {}
    sql = f"""SELECT *
FROM runs
WHERE origin = $origin AND accelerator = $accelerator AND num_gpus = $num_gpus AND seq_len = $seq_len
  AND gbs_tokens = $gbs_tokens{of}
  AND {_SAME_MODEL}
ORDER BY run_id"""
    return Query(sql, {"origin": origin, **question, **_model_params(model, shape), **of_framework})


def ranked(origin: str) -> Query:
    """Every ranked layout of an origin, with its model's experts: what rules are held against."""
    sql = """SELECT ranked_layouts.*, runs.num_experts
FROM ranked_layouts
JOIN runs USING (run_id)
WHERE ranked_layouts.origin = $origin
ORDER BY run_id"""
    return Query(sql, {"origin": origin})


def by_scale(origin: str | None) -> Query:
    """The run with the highest MFU of each model and number of GPUs: of one origin, and published ones beside it."""
    sql = """SELECT run_id, origin, model, params, num_gpus, layout, mfu, tokens_per_s_per_gpu
FROM best_configs
WHERE origin IN ($origin, 'published') AND params IS NOT NULL AND num_gpus IS NOT NULL AND mfu <= 1
QUALIFY row_number() OVER (PARTITION BY origin, model, num_gpus ORDER BY mfu DESC, run_id) = 1
ORDER BY origin, params, num_gpus, run_id"""
    return Query(sql, {"origin": origin})


def alike(origin: str | None, model: str, shape: ModelShape, accelerator: str, *, has_estimates: bool) -> Query:
    """Completed runs of one origin, model (by name or shape) and accelerator, with their estimate where there is one.

    Runs that state the same layers, width, heads and experts are of the same model, whatever its name.
    """
    joined = "LEFT JOIN estimates USING (run_id)\n" if has_estimates else ""
    estimated = f"{ESTIMATED_MFU} AS est_mfu" if has_estimates else "NULL::DOUBLE AS est_mfu"
    sql = f"""SELECT run_id, runs.origin, sweep, framework, model, layout, {_LAYOUT}, seq_len, gbs_tokens, step_time_s,
  tokens_per_s_per_gpu, mfu, mem_peak_reserved_bytes, mem_peak_allocated_bytes, {estimated}
FROM runs
{joined}WHERE {_RANKED}
  AND runs.origin = $origin AND accelerator = $accelerator
  AND {_SAME_MODEL}
ORDER BY tokens_per_s_per_gpu DESC NULLS LAST, run_id"""
    return Query(sql, {"origin": origin, "accelerator": accelerator, **_model_params(model, shape)})


def _model_params(model: str, shape: ModelShape) -> dict[str, object]:
    return {
        "model": model,
        "num_layers": shape.num_layers,
        "hidden_size": shape.hidden_size,
        "num_heads": shape.num_heads,
        "num_experts": shape.num_experts,
    }
