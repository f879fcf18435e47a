"""Rows of a table (a reference CSV, or `runs`) as questions and layouts. What is missing is derived exactly, taken from
the model's registry entry or family and named as an assumption, or refused with a reason; never filled in silently.
"""

from __future__ import annotations

import re

import polars as pl

from sweepscope.pipeline.derive.normalize import filled_runs
from sweepscope.pipeline.estimate.physics.profile import MODULES
from sweepscope.pipeline.estimate.rows.kernels import EXECUTIONS, FORMS
from sweepscope.pipeline.estimate.rows.model_shape import SHAPE
from sweepscope.pipeline.estimate.rows.software_year import software_years
from sweepscope.pipeline.estimate.rows.stated_facts import DISPATCHERS, OVERLAPS, PRECISIONS, SCALINGS, modules_of
from sweepscope.pipeline.reference import vocabulary

RENAMED = {
    "grad_accum": "gas",
    "micro_batch_size": "mbs",
    "global_batch_size_seqs": "gbs",
    "global_batch_tokens": "gbs_tokens",
    "zero_stage_or_fsdp": "zero_stage",
    "dense_layers": "num_dense_layers",
    "nodes": "num_nodes",
    "network_gbit": "network_gbit_per_s",
    **{
        name: ours
        for ours, names in {
            "num_layers": ("num_hidden_layers", "n_layers", "n_layer"),
            "hidden_size": ("d_model", "n_embd"),
            "num_heads": ("num_attention_heads", "n_heads", "n_head"),
            "num_kv_heads": ("num_key_value_heads", "num_query_groups", "n_kv_heads"),
            "head_dim": ("kv_channels",),
            "ffn_hidden_size": ("intermediate_size",),
            "vocab_size": ("padded_vocab_size",),
            "num_experts": ("num_local_experts", "n_routed_experts", "num_moe_experts"),
            "experts_per_token": ("num_experts_per_tok", "moe_router_topk", "moe_top_k"),
            "expert_ffn_hidden_size": ("moe_intermediate_size", "moe_ffn_hidden_size"),
            "shared_expert_ffn_hidden_size": ("moe_shared_expert_intermediate_size", "shared_expert_intermediate_size"),
            "num_dense_layers": ("first_k_dense_replace",),
            "seq_len": ("seq_length", "sequence_length"),
            "dp": ("data_parallel_size",),
            "tp": ("tensor_model_parallel_size", "tensor_parallel_size"),
            "pp": ("pipeline_model_parallel_size", "pipeline_parallel_size"),
            "cp": ("context_parallel_size",),
            "ep": ("expert_model_parallel_size", "expert_parallel_size"),
            "etp": ("expert_tensor_parallel_size",),
            "vpp": ("virtual_pipeline_model_parallel_size",),
            "gas": ("gradient_accumulation_steps", "num_microbatches"),
            "gbs": ("global_batch_size",),
            "num_gpus": ("world_size",),
        }.items()
        for name in names
    },
}
"""Columns of the reference tables, transformers' configurations and Megatron-LM's arguments to those of `runs`."""

