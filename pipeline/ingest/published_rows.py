"""Rows of the bundled tables in our words and units: text cells to `published_runs`, and those to `runs`. Pure.

A new source is a line in `FRAMEWORK_BY_SOURCE` (`reference.vocabulary`) when its framework is known. Facts about single
rows (caveats, corrections) belong in the CSV's columns, not here.
"""

from __future__ import annotations

import json

import polars as pl

from sweepscope.pipeline.reference import vocabulary
from sweepscope.schemas.tables.published import PUBLISHED_RUNS

PARSER = "published"
PARSER_VERSION = 4

_STATUS = {"success": "completed", "oom": "oom", "hang": "hang", "failed": "failed", "unknown": "unknown"}

_PLAYBOOK = ("ultrascale_playbook",)
"""nanotron divides by 2**30 and prints GB; every other table uses 1e9."""

_ALLOCATED = (*_PLAYBOOK, "simumax")
_RESERVED = ("torchtitan",)
"""What `peak_mem_gb` is, where the source says so; the rest (nvidia-smi, formulas) stays in published_runs."""

_MODEL_COLUMNS = (
    "num_layers",
    "hidden_size",
    "num_heads",
    "num_kv_heads",
    "head_dim",
    "kv_lora_rank",
    "q_lora_rank",
    "qk_rope_head_dim",
    "ffn_hidden_size",
    "gated_mlp",
    "vocab_size",
    "tie_word_embeddings",
    "num_experts",
    "experts_per_token",
    "expert_ffn_hidden_size",
    "shared_expert_ffn_hidden_size",
    "num_dense_layers",
)


def _with_extra(rows: pl.DataFrame) -> pl.DataFrame:
    """The columns that only this table has, as one JSON text per row; absent values are left out."""
    extra = [name for name in rows.columns if name not in PUBLISHED_RUNS.column_names]
    texts = [
        json.dumps({name: value for name, value in zip(extra, row, strict=True) if value is not None})
        if any(row)
        else None
        for _, *row in rows.select("run_id", *extra).iter_rows()
    ]
    return rows.with_columns(extra=pl.Series(texts, dtype=pl.String))


def as_published(rows: pl.DataFrame) -> pl.DataFrame:
    """Text cells of a bundled CSV, with `run_id`, `dataset`, `line_no` and `source_path`, as rows of `published_runs`.

    Raises polars.exceptions.InvalidOperationError for a cell that its column's type cannot hold.
    """
    booleans = ("gated_mlp", "tie_word_embeddings", "is_claimed_best")
    rows = _with_extra(rows)
    rows = rows.with_columns(
        vocabulary.map_words(rows[name], vocabulary.canonical_bool, pl.Boolean)
        for name in booleans
        if name in rows.columns
    )
    table = PUBLISHED_RUNS.conform(rows)
    return table.with_columns(comparability=pl.coalesce("comparability", _comparability()))


def _comparability() -> pl.Expr:
    """Whether the published MFU can be compared with others, for tables that do not judge each row themselves."""
    return (
        pl.when(pl.col("mfu_pct").is_null() & pl.col("hfu_pct").is_null())
        .then(pl.lit("no MFU published"))
        .when(pl.col("mfu_pct").is_null())
        .then(pl.lit("HFU, counts recomputation"))
        .when(pl.col("precision").str.contains("(?i)fp8|float8"))
        .then(pl.lit("FP8, FP8 peak"))
        .otherwise(pl.lit("comparable"))
    )


def _status(table: pl.DataFrame) -> pl.DataFrame:
    """Status with the rule that decided it. A table without a status column lists runs that worked."""
    status = pl.col("status").replace_strict(_STATUS, default=None, return_dtype=pl.String)
    has_result = pl.any_horizontal(
        pl.col(name).is_not_null()
        for name in ("step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu_pct", "hfu_pct")
    )
    silent = pl.col("status").is_null()
    return table.select(
        "run_id",
        status=pl.when(~silent)
        .then(status.fill_null("unknown"))
        .when(has_result)
        .then(pl.lit("completed"))
        .otherwise(pl.lit("unknown")),
        status_confidence=pl.when(~silent)
        .then(pl.lit("high"))
        .when(has_result)
        .then(pl.lit("medium"))
        .otherwise(pl.lit("low")),
        status_evidence=pl.when(silent & has_result)
        .then(pl.lit("the source prints a result for it"))
        .when(silent)
        .then(pl.lit("the source prints no result for it"))
        .when(pl.col("status") == "failed")
        .then(pl.lit("the source marks it as failed and gives no reason"))
        .otherwise(pl.format("the source marks it as {}", "status")),
    )


