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


@lru_cache(maxsize=NAMES_KEPT)
def canonical_model(text: str) -> str:
    """Display name of a model as its source names it.

    A path or a hub id is called by its last part.

    >>> canonical_model("MPT-70b"), canonical_model("HuggingFaceTB/SmolLM-1.7B")
    ('MPT 70B', 'SmolLM-1.7B')
    """
    text = text.strip()
    if text in _ALIASES:
        return _ALIASES[text]
    text = re.split(r"(?<=\S)/(?=\S)|^/", text.rstrip("/") or text)[-1]
    text = _SIZE.sub(lambda match: match[1].upper(), _NODE_COUNT.sub("", text))
    return re.sub(r"^(MPT|OPT)-(?=\d)", r"\1 ", text)


def canonical_models(column: pl.Series) -> pl.Series:
    """`column` with every name in its canonical form."""
    return column.replace({text: canonical_model(text) for text in column.drop_nulls().unique()})


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