_BOOLEANS = (
    *("gated_mlp", "tie_word_embeddings", "sequence_parallel", "fused_accumulation", "loss_parallel", "overlap_ep"),
    *OVERLAPS,
)
_NUMBERS = (
    *(name for name in SHAPE if name not in _BOOLEANS),
    *("seq_len", "dp", "tp", "pp", "cp", "ep", "etp", "vpp", "mbs", "gas", "gbs", "gbs_tokens", "local_batch_size"),
    *("num_nodes", "gpus_per_node", "gpus_per_domain", "nics_per_node", "num_gpus", "dp_replicate", "dp_shard"),
    *("nodes_per_token", "bf16_layers"),
)
_RATES = ("network_gbit_per_s", "nic_gbit_per_s", "bucket_mb")
"""Positive numbers that need not be whole: Gb/s per accelerator, and of one network card of `nics_per_node`; megabytes
of a bucket of gradients."""
SHEET = ("peak_tflops_bf16", "peak_tflops_fp8", "device_memory_gb", "memory_gb_per_s", "link_gb_per_s")
"""Of an accelerator that no table here has (`clusters.DataSheet`): dense peaks, memory and its bandwidth, links one
direction. Tables state peaks of known ones, too, which nothing is asked of: a cell that is no number is none."""
_TEXTS = (
    *("model", "accelerator", "precision", "recompute", "pipeline_schedule", "framework", "source_id"),
    *("flash_attention", "attention", "attention_kernel", "cluster", "recompute_modules", "torch_version", *PRECISIONS),
    "framework_version",
)
_WORDS = {"execution": EXECUTIONS, "token_dispatcher": DISPATCHERS, "fp8_scaling": tuple(SCALINGS), **FORMS}
"""Columns that hold one of few words."""
_AT_LEAST_ONE = (
    *(
        "num_gpus",
        "num_nodes",
        "gpus_per_node",
        "gpus_per_domain",
        "nics_per_node",
        "dp",
        "tp",
        "pp",
        "mbs",
        "gas",
        "seq_len",
    ),
    *("num_layers", "hidden_size", "num_heads", "num_kv_heads", "vocab_size"),
)
_MISSING = r"(?i)^(|nan|na|n/a|none|null|-|unknown|\?)$"
_SCALED = rf"(?i)\b({'|'.join(SCALINGS)})\b"
"""A precision that says how far one scale reaches: "bf16+float8 rowwise"."""
_UNSAID = r"(?i)not (stated|known|given)|unknown"
"""A sharding whose stage is not known: "ZeRO (stage not stated)"."""


def _misread(name: str, cell: pl.Expr, is_good: pl.Expr) -> pl.Expr:
    """ "name = cell" for cells that hold something, and not what they should, else NULL."""
    text = cell.cast(pl.String).str.strip_chars()
    # "64-1024" in a table of ranges is no number and no mistake either: only what cannot be a number is flagged.
    is_stated = text.is_not_null() & ~text.str.contains(_MISSING)
    return pl.when(is_stated.fill_null(False) & ~is_good.fill_null(False)).then(pl.lit(f"{name} = ") + text)


def _clean(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).str.strip_chars().str.to_lowercase()


def _number(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Float64, strict=False)


def _is_positive(name: str) -> pl.Expr:
    return _number(name).is_finite() & (_number(name) > 0)


def _is_whole(name: str) -> pl.Expr:
    """Whether cells hold a whole number that such a column can have."""
    number = _number(name)
    least = 1.0 if name in _AT_LEAST_ONE else 0.0
    return number.is_finite() & ((number - number.round()).abs() <= 1e-6) & (number >= least)


def _with_all(frame: pl.DataFrame) -> pl.DataFrame:
    """`frame` under our names, with a column of NULL for each that it lacks."""
    # The first of several names of a column counts.
    first = {new: old for old, new in reversed(RENAMED.items()) if old in frame.columns and new not in frame.columns}
    frame = frame.rename({old: new for new, old in first.items()})
    wanted = {
        **dict.fromkeys((*_NUMBERS, *_RATES, *SHEET), pl.Float64),
        **dict.fromkeys((*_TEXTS, *_WORDS, "zero_stage"), pl.String),
        **dict.fromkeys(_BOOLEANS, pl.Boolean),
    }
    # As series, because a literal beside no column would be one row.
    absent = [
        pl.Series(name, [None] * frame.height, dtype) for name, dtype in wanted.items() if name not in frame.columns
    ]
    return frame.with_columns(absent)


def _is_precision(frame: pl.DataFrame, name: str) -> pl.Expr:
    """Whether cells of a column of PRECISIONS name one that it can be."""
    words = vocabulary.map_words(frame[name].cast(pl.String), vocabulary.canonical_precision, pl.String)
    return pl.lit(words.is_in(PRECISIONS[name]))


def _are_modules(column: pl.Series) -> pl.Expr:
    """Whether cells name nothing but words of MODULES."""
    known = vocabulary.map_words(column.cast(pl.String), lambda text: set(modules_of(text)) <= set(MODULES), pl.Boolean)
    return pl.lit(known)


