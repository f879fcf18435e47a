"""The shape of a model from the `config.json` that transformers keeps beside weights and checkpoints.

Format: transformers configuration_utils.py PretrainedConfig.to_json_string; the names of the fields are those of the
models (models/*/configuration_*.py): Llama's and its descendants', GPT-2's and BLOOM's, OPT's, Falcon's, Mixtral's,
Qwen's and DeepSeek's mixtures. In a multimodal model the language model is `text_config`. The dtype is ignored: it is
that of the stored weights, not of the training.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

# Column -> names of fields, of which the first present one counts.
NAMES = {
    "num_layers": ("num_hidden_layers", "n_layer", "n_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model"),
    "num_heads": ("num_attention_heads", "n_head", "n_heads"),
    "num_kv_heads": ("num_key_value_heads", "num_kv_heads", "multi_query_group_num"),
    "head_dim": ("head_dim",),
    "ffn_hidden_size": ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"),
    "vocab_size": ("vocab_size", "padded_vocab_size"),
    "num_experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "experts_per_token": ("num_experts_per_tok",),
    "expert_ffn_hidden_size": ("moe_intermediate_size",),
    "shared_expert_ffn_hidden_size": ("shared_expert_intermediate_size",),
    "num_dense_layers": ("first_k_dense_replace",),
    "kv_lora_rank": ("kv_lora_rank",),
    "q_lora_rank": ("q_lora_rank",),
    "qk_rope_head_dim": ("qk_rope_head_dim",),
}
GATED = ("silu", "swiglu")
"""Activations that transformers uses only in models with a gated MLP."""


def read_model_config(text: str) -> Mapping[str, str]:
    """Settings from `config.json`. Raises ValueError when it is not that of a transformers model."""
    document = json.loads(text)
    config = _language_model(document)
    found = {column: value for column, names in NAMES.items() if (value := _first_number(config, names)) is not None}
    if not {"num_layers", "hidden_size"} <= found.keys() or not {"model_type", "architectures"} & document.keys():
        raise ValueError("not the configuration of a transformers model")
    settings = {column: str(value) for column, value in found.items()}
    if "num_experts" in found and "expert_ffn_hidden_size" not in found and "ffn_hidden_size" in found:
        settings["expert_ffn_hidden_size"] = settings["ffn_hidden_size"]  # Mixtral has no other layers
    activation = next((config[name] for name in ("hidden_act", "activation_function") if name in config), None)
    if activation in GATED:
        settings["gated_mlp"] = "true"
    if isinstance(tied := config.get("tie_word_embeddings", document.get("tie_word_embeddings")), bool):
        settings["tie_word_embeddings"] = str(tied).lower()
    # A local directory is no name.
    name = document.get("_name_or_path")
    if isinstance(name, str) and name and not name.startswith((".", "/", "~")) and name.count("/") <= 1:
        settings["model"] = name
    return settings


def _language_model(config: object) -> Mapping[str, Any]:
    if not isinstance(config, dict):
        raise ValueError("not a mapping of names to values")
    part = config.get("text_config")
    return part if isinstance(part, dict) else config


def _first_number(config: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
