"""Values of settings as logs print them, in the terms of their columns: what is none is not believed."""

from __future__ import annotations

import re

from sweepscope.pipeline.logs.inference.units import number_of

_COUNTS = {
    "tp": 1_024,
    "pp": 1_024,
    "cp": 1_024,
    "ep": 2_048,
    "dp": 1_000_000,
    "dp_shard": 1_000_000,
    "dp_replicate": 1_000_000,
    "vpp": 128,
    "mbs": 1_000_000,
    "gbs": 10_000_000,
    "gas": 100_000,
    "seq_len": 20_000_000,
    "gbs_tokens": 1 << 33,
    "num_gpus": 1_000_000,
    "gpus_per_node": 64,
    "num_nodes": 100_000,
    "num_layers": 2_000,
    "hidden_size": 200_000,
    "num_heads": 4_096,
    "num_kv_heads": 4_096,
    "ffn_hidden_size": 2_000_000,
    "vocab_size": 10_000_000,
    "num_experts": 10_000,
    "experts_per_token": 1_000,
    "steps_planned": 1_000_000_000,
    "epochs": 1_000_000,
    "batch": 10_000_000,
}
"""The largest value of each count that is believed."""
COORDINATES = ("dp", "tp", "pp", "cp", "ep")
"""Columns whose names also stand for a rank's own place; there they count from 0."""
_SIZED = re.compile(r"/[A-Za-z][\w.]*-[\w.-]*\d[bBmM](?![A-Za-z0-9])[\w.-]*$")  # a path to a model with its size
SIZE = re.compile(r"\d{1,4}(?:\.\d{1,2})?[bBmM]")
"""A model by its size alone: `--model 8b`."""
_SAVED = re.compile(r"(?i)(?:checkpoint|ckpt|epoch|step|iter|version)[-_]?\d")  # where a model was saved, and no name
_SIZES = ("params", "active_params")
_LEAST = {"seq_len": 8, "hidden_size": 8, "vocab_size": 16, **dict.fromkeys(_SIZES, 1_000)}


def value_of(column: str, printed: str) -> str | None:
    """A printed value in the terms of its column; None where it is none of it, or not set.

    >>> value_of("seq_len", "2,048"), value_of("tp", "-1"), value_of("params", "124.44M"), value_of("precision", "bf16")
    ('2048', None, '124440000', 'bf16')
    >>> value_of("params", "1.5b"), value_of("seq_len", "8b")
    ('1500000000', None)
    """
    text = printed.strip().strip("'\"").rstrip(".")
    if column == "zero_stage":
        stage = re.fullmatch("(?i)(?:zero[-_]?)?([0-3])", text)
        return stage[1] if stage else None
    if column in _SIZES or column in _COUNTS:
        number = number_of(text.upper() if column in _SIZES and SIZE.fullmatch(text) else text)
        if number == 0 and column in COORDINATES:
            return "0"
        if number is None or number != int(number) or number < _LEAST.get(column, 1):
            return None
        return str(int(number)) if number <= _COUNTS.get(column, 1 << 53) else None
    return _word(column, text)


def _word(column: str, text: str) -> str | None:
    from sweepscope.pipeline.reference.vocabulary import canonical_precision

    if column == "precision":
        word = canonical_precision(text)
        return None if word == "unclear" else word
    if column == "recompute":
        return {"true": "full", "full": "full", "selective": "selective", "false": "none", "none": "none"}.get(
            text.lower()
        )
    if column in ("torch_version", "cuda_version"):
        return text if re.match(r"\d+\.\d", text) else None
    if column == "model":
        text = text.rpartition("/")[2] if text.startswith("/") and _SIZED.search(text) else text
        is_name = (
            re.fullmatch(r"[\w.-]+(?:/[\w.-]+)?", text) and re.search(r"[A-Za-z]{2}", text) and re.search(r"\d", text)
        )
        return text if is_name and not _SAVED.search(text) else None
    if column == "accelerator":
        return text if re.search(r"(?i)[ahbl]\d{2,3}|mi\d{3}|v100|tpu|gb\d{3}|rtx|t4", text) else None
    return None