def _extra_number(name: str) -> pl.Expr:
    return pl.col("extra").str.json_path_match(f"$.{name}").cast(pl.Float64)


def _starts_with(prefixes: tuple[str, ...]) -> pl.Expr:
    return pl.any_horizontal(pl.col("source_id").str.starts_with(prefix) for prefix in prefixes)


def _copies() -> pl.Expr:
    """Copies of the sharded states, where the name of the sharding tells the ranks that share one ("groups of 8")."""
    ranks = pl.col("dp") * pl.col("cp").fill_null(1)
    group = pl.col("zero_stage_or_fsdp").str.extract(r"(?i)groups? of (\d+)").cast(pl.Int64)
    return pl.when(ranks % group == 0).then(ranks // group)


def as_runs(table: pl.DataFrame) -> pl.DataFrame:
    """Rows of `published_runs` as rows of `runs` in our units, before anything is derived."""
    gb = pl.when(_starts_with(_PLAYBOOK)).then(2.0**30).otherwise(1e9)

    def in_bytes(gigabytes: pl.Expr) -> pl.Expr:
        return (gigabytes * gb).round().cast(pl.Int64)

    framework = pl.coalesce(
        pl.when(pl.col("source_id").str.starts_with(prefix)).then(pl.lit(word))
        for prefix, word in vocabulary.FRAMEWORK_BY_SOURCE.items()
    )
    repeats = pl.col("extra").str.json_path_match("$.repeats")
    texts = table.select(
        vocabulary.map_words(table["zero_stage_or_fsdp"], vocabulary.canonical_zero_stage, pl.Int64).alias(
            "zero_stage"
        ),
        vocabulary.map_words(table["sequence_parallel"], vocabulary.canonical_bool, pl.Boolean),
    )
    runs = table.select(
        "run_id",
        "source_path",
        "line_no",
        "accelerator",
        "num_nodes",
        "gpus_per_node",
        "num_gpus",
        "model",
        "seq_len",
        *_MODEL_COLUMNS,
        "dp",
        "tp",
        "pp",
        "cp",
        "ep",
        "vpp",
        "pipeline_schedule",
        "precision",
        "recompute",
        "step_time_s",
        "tokens_per_s_per_gpu",
        attempt=1,
        sweep="dataset",
        framework=framework,
        origin=pl.lit("published"),
        params=(pl.col("total_params_b") * 1e9).round().cast(pl.Int64),
        active_params=(pl.col("active_params_b") * 1e9).round().cast(pl.Int64),
        dp_replicate=_copies(),
        mbs="micro_batch_size",
        gas="grad_accum",
        gbs="global_batch_size_seqs",
        gbs_tokens="global_batch_tokens",
        mfu_logged=pl.col("mfu_pct") / 100,
        hfu=pl.col("hfu_pct") / 100,
        tflops_per_gpu_logged="tflops_per_gpu",
        mem_peak_allocated_bytes=pl.when(_starts_with(_ALLOCATED)).then(in_bytes(pl.col("peak_mem_gb"))),
        mem_peak_reserved_bytes=pl.when(_starts_with(_RESERVED))
        .then(in_bytes(pl.col("peak_mem_gb")))
        .otherwise(in_bytes(_extra_number("peak_reserved_mem_gb"))),
        quarantine_reason=pl.format("repeats a row of {}", repeats),
        duplicate_of=repeats,
        # A table prints one row per setting, also where our columns cannot tell two of them apart; only the playbook
        # ran one layout several times.
        variant=pl.when(~_starts_with(_PLAYBOOK)).then(pl.col("table_or_figure")),
        parser=pl.lit(PARSER),
        parser_version=PARSER_VERSION,
    )
    return pl.concat([runs, texts], how="horizontal").join(_status(table), on="run_id", maintain_order="left")
