"""Rows of a table (a reference CSV, or `runs`) as questions and layouts. What is missing is derived exactly, taken from
the model's registry entry or family and then said so, or refused with a reason; never filled in silently.
"""

from __future__ import annotations

import re

import polars as pl

from pipeline import words
from pipeline.estimate.row_shape import SHAPE
from pipeline.normalize import normalise_runs

RENAMED = {
    "grad_accum": "gas",
    "micro_batch_size": "mbs",
    "global_batch_size_seqs": "gbs",
    "global_batch_tokens": "gbs_tokens",
    "zero_stage_or_fsdp": "zero_stage",
    "dense_layers": "num_dense_layers",
    "nodes": "num_nodes",
}
"""Columns of the reference tables to those of `runs`."""

_BOOLEANS = ("gated_mlp", "tie_word_embeddings", "sequence_parallel")
_NUMBERS = (
    *(name for name in SHAPE if name not in _BOOLEANS), "seq_len", "dp", "tp", "pp", "cp", "ep", "etp", "vpp", "mbs",
    "gas", "gbs", "gbs_tokens", "num_nodes", "gpus_per_node", "num_gpus", "local_batch_size", "dp_replicate",
    "dp_shard",
)  # fmt: skip
_AT_LEAST_ONE = (
    "num_gpus", "num_nodes", "gpus_per_node", "dp", "tp", "pp", "mbs", "gas", "seq_len", "num_layers", "hidden_size",
    "num_heads", "num_kv_heads", "vocab_size",
)  # fmt: skip
_MISSING = r"(?i)^(|nan|na|n/a|none|null|-|unknown|\?)$"
_UNSAID = r"(?i)not (stated|known|given)|unknown"
"""A sharding that says of itself that its stage is not known: "ZeRO (stage not stated)"."""


def _misread(name: str, values: pl.Series, is_good: pl.Series) -> pl.Series:
    """ "name = cell" for cells that hold something, and not what they should, else an empty text."""
    text = values.cast(pl.String).str.strip_chars()
    # "64-1024" in a table of ranges states no number, and is no mistake either: only what cannot be one is told.
    is_told = text.is_not_null() & ~text.str.contains(_MISSING)
    shown = pl.lit(f"{name} = ") + pl.col("text")
    frame = pl.DataFrame({"text": text, "bad": is_told.fill_null(False) & ~is_good.fill_null(False)})
    return frame.select(pl.when("bad").then(shown).otherwise(pl.lit(""))).to_series()


def _is_whole(name: str, number: pl.Series) -> pl.Series:
    """Whether cells hold a whole number that such a column can have."""
    least = 1.0 if name in _AT_LEAST_ONE else 0.0
    return number.is_finite() & ((number - number.round()).abs() <= 1e-6) & (number >= least)


