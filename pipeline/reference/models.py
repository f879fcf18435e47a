"""Well-known models by name, and what a family's name implies. Facts are in `data/models/`, with sources."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

import polars as pl

from sweepscope import data
from sweepscope.pipeline.reference.model_names import NAMES_KEPT, canonical_model
from sweepscope.pipeline.reference.model_shape import ModelShape

LLAMA_2_7B = ModelShape(32, 4096, 32, 32, 11008, 32000, gated_mlp=True, tie_word_embeddings=False)


@lru_cache(maxsize=NAMES_KEPT)
def spelling_key(name: str) -> str:
    """Spelling-independent form of a model's name. What parts two numbers counts: a Llama 3 of 3B is none of 33B.

    >>> spelling_key("Llama-3.1 8B"), spelling_key("llama3.1-8b"), spelling_key("llama-33b")
    ('llama3.1-8b', 'llama3.1-8b', 'llama33b')
    """
    apart = re.sub(r"[^a-z0-9.]+", "-", canonical_model(name).casefold())
    return re.sub(r"(?<!\d)-|-(?!\d)", "", apart)


@cache
def _registry() -> dict[str, dict[str, Any]]:
    rows = pl.read_csv(data.MODELS / "models.csv").to_dicts()
    return {
        spelling_key(name): row for row in rows for name in (row["model"], *(row["aliases"] or "").split("|")) if name
    }


@cache
def _families() -> list[dict[str, Any]]:
    return pl.read_csv(data.MODELS / "families.csv").to_dicts()


def known_models() -> list[str]:
    """Names in the registry."""
    return list(dict.fromkeys(row["model"] for row in _registry().values()))


def find_model(name: str) -> dict[str, Any] | None:
    """The registry's row of a model, in the columns of `runs` (plus positions and latent ranks), or None."""
    return _registry().get(spelling_key(name))


def find_family(name: str) -> dict[str, Any] | None:
    """What the family in a model's name implies about gates, tying and positions, or None."""
    text = name.casefold()
    return next((row for row in _families() if re.search(row["pattern"], text)), None)


def shape_of(row: dict[str, Any]) -> ModelShape:
    """A shape from a registry row, or any row with all of its columns filled."""

    def number(name: str) -> int:
        return int(row.get(name) or 0)

    experts = number("num_experts")
    return ModelShape(
        num_layers=number("num_layers"),
        hidden_size=number("hidden_size"),
        num_heads=number("num_heads"),
        num_kv_heads=number("num_kv_heads"),
        ffn_hidden_size=number("ffn_hidden_size"),
        vocab_size=number("vocab_size"),
        gated_mlp=bool(row["gated_mlp"]),
        tie_word_embeddings=bool(row["tie_word_embeddings"]),
        head_dim=number("head_dim"),
        positions=number("positions"),
        num_experts=experts,
        experts_per_token=number("experts_per_token"),
        expert_ffn_hidden_size=number("expert_ffn_hidden_size") if experts else 0,
        shared_ffn_hidden_size=number("shared_expert_ffn_hidden_size"),
        num_dense_layers=number("num_dense_layers"),
        q_lora_rank=number("q_lora_rank"),
        kv_lora_rank=number("kv_lora_rank"),
        rope_head_dim=number("qk_rope_head_dim"),
    )
