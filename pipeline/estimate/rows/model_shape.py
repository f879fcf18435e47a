"""The shape of a row's model: what it states, what the registry knows of it, and what follows from its parameters."""

from __future__ import annotations

from typing import Any

from sweepscope.pipeline.reference.model_shape import ModelShape
from sweepscope.pipeline.reference.models import find_family, find_model, shape_of
from sweepscope.schemas.thresholds import SHAPE_TOLERANCE

SHAPE = (
    "num_layers",
    "hidden_size",
    "num_heads",
    "num_kv_heads",
    "head_dim",
    "ffn_hidden_size",
    "gated_mlp",
    "vocab_size",
    "tie_word_embeddings",
    "num_experts",
    "experts_per_token",
    "expert_ffn_hidden_size",
    "shared_expert_ffn_hidden_size",
    "num_dense_layers",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "positions",
)
_WIDTH_STEP = 64
_EXACT = 1e-4
"""What biases and padding may add to parameters that were counted; a step of the width adds more."""


def _with_registry(told: dict[str, Any], model: str) -> tuple[dict[str, Any], list[str]]:
    """`told` with what the registry has of the model, unless that contradicts what is stated; and a word on it."""
    entry = find_model(model) if model else None
    named = ("num_layers", "hidden_size", "num_heads", "ffn_hidden_size", "num_experts")
    if entry is None or any(told[key] is not None and entry.get(key) not in (None, told[key]) for key in named):
        return told, []
    missing = [key for key in SHAPE if told[key] is None and entry.get(key) is not None]
    said = [f"{', '.join(missing)} of {entry['model']}"] if missing else []
    return {**told, **{key: entry[key] for key in missing}}, said


def complete_shape(row: dict[str, Any]) -> tuple[ModelShape | None, str, list[str]]:
    """(shape, "", assumptions) of a row, or (None, reason, []).

    A registry entry fills what is missing only if it contradicts nothing stated. Gate and tying come, in this order,
    from the row, the registry, the only combination that gives the stated parameters, and the family's name.
    """
    name = row.get("model") or ""
    told, assumed = _with_registry({key: row.get(key) for key in SHAPE}, name)
    wanted = ["num_layers", "hidden_size", "num_heads", "vocab_size"]
    if told["num_experts"]:
        wanted += ["experts_per_token", "expert_ffn_hidden_size"]
    if not told["num_experts"] or told["num_dense_layers"]:
        wanted.append("ffn_hidden_size")
    absent = [key for key in wanted if not told[key]]
    if absent == ["ffn_hidden_size"] and _is_four_times_wide(told, row.get("stated_params")):
        told.update(ffn_hidden_size=4 * int(told["hidden_size"]), gated_mlp=False)
        assumed.append("ffn_hidden_size = 4 x hidden_size, not gated, from the stated parameters")
        absent = []
    if absent == ["ffn_hidden_size"] and (width := _width_of_params(told, row.get("stated_params"))):
        told["ffn_hidden_size"] = width
        assumed.append(f"ffn_hidden_size = {width} from the stated parameters")
        absent = []
    if absent:
        return None, f"shape unknown: {', '.join(absent)} not stated, and the model is not in the registry", []
    if not told["head_dim"] and int(told["hidden_size"]) % int(told["num_heads"]):
        return None, f"hidden_size {told['hidden_size']} is not divisible by {told['num_heads']} heads", []
    if told["num_kv_heads"] is None:
        told["num_kv_heads"] = told["num_heads"]
        assumed.append("num_kv_heads = num_heads")
    if told["num_experts"]:
        for key in ("shared_expert_ffn_hidden_size", "num_dense_layers"):
            if told[key] is None:
                told[key] = 0
                assumed.append(f"{key} = 0")
    if (row.get("attention") or "") == "mla" and not told["kv_lora_rank"]:
        return None, "latent attention without kv_lora_rank", []
    family = find_family(name)
    if told["positions"] is None:
        told["positions"] = row.get("seq_len") if family and family["learned_positions"] else 0
    return _with_gate_and_tying(told, row.get("stated_params"), family, assumed)


def _is_four_times_wide(told: dict[str, Any], stated: float | None) -> bool:
    """Whether the stated parameters are those of a plain MLP of the usual width (2005.14165, table 2.1)."""
    if not stated or told["gated_mlp"] or told["num_experts"] or int(told["hidden_size"]) % int(told["num_heads"]):
        return False
    usual = {**told, "ffn_hidden_size": 4 * int(told["hidden_size"]), "gated_mlp": False}
    usual["num_kv_heads"] = told["num_kv_heads"] or told["num_heads"]
    ties = [told["tie_word_embeddings"]] if told["tie_word_embeddings"] is not None else [True, False]
    sizes = [shape_of({**usual, "tie_word_embeddings": tie}).params for tie in ties]
    return min(abs(size / stated - 1) for size in sizes) < SHAPE_TOLERANCE


def _width_of_params(told: dict[str, Any], stated: float | None) -> int | None:
    """The one feed-forward width that gives the stated parameters of a dense model of which all else is told.

    None for rounded parameters ("7B"), of which no multiple of 64, as widths are, or several would do.
    """
    is_told = told["gated_mlp"] is not None and told["tie_word_embeddings"] is not None
    is_whole = told["head_dim"] or int(told["hidden_size"]) % int(told["num_heads"]) == 0
    if not stated or stated % 1_000_000 == 0 or told["num_experts"] or not is_told or not is_whole:
        return None
    dense = {**told, "num_kv_heads": told["num_kv_heads"] or told["num_heads"], "positions": told["positions"] or 0}

    def params(width: int) -> int:
        return shape_of({**dense, "ffn_hidden_size": width}).params

    width = _WIDTH_STEP * round((stated - params(0)) / (params(_WIDTH_STEP) - params(0)))
    return width if width > 0 and abs(params(width) / stated - 1) < _EXACT else None


def _with_gate_and_tying(
    told: dict[str, Any], stated: float | None, family: dict[str, Any] | None, assumed: list[str]
) -> tuple[ModelShape | None, str, list[str]]:
    open_keys = [key for key in ("gated_mlp", "tie_word_embeddings") if told[key] is None]
    if not open_keys:
        return shape_of(told), "", assumed
    gates = [told["gated_mlp"]] if told["gated_mlp"] is not None else [True, False]
    ties = [told["tie_word_embeddings"]] if told["tie_word_embeddings"] is not None else [True, False]
    options = [{**told, "gated_mlp": gate, "tie_word_embeddings": tie} for gate in gates for tie in ties]
    if stated:
        errors = [abs(shape_of(option).params / stated - 1) for option in options]
        order = sorted(range(len(options)), key=errors.__getitem__)
        best, second = errors[order[0]], errors[order[1]]
        if best < SHAPE_TOLERANCE and (second > 2 * best + 0.002):
            chosen = options[order[0]]
            told_words = ", ".join(f"{key}={str(chosen[key]).lower()}" for key in open_keys)
            return shape_of(chosen), "", [*assumed, f"{told_words} from the stated parameters"]
    if family is None:
        return None, f"{' and '.join(open_keys)} not stated, and neither size nor name of the model tells", []
    for key in open_keys:
        told[key] = family[key]
    told_words = ", ".join(f"{key}={str(told[key]).lower()}" for key in open_keys)
    return shape_of(told), "", [*assumed, f"{told_words} from the family's name"]