def _booleans(values: pl.Series) -> pl.Series:
    if values.dtype == pl.Boolean:
        return values
    return vocabulary.map_words(values.cast(pl.String), vocabulary.canonical_bool, pl.Boolean).alias(values.name)


def _typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Known columns under our names and in our types; cells that do not parse become NULL.

    One query per step over all columns: a frame of a few rows costs what its queries cost, not what its cells do. Most
    tables fill a third of the columns; the others are NULL without an expression.
    """
    frame = _with_all(frame)
    filled = {column.name for column in frame if column.null_count() < frame.height}
    sharding = frame["zero_stage"].cast(pl.String)
    stage = _zero_stages(sharding).alias("stage")
    frame = frame.with_columns(stage)
    size = next((name for name in ("total_params_b", "params") if name in frame.columns), None)
    is_stage_known = pl.col("stage").is_not_null() | pl.col("zero_stage").cast(pl.String).str.contains(_UNSAID)
    numbers = [name for name in _NUMBERS if name in filled]
    words = {name: known for name, known in _WORDS.items() if name in filled}
    misread = {name: _misread(name, pl.col(name), _is_whole(name)) for name in numbers}
    misread["zero_stage"] = _misread("zero_stage", pl.col("zero_stage"), is_stage_known)
    misread |= {name: _misread(name, pl.col(name), _is_precision(frame, name)) for name in PRECISIONS if name in filled}
    misread["recompute_modules"] = _misread(
        "recompute_modules", pl.col("recompute_modules"), _are_modules(frame["recompute_modules"])
    )
    misread |= {name: _misread(name, pl.col(name), _clean(name).is_in(known)) for name, known in words.items()}
    is_rate = {name: _is_positive(name) for name in _RATES if name in filled}
    misread |= {name: _misread(name, pl.col(name), is_good) for name, is_good in is_rate.items()}
    params = pl.lit(None, pl.Float64)
    if size is not None:
        params = _number(size)
        misread[size] = _misread(size, pl.col(size), params.is_finite() & (params > 0))
        params = params * 1e9 if size == "total_params_b" else params
    wrong = {name: f"{name} misread" for name in misread}
    flagged = frame.with_columns(cell.alias(wrong[name]) for name, cell in misread.items())
    typed = flagged.select(
        *(
            pl.when(pl.col(wrong[name]).is_null()).then(_number(name).round()).cast(pl.Int64, strict=False).alias(name)
            for name in numbers
        ),
        *(pl.when(is_good).then(_number(name)).alias(name) for name, is_good in is_rate.items()),
        *(pl.when(_is_positive(name)).then(_number(name)).alias(name) for name in SHEET if name in filled),
        *(pl.col(name).cast(pl.String) for name in _TEXTS),
        *(pl.when(_clean(name).is_in(known)).then(_clean(name)).alias(name) for name, known in words.items()),
        stated_sharding=pl.col("zero_stage").cast(pl.String).str.strip_chars(),
        stated_params=params,
        misread=pl.concat_str(list(wrong.values()), separator=", ", ignore_nulls=True),
    )
    empty = {
        **dict.fromkeys((name for name in _NUMBERS if name not in filled), pl.Int64),
        **dict.fromkeys((name for name in (*_RATES, *SHEET) if name not in filled), pl.Float64),
        **dict.fromkeys((name for name in _WORDS if name not in filled), pl.String),
    }
    return typed.with_columns(
        *(pl.Series(name, [None] * frame.height, dtype) for name, dtype in empty.items()),
        *(_booleans(frame[name]) for name in _BOOLEANS),
        stage.alias("zero_stage"),
    )


def recompute_mode(text: str) -> str | None:
    """Word of RECOMPUTE_MODES for what tables write, or None for other text.

    >>> [recompute_mode(text) for text in ("every_layer", "Selective", "disabled", "True", "every other month")]
    ['full', 'selective', 'none', 'full', None]
    """
    text = text.strip().casefold().replace("_", " ")
    if word := vocabulary.canonical_recompute(text):
        return word
    if is_partial(text):
        return "full"
    patterns = (
        ("selective", r"^select"),
        ("none", r"^(off|disabled?|false|0|not? .*)$"),
        ("full", r"^(full.*|true|yes|on|enabled?|all|uniform|block|(every|each|all) layers?)$"),
    )
    return next((word for word, pattern in patterns if re.search(pattern, text)), None)


def is_partial(text: str) -> bool:
    """Whether only some layers are recomputed: "partial (block, 4 layers)"."""
    return bool(re.match(r"(?i)\s*partial", text))


def _stage_of(text: str) -> int | None:
    """ZeRO stage of what tables write; Megatron's distributed optimizer is stage 1."""
    stage = vocabulary.canonical_zero_stage(text)
    if stage is None and re.search(r"dist(ributed)?[-_ ]?opt", text.casefold()):
        return 1
    return stage


