"""One model, one name, whatever a framework calls it: names and shapes looked up in `data/models/models.csv`.

torchtitan prints `llama3 8B`, a hub id reads `meta-llama/Llama-3.1-8B`, and Megatron prints a shape only: without one
name their runs would never share a cell. A name is replaced only by that of a registered model whose shape does not
contradict the run's own (a 4-layer excerpt stays what its source calls it); a run without a name gets that of the
registered model of exactly its shape. Where two of them differ in the vocabulary only, the smaller one proves nothing:
benchmarks put Llama 2's tokenizer of 32,000 under any shape, Llama 3 8B's (which is Mistral 7B's) among them. Counted
parameters may identify a name that the registry lacks: torchtitan's `llama3 1B` is Llama 3.2 1B where it has as many,
and a model of its own where a fork calls another shape so. Rows of published tables keep their names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl

from sweepscope import data
from sweepscope.pipeline.reference.model_shape import ModelShape
from sweepscope.pipeline.reference.models import find_model, known_models, shape_of, spelling_key
from sweepscope.schemas.thresholds import LABEL_TOLERANCE

_COUNTED = 1e-4
"""How far parameters that were counted may lie apart: what rounds more is no count."""
VOCAB_PADDING = 1_024
"""Megatron pads the vocabulary to a multiple of 128 x tp; no tokenizer's special tokens are more."""

_SHAPE = ("num_layers", "hidden_size", "num_heads", "num_kv_heads", "ffn_hidden_size", "num_experts")
# What follows the size in hub ids of the same architecture.
_QUALIFIER = re.compile(r"(?i)^meta-(?=llama)|[-_](?:hf|base|instruct|chat|it|v0\.\d)(?=[-_]|$)")


@cache
def _registry() -> pl.DataFrame:
    """Registered shapes; `num_kv_heads` and `ffn_hidden_size` NULL where the architecture has no such number."""
    rows = pl.read_csv(data.MODELS / "models.csv").select("model", *_SHAPE, "vocab_size", "gated_mlp", "kv_lora_rank")
    is_latent = pl.col("kv_lora_rank").is_not_null()
    rows = rows.with_columns(num_kv_heads=pl.when(~is_latent).then("num_kv_heads")).drop("kv_lora_rank")
    return rows.with_columns(is_telling=pl.col("vocab_size") == pl.col("vocab_size").max().over(_SHAPE))


def registered_name(name: str) -> str | None:
    """Name in the registry of a model as a source names it, or None.

    >>> registered_name("meta-llama/Meta-Llama-3.1-8B-Instruct"), registered_name("llama3 8B")
    ('Llama 3 8B', 'Llama 3 8B')
    """
    text = re.split(r"(?<=\S)/(?=\S)", name.strip().rstrip("/"))[-1]
    row = find_model(text) or find_model(_QUALIFIER.sub("", text))
    return row["model"] if row else None


@cache
def _counted_name(name: str, params: int) -> str | None:
    """The registered model of the same family and version that has exactly these parameters, embeddings tied or not.

    >>> _counted_name("llama3 1B", 1_235_814_400), _counted_name("llama3 1B", 1_400_000_000)
    ('Llama 3.2 1B', None)
    """
    family = _family(name)
    found = [
        known
        for known in known_models()
        if _family(known) == family and any(abs(params / size - 1) < _COUNTED for size in _sizes(known))
    ]
    return found[0] if len(found) == 1 else None


@cache
def _family(name: str) -> str:
    """Letters and whole number that a name begins with: its family, and which generation of it.

    >>> _family("llama3 1B"), _family("Llama 3.2 1B"), _family("meta-llama/Llama-3.2-1B")
    ('llama3', 'llama3', 'llama3')
    """
    return re.split(r"[-.]", spelling_key(name), maxsplit=1)[0]


@cache
def _sizes(known: str) -> tuple[int, ...]:
    row = find_model(known)
    shape = None if row is None else shape_of(row)
    return () if shape is None else tuple(replace(shape, tie_word_embeddings=tied).params for tied in (True, False))


_TOLERATED = (*_SHAPE, "head_dim", "gated_mlp")
SHAPE = (*_TOLERATED, "vocab_size")
"""Columns of `runs` that may contradict a registered shape."""


