"""The shape of a row's model: what it states, what the registry knows of it, and what follows from its parameters."""

from __future__ import annotations

from typing import Any

from sweepscope.pipeline.reference.model_identity import shaped_alike
from sweepscope.pipeline.reference.model_shape import ModelShape
from sweepscope.pipeline.reference.models import find_family, find_model, shape_of
from sweepscope.schemas.thresholds import SHAPE_TOLERANCE

SHAPE = (
    *("num_layers", "hidden_size", "num_heads", "num_kv_heads", "head_dim", "ffn_hidden_size", "gated_mlp"),
    *("vocab_size", "tie_word_embeddings", "num_experts", "experts_per_token", "expert_ffn_hidden_size"),
    *("shared_expert_ffn_hidden_size", "num_dense_layers", "q_lora_rank", "kv_lora_rank", "qk_rope_head_dim"),
    "positions",
)
_WIDTH_STEP = 64
_EXACT = 1e-4
"""What biases and padding may add to parameters that were counted; a step of the width adds more."""


def meant_by(model: str, stated: float | None) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """(registry's row, family's row) of a model by its name, which is all that a name says of a shape; or None.

    A name that the registry does not know is that of a model that begins with the same word and has the `stated`
    parameters.
    """
    if not model:
        return None, None
    entry = find_model(model)
    if entry is None and stated and (alike := shaped_alike(model, int(stated))):
        entry = find_model(alike)
    return entry, find_family(model)


def _with_registry(known: dict[str, Any], entry: dict[str, Any] | None) -> tuple[dict[str, Any], list[str]]:
    """(`known` with what it lacks from the registry's row, notes on that); unchanged where both contradict."""
    named = ("num_layers", "hidden_size", "num_heads", "ffn_hidden_size", "num_experts")
    if entry is None or any(known[key] is not None and entry.get(key) not in (None, known[key]) for key in named):
        return known, []
    missing = [key for key in SHAPE if known[key] is None and entry.get(key) is not None]
    notes = [f"{', '.join(missing)} of {entry['model']}"] if missing else []
    return {**known, **{key: entry[key] for key in missing}}, notes


def complete_shape(row: dict[str, Any]) -> tuple[ModelShape | None, str, list[str]]:
    """(shape, "", assumptions) of a row, or (None, reason, []).

    A registry entry fills what is missing only if it contradicts nothing stated. Gate and tying come, in this order,
    from the row, the registry, the only combination that gives the stated parameters, and the family's name.
    """
    entry, family = meant_by(row.get("model") or "", row.get("stated_params"))
    known, assumed = _with_registry({key: row.get(key) for key in SHAPE}, entry)
    wanted = ["num_layers", "hidden_size", "num_heads", "vocab_size"]
    if known["num_experts"]:
        wanted += ["experts_per_token", "expert_ffn_hidden_size"]
    if not known["num_experts"] or known["num_dense_layers"]:
        wanted.append("ffn_hidden_size")
    absent = [key for key in wanted if not known[key]]
    if absent == ["ffn_hidden_size"] and _is_four_times_wide(known, row.get("stated_params")):
        known.update(ffn_hidden_size=4 * int(known["hidden_size"]), gated_mlp=False)
        assumed.append("ffn_hidden_size = 4 x hidden_size, not gated, from the stated parameters")
        absent = []
    if absent == ["ffn_hidden_size"] and (width := _width_of_params(known, row.get("stated_params"))):
        known["ffn_hidden_size"] = width
        assumed.append(f"ffn_hidden_size = {width} from the stated parameters")
        absent = []
    if absent:
        return (
            None,
            f"shape unknown: {', '.join(absent)} not stated, and the model is not in the registry (state them)",
            [],
        )
    if not known["head_dim"] and int(known["hidden_size"]) % int(known["num_heads"]):
        return None, f"hidden_size {known['hidden_size']} is not divisible by {known['num_heads']} heads", []
    if known["num_kv_heads"] is None:
        known["num_kv_heads"] = known["num_heads"]
        assumed.append("num_kv_heads = num_heads")
    if known["num_experts"]:
        for key in ("shared_expert_ffn_hidden_size", "num_dense_layers"):
            if known[key] is None:
                known[key] = 0
                assumed.append(f"{key} = 0")
    if (row.get("attention") or "") == "mla" and not known["kv_lora_rank"]:
        return None, "latent attention without kv_lora_rank", []
    if known["positions"] is None:
        known["positions"] = row.get("seq_len") if family and family["learned_positions"] else 0
    return _with_gate_and_tying(known, row.get("stated_params"), family, assumed)