def _zero_stages(column: pl.Series) -> pl.Series:
    number = column.cast(pl.Float64, strict=False)
    digits = pl.DataFrame({"n": number}).select(pl.when(pl.col("n").is_in([0.0, 1.0, 2.0, 3.0])).then("n")).to_series()
    digits = digits.cast(pl.Int64)
    named = vocabulary.map_words(column, _stage_of, pl.Int64)
    return pl.DataFrame({"d": digits, "n": named}).select(pl.coalesce("d", "n")).to_series()


USUAL_RECOMPUTE = {"paxml": "full", "maxtext": "full", "levanter": "full", "torchtitan": "selective"}
"""What trainers recompute where nothing else is asked for: praxis saves nothing of its repeated layers
(`layers/repeats.py: checkpoint_policy`), MaxText and Levanter neither (`configs/base.yml: remat_policy`;
`gradient_checkpointing`), torchtitan drops what its selective mode does (`config/job_config.py:
ActivationCheckpoint.mode`)."""


def read_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """One row per row of `frame`, in order: canonical columns with every degree and batch that follows exactly."""
    typed = _typed(frame)
    # A micro-batch is the local batch when the sequence of a step is not accumulated over.
    known = filled_runs(typed.with_columns(run_id=pl.int_range(pl.len()).cast(pl.String)))
    derived = known.select(
        *("accelerator", "precision", "recompute", "dp", "tp", "pp", "cp", "mbs", "gas", "gbs", "gbs_tokens"),
        *("seq_len", "num_gpus", "num_nodes", "gpus_per_node"),
    )
    whole = typed.with_columns(derived.get_columns()).with_columns(
        software_years(frame),
        dp_replicate=_replicas(),
        stated_replicas=pl.col("dp_replicate"),
        framework=pl.coalesce(
            vocabulary.map_words(typed["framework_version"], vocabulary.framework_of_version, pl.String),
            vocabulary.map_words(typed["framework"], vocabulary.canonical_framework, pl.String),
            typed["framework"],
        ),
        fp8_scaling=pl.coalesce("fp8_scaling", pl.lit(typed["precision"].str.extract(_SCALED).str.to_lowercase())),
        stated_recompute=typed["recompute"],
        recompute=vocabulary.map_words(typed["recompute"], recompute_mode, pl.String),
    )
    # A layout that is left open is chosen with the recomputation that suits it.
    trainer = pl.coalesce("framework", vocabulary.map_words(whole["source_id"], vocabulary.framework_of, pl.String))
    is_open = pl.col("stated_recompute").is_null() & pl.all_horizontal(pl.col("dp", "tp", "pp").is_not_null())
    usual = pl.when(is_open).then(trainer.replace_strict(USUAL_RECOMPUTE, default=None, return_dtype=pl.String))
    return whole.with_columns(recompute=pl.coalesce("recompute", usual))


HYBRID = r"(?i)hsdp|hybrid"
"""What names sharding within groups without saying how large they are: a node, as PyTorch's HYBRID_SHARD has it."""


def _replicas() -> pl.Expr:
    """Copies of the sharded states: as stated; dp over the ranks that share one copy (`dp_shard`, or "groups of 8" in
    the sharding's name); one for each node under HSDP of unstated size; NULL where no groups are stated.

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
