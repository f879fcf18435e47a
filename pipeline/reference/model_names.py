"""Model names that read well and compare equal. Pure lookups; add an alias or a rule here, nothing else."""

from __future__ import annotations

import re
from functools import lru_cache

import polars as pl

_ALIASES: dict[str, str] = {
    # The playbook's labels name sizes that its shapes do not have ("1B" is 1.34B); the exact size is the name.
    "llama-1B (1.34B)": "Llama 1.34B",
    "llama-3B (3.57B)": "Llama 3.57B",
    "llama-8B (8.86B)": "Llama 8.86B",
    "llama-80B (80B)": "Llama 80B",
    "llama3-70b (12 layers)": "Llama 3 70B (12 layers)",
    "deepseekv2 (4 layers)": "DeepSeek-V2 (4 layers)",
}

NAMES_KEPT = 2**15
"""Names of which the canonical form is remembered: several columns and look-ups ask for that of each."""
_SIZE = re.compile(r"(?<=\d)([bmt])\b")
_NODE_COUNT = re.compile(r" \(\d+ nodes\)$")  # a place, not a model


_SAVE = re.compile(
    r"(?i)(?:checkpoint|ckpt|epoch|(?:global_?)?step|iter|version)[-_=]?\d+(?:[-_].*)?|[0-9a-f]{40}|"
    r"checkpoints?|ckpts?|snapshots|outputs?|latest|last|final|best|merged"
)
"""Parts of a path that say where a model was saved, and not which it is."""


@lru_cache(maxsize=NAMES_KEPT)
def canonical_model(text: str) -> str:
    """Display name of a model as its source names it.

    A path or a hub id is called by its last part, that of a model which a training saved, or of a hub's cache, by the
    part in front of those.

    >>> canonical_model("MPT-70b"), canonical_model("HuggingFaceTB/SmolLM-1.7B")
    ('MPT 70B', 'SmolLM-1.7B')
    >>> canonical_model("/data/qwen2.5-3b-sft/checkpoint-291")
    'qwen2.5-3B-sft'
    >>> canonical_model("hub/models--Qwen--Qwen2-7B/snapshots/f2826a00ceef68f0f2b946d945ecc0477ce4450c")
    'Qwen2-7B'
    """
    text = text.strip()
    if text in _ALIASES:
        return _ALIASES[text]
    text = _named(text)
    text = _SIZE.sub(lambda match: match[1].upper(), _NODE_COUNT.sub("", text))
    return re.sub(r"^(MPT|OPT)-(?=\d)", r"\1 ", text)


def _named(text: str) -> str:
    """The part of a path that names its model; the last one where none in front of a save's names does."""
    parts = re.split(r"(?<=\S)/(?=\S)|^/", text.rstrip("/") or text)
    named = next((part for part in reversed(parts) if not _SAVE.fullmatch(part)), parts[-1])
    is_model = named == parts[-1] or (re.search(r"[A-Za-z]{2}", named) and re.search(r"\d", named))
    return (named if is_model else parts[-1]).rpartition("--")[2]


def canonical_models(column: pl.Series) -> pl.Series:
    """`column` with every name in its canonical form; NULL for a path that only says where a model was saved."""
    names = {text: canonical_model(text) for text in column.drop_nulls().unique()}
    return column.replace({text: None if _SAVE.fullmatch(name) else name for text, name in names.items()})


def format_params(params: int) -> str:
    """Parameter count in three significant digits.

    >>> [format_params(n) for n in (1_342_177_280, 80_000_000_000, 124_000_000, 1_040_000_000_000)]
    ['1.34B', '80B', '124M', '1.04T']
    """
    for scale, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M")):
        if params >= scale * 0.9995:
            return f"{params / scale:.3g}{unit}"
    return f"{params / 1e3:.3g}K"


def name_from_shape(params: int, *, gated_mlp: bool | None, num_experts: int | None) -> str:
    """Name for a model without one: family by its feed-forward block, then its size.

    >>> name_from_shape(8_030_261_248, gated_mlp=True, num_experts=None)
    'Llama 8.03B'
    """
    family = "MoE " if num_experts else {True: "Llama ", False: "GPT ", None: ""}[gated_mlp]
    return family + format_params(params)