def _typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Known columns under our names and in our types; cells that do not parse become NULL."""
    renames = {old: new for old, new in RENAMED.items() if old in frame.columns and new not in frame.columns}
    frame = frame.rename(renames)
    columns, misread = [], []
    for name in _NUMBERS:
        values = frame[name] if name in frame.columns else pl.Series(name, [None] * frame.height, dtype=pl.Float64)
        number = values.cast(pl.Float64, strict=False)
        wrong = _misread(name, values, _is_whole(name, number))
        misread.append(wrong)
        columns.append(
            pl.DataFrame({"n": number.round(), "w": wrong})
            .select(pl.when(pl.col("w") == "").then(pl.col("n")).cast(pl.Int64, strict=False).alias(name))
            .to_series()
        )
    for name in ("model", "accelerator", "precision", "recompute", "pipeline_schedule", "framework", "source_id",
                 "flash_attention", "attention", "cluster"):  # fmt: skip
        values = frame[name] if name in frame.columns else pl.Series(name, [None] * frame.height, dtype=pl.String)
        columns.append(values.cast(pl.String).alias(name))
    for name in _BOOLEANS:
        values = frame[name] if name in frame.columns else pl.Series(name, [None] * frame.height, dtype=pl.Boolean)
        columns.append(
            values
            if values.dtype == pl.Boolean
            else words.map_words(values.cast(pl.String), words.canonical_bool, pl.Boolean).alias(name)
        )
    zero = frame["zero_stage"] if "zero_stage" in frame.columns else pl.Series([None] * frame.height, dtype=pl.String)
    stage = _zero_stages(zero.cast(pl.String))
    said = zero.cast(pl.String).str.strip_chars()
    misread.append(_misread("zero_stage", zero, stage.is_not_null() | said.str.contains(_UNSAID)))
    size = next((name for name in ("total_params_b", "params") if name in frame.columns), None)
    params = pl.Series([None] * frame.height, dtype=pl.Float64)
    if size is not None:
        params = frame[size].cast(pl.Float64, strict=False)
        misread.append(_misread(size, frame[size], params.is_finite() & (params > 0)))
        params = params * 1e9 if size == "total_params_b" else params
    told = pl.DataFrame({f"{place}": part for place, part in enumerate(misread)})
    kept = [pl.when(pl.col(name) != "").then(pl.col(name)) for name in told.columns]
    joined = told.select(pl.concat_str(kept, separator=", ", ignore_nulls=True)).to_series()
    return pl.DataFrame(
        [*columns, stage.alias("zero_stage"), said.alias("stated_sharding"), params.alias("stated_params"),
         joined.alias("misread")]
    )  # fmt: skip


def recompute_mode(text: str) -> str | None:
    """Word of RECOMPUTE_MODES for what tables write, or None for text that says nothing we know.

    >>> [recompute_mode(text) for text in ("every_layer", "Selective", "disabled", "True", "every other month")]
    ['full', 'selective', 'none', 'full', None]
    """
    text = text.strip().casefold().replace("_", " ")
    if word := words.canonical_recompute(text):
        return word
    patterns = (
        ("selective", r"^select"),
        ("none", r"^(off|disabled?|false|0|not? .*)$"),
        ("full", r"^(full.*|true|yes|on|enabled?|all|uniform|block|(every|each|all) layers?)$"),
    )
    return next((word for word, pattern in patterns if re.search(pattern, text)), None)


def _stage_of(text: str) -> int | None:
    """ZeRO stage of what tables write; Megatron's distributed optimizer is stage 1."""
    stage = words.canonical_zero_stage(text)
    if stage is None and re.search(r"dist(ributed)?[-_ ]?opt", text.casefold()):
        return 1
    return stage


def _zero_stages(column: pl.Series) -> pl.Series:
    number = column.cast(pl.Float64, strict=False)
    digits = pl.DataFrame({"n": number}).select(pl.when(pl.col("n").is_in([0.0, 1.0, 2.0, 3.0])).then("n")).to_series()
    digits = digits.cast(pl.Int64)
    named = words.map_words(column, _stage_of, pl.Int64)
    return pl.DataFrame({"d": digits, "n": named}).select(pl.coalesce("d", "n")).to_series()


def read_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """One row per row of `frame`, in order: canonical columns with every degree and batch that follows exactly."""
    typed = _typed(frame)
    # A micro-batch is the local batch when the sequence of a step is not accumulated over.
    known = normalise_runs(typed.with_columns(run_id=pl.int_range(pl.len()).cast(pl.String))).runs
    derived = known.select(
        "accelerator", "precision", "recompute", "dp", "tp", "pp", "cp", "mbs", "gas", "gbs", "gbs_tokens", "seq_len",
        "num_gpus", "num_nodes", "gpus_per_node",
    )  # fmt: skip
    return typed.with_columns(derived.get_columns()).with_columns(
        dp_replicate=_replicas(),
        stated_replicas=pl.col("dp_replicate"),
        stated_recompute=typed["recompute"],
        recompute=words.map_words(typed["recompute"], recompute_mode, pl.String),
    )


HYBRID = r"(?i)hsdp|hybrid"
"""What names sharding within groups without saying how large they are: a node, as PyTorch's HYBRID_SHARD has it."""


def _replicas() -> pl.Expr:
    """Copies of the sharded states: as stated; dp over the ranks that share one copy (`dp_shard`, or "groups of 8" in
    the sharding's name); one for each node under HSDP that says no more; NULL where nothing speaks of groups.

    What does not divide becomes 0, which no layout has.
    """
    ranks = pl.col("dp") * pl.col("cp").fill_null(1)
    named = pl.col("stated_sharding").str.extract(r"(?i)groups? of (\d+)").cast(pl.Int64)
    in_node = pl.when(pl.col("stated_sharding").str.contains(HYBRID)).then(
        pl.max_horizontal(pl.col("gpus_per_node") // pl.col("tp"), 1)
    )

    def over(ranks: pl.Expr, group: pl.Expr) -> pl.Expr:
        copies = pl.when(ranks <= group).then(1).when(ranks % group == 0).then(ranks // group).otherwise(0)
        return pl.when(ranks.is_not_null() & group.is_not_null()).then(copies)

    return pl.coalesce(
        "dp_replicate", over(pl.col("dp"), pl.col("dp_shard")), over(ranks, named), over(ranks, in_node)
    ).cast(pl.Int64)