def _is_four_times_wide(known: dict[str, Any], stated: float | None) -> bool:
    """Whether the stated parameters are those of a plain MLP of the usual width (2005.14165, table 2.1)."""
    if not stated or known["gated_mlp"] or known["num_experts"] or int(known["hidden_size"]) % int(known["num_heads"]):
        return False
    usual = {**known, "ffn_hidden_size": 4 * int(known["hidden_size"]), "gated_mlp": False}
    usual["num_kv_heads"] = known["num_kv_heads"] or known["num_heads"]
    ties = [known["tie_word_embeddings"]] if known["tie_word_embeddings"] is not None else [True, False]
    sizes = [shape_of({**usual, "tie_word_embeddings": tie}).params for tie in ties]
    return min(abs(size / stated - 1) for size in sizes) < SHAPE_TOLERANCE


def _width_of_params(known: dict[str, Any], stated: float | None) -> int | None:
    """The one feed-forward width that gives the stated parameters of a dense model of which all else is known.

    None for rounded parameters ("7B"), of which no multiple of 64, as widths are, or several would do.
    """
    is_complete = known["gated_mlp"] is not None and known["tie_word_embeddings"] is not None
    is_whole = known["head_dim"] or int(known["hidden_size"]) % int(known["num_heads"]) == 0
    if not stated or stated % 1_000_000 == 0 or known["num_experts"] or not is_complete or not is_whole:
        return None
    dense = {**known, "num_kv_heads": known["num_kv_heads"] or known["num_heads"], "positions": known["positions"] or 0}

    def params(width: int) -> int:
        return shape_of({**dense, "ffn_hidden_size": width}).params

    width = _WIDTH_STEP * round((stated - params(0)) / (params(_WIDTH_STEP) - params(0)))
    return width if width > 0 and abs(params(width) / stated - 1) < _EXACT else None


def _with_gate_and_tying(
    known: dict[str, Any], stated: float | None, family: dict[str, Any] | None, assumed: list[str]
) -> tuple[ModelShape | None, str, list[str]]:
    open_keys = [key for key in ("gated_mlp", "tie_word_embeddings") if known[key] is None]
    if not open_keys:
        return shape_of(known), "", assumed
    gates = [known["gated_mlp"]] if known["gated_mlp"] is not None else [True, False]
    ties = [known["tie_word_embeddings"]] if known["tie_word_embeddings"] is not None else [True, False]
    options = [{**known, "gated_mlp": gate, "tie_word_embeddings": tie} for gate in gates for tie in ties]
    if stated:
        errors = [abs(shape_of(option).params / stated - 1) for option in options]
        order = sorted(range(len(options)), key=errors.__getitem__)
        best, second = errors[order[0]], errors[order[1]]
        if best < SHAPE_TOLERANCE and (second > 2 * best + 0.002):
            chosen = options[order[0]]
            words = ", ".join(f"{key}={str(chosen[key]).lower()}" for key in open_keys)
            return shape_of(chosen), "", [*assumed, f"{words} from the stated parameters"]
    if family is None:
        return None, f"{' and '.join(open_keys)} not stated, and neither size nor name of the model implies it", []
    for key in open_keys:
        known[key] = family[key]
    words = ", ".join(f"{key}={str(known[key]).lower()}" for key in open_keys)
    return shape_of(known), "", [*assumed, f"{words} from the family's name"]