def registered_shape(row: Mapping[str, Any]) -> ModelShape | None:
    """Shape of the registered model that a row of `runs` names; None where the row contradicts it.

    `row` has `model`, `params` and the columns of SHAPE. A padded vocabulary and untied embeddings contradict nothing:
    they add parameters that no token needs. A name of one's own has the shape of a model whose name begins with the
    same word and that has as many parameters, to the last one: `llama-1b` with 1,235,814,400 is Llama 3.2 1B's.
    """
    name = _registered_name(row["model"]) or (row["params"] and shaped_alike(row["model"], row["params"]))
    known = find_model(name) if name else None
    if known is None:
        return None
    is_latent = known["kv_lora_rank"] is not None
    stated = {key: known[key] for key in _TOLERATED if not (is_latent and key in ("num_kv_heads", "head_dim"))}
    if any(value is not None and row[key] not in (None, value) for key, value in stated.items()):
        return None
    padding = 0 if row["vocab_size"] is None else row["vocab_size"] - known["vocab_size"]
    params = row["params"]
    is_size = params is None or any(abs(params / size - 1) <= LABEL_TOLERANCE for size in _sizes(name))
    return shape_of(known) if 0 <= padding <= VOCAB_PADDING and is_size else None


@cache
def shaped_alike(name: str, params: int) -> str | None:
    """A registered model whose name begins with the same word, with as many parameters to the last one.

    >>> [shaped_alike(name, params) for name in ("llama-1b", "mine") for params in (1_235_814_400, 1_235_000_000)]
    ['Llama 3.2 1B', None, None, None]
    """
    return next((known for known in _models_by_word().get(_word(name), ()) if params in _sizes(known)), None)


@cache
def _models_by_word() -> dict[str, list[str]]:
    """The registry's models by the first word of their names: a store may name thousands to look up."""
    found: dict[str, list[str]] = {}
    for known in known_models():
        found.setdefault(_word(known), []).append(known)
    return found


def _word(name: str) -> str:
    return re.split(r"\d", _family(name), maxsplit=1)[0]


@cache
def _registered_name(name: str) -> str | None:
    return registered_name(name)


def identified(runs: pl.DataFrame) -> pl.Series:
    """`model` of each row as the registry names it; NULL where the registry does not know it.

    `runs` has `model`, `origin`, `params` and the shape's columns.
    """
    named = runs.select("model", "params").drop_nulls("model").unique()
    names = [
        registered_name(text) or (None if params is None else _counted_name(text, params))
        for text, params in named.iter_rows()
    ]
    known = named.with_columns(registered=pl.Series(names, dtype=pl.String))
    rows = runs.select("origin", "model", "params", *_SHAPE, "vocab_size", "gated_mlp", row=pl.int_range(pl.len()))
    theirs = _registry().rename({name: f"{name}_known" for name in (*_SHAPE, "vocab_size", "gated_mlp")})
    by_name = rows.join(known, on=["model", "params"], how="left", nulls_equal=True, maintain_order="left")
    by_name = by_name.join(theirs, left_on="registered", right_on="model", how="inner")
    fits = pl.all_horizontal(_agrees(name) for name in _SHAPE)
    by_name = by_name.filter(fits).select("row", "registered")
    by_shape = (
        rows.filter(pl.col("model").is_null())
        .join(
            theirs.rename({"model": "registered"}),
            left_on=["num_layers", "hidden_size", "num_heads"],
            right_on=["num_layers_known", "hidden_size_known", "num_heads_known"],
            how="inner",
        )
        .filter(_is_same("num_kv_heads"), _is_same("ffn_hidden_size"), _is_same("num_experts"), _agrees("gated_mlp"))
        .filter("is_telling", (pl.col("vocab_size") - pl.col("vocab_size_known")).is_between(0, VOCAB_PADDING))
        .select("row", "registered")
    )
    found = pl.concat([by_name, by_shape]).unique("row", keep="first", maintain_order=True)
    is_ours = pl.col("origin").fill_null("measured") != "published"
    joined = rows.join(found, on="row", how="left", maintain_order="left")
    return joined.select(model=pl.when(is_ours).then("registered"))["model"]


def _agrees(name: str) -> pl.Expr:
    """Nothing is known that contradicts the registry."""
    return (pl.col(name) == pl.col(f"{name}_known")).fill_null(value=True)


def _is_same(name: str) -> pl.Expr:
    """The registry's number, or nothing where the registry has none."""
    return pl.col(name).eq_missing(pl.col(f"{name}_known")) | (
        pl.col(f"{name}_known").is_null() & pl.lit(name in ("num_kv_heads", "ffn_hidden_size"))
    )
