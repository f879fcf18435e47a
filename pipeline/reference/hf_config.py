"""A model's shape from the `config.json` that Hugging Face repositories carry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.reference.model_shape import ModelShape
from sweepscope.pipeline.reference.models import shape_of

_NAMES: dict[str, tuple[str, ...]] = {
    "num_layers": ("num_hidden_layers", "n_layer", "n_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "num_heads": ("num_attention_heads", "n_head", "n_heads"),
    "num_kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim",),
    "ffn_hidden_size": ("intermediate_size", "n_inner", "ffn_dim"),
    "vocab_size": ("vocab_size",),
    "num_experts": ("n_routed_experts", "num_local_experts", "num_experts"),
    "experts_per_token": ("num_experts_per_tok",),
    "expert_ffn_hidden_size": ("moe_intermediate_size",),
    "num_dense_layers": ("first_k_dense_replace",),
    "q_lora_rank": ("q_lora_rank",),
    "kv_lora_rank": ("kv_lora_rank",),
    "qk_rope_head_dim": ("qk_rope_head_dim",),
}
"""Our column to the keys that configurations use for it."""

_GATED = ("silu", "swish", "swiglu", "geglu", "gelu_pytorch_tanh_gated")
_PLAIN = ("gpt2", "opt", "bloom", "gpt_neox", "falcon", "mpt")


def read_config(path: Path) -> ModelShape:
    """Shape of a configuration. Raises InputError naming what is missing; nothing is guessed."""
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}. Give the config.json of a model.") from error
    except ValueError as error:
        raise InputError(f"{path} is no JSON configuration: {error}. Give the config.json of a model.") from error
    if not isinstance(config, dict):
        raise InputError(f"{path} is no JSON configuration: it holds no names. Give the config.json of a model.")
    row: dict[str, Any] = {
        name: next((config[key] for key in keys if config.get(key) is not None), None) for name, keys in _NAMES.items()
    }
    if row["num_experts"] and not row["expert_ffn_hidden_size"]:
        row["expert_ffn_hidden_size"], row["ffn_hidden_size"] = row["ffn_hidden_size"], None
    if row["num_experts"] and (shared := config.get("n_shared_experts")):
        row["shared_expert_ffn_hidden_size"] = shared * row["expert_ffn_hidden_size"]
    row["num_kv_heads"] = row["num_kv_heads"] or row["num_heads"]
    if config.get("kv_lora_rank"):
        row["head_dim"] = config.get("v_head_dim")
    row["tie_word_embeddings"] = config.get("tie_word_embeddings", config.get("model_type") in _PLAIN)
    row["gated_mlp"] = config.get("hidden_act") in _GATED and config.get("model_type") not in _PLAIN
    wanted = ["num_layers", "hidden_size", "num_heads", "vocab_size"]
    wanted += ["experts_per_token", "expert_ffn_hidden_size"] if row["num_experts"] else ["ffn_hidden_size"]
    if missing := [name for name in wanted if not row[name]]:
        keys = ", ".join("/".join(_NAMES[name]) for name in missing)
        raise InputError(f"{path} lacks {keys}.")
    return shape_of(row)
