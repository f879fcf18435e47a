"""Columns of `runs` that follow from several values that torchtitan prints: layout, sharding and precision.

Sharding: FSDP that frees parameters after the forward pass is ZeRO-3; keeping them (the default with a pipeline,
parallelize functions of models/*/infra) is ZeRO-2. Mixed precision of FSDP defaults to bfloat16 (config/job_config.py).
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting
from sweepscope.pipeline.logs.expressions import whole


def _dimension(name: str) -> pl.Expr:
    """Size of a mesh dimension, 1 when the mesh was built without it, NULL when the line was not printed to its end."""
    return pl.coalesce(whole(f"arg:mesh_{name}"), pl.when(pl.col("arg:mesh").is_not_null()).then(1))


_SHARDED = ("dp_shard", "dp_shard_mod_ep", "dp_shard_in_ep")
_ON_MESH = pl.col("arg:mesh").is_not_null()
_ORIGINS = ("arg:mesh",)


def _product(*names: str) -> pl.Expr:
    product = _dimension(names[0])
    for name in names[1:]:
        product = product * _dimension(name)
    return product


def _zero_stage() -> pl.Expr:
    # The single `dp` of 2024 was FSDP unless the log names DDP.
    is_single_fsdp = (_dimension("dp") > 1) & (pl.col("arg:wrapper") != "DDP").fill_null(value=True)
    is_sharded = (_product(*_SHARDED, "cp") > 1) | is_single_fsdp
    reshard = pl.col("arg:reshard").str.to_lowercase()
    is_freed = reshard.is_in(["true", "always"]).fill_null(value=False)
    is_kept = reshard.is_in(["false", "never"]).fill_null(value=False) | (~is_freed & (_dimension("pp") > 1))
    return pl.when(~is_sharded).then(0).when(is_kept & is_sharded).then(2).when(is_sharded).then(3)


def _dp_replicate() -> pl.Expr:
    """Copies of what FSDP shards; replicas of DDP share nothing that there could be copies of."""
    is_sharded = _product(*_SHARDED, "cp") > 1
    return pl.when(is_sharded).then(_dimension("dp_replicate"))


def _precision() -> tuple[CombinedSetting, ...]:
    words = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
    names = ("arg:quantised", "arg:converters", "arg:mixed_precision", "arg:dtype")
    # `['float8']`, later `["quantize.linear.float8"]`; what they do is printed once the model is built.
    asked = pl.when(pl.col("arg:converters").str.contains("float8", literal=True)).then(pl.lit("fp8"))
    stated = pl.coalesce(names[2:]).replace_strict(words, default=None, return_dtype=pl.String)
    is_unstated = _ON_MESH & pl.all_horizontal(pl.col(name).is_null() for name in names)
    return (
        CombinedSetting("precision", pl.coalesce(pl.col("arg:quantised"), asked, stated), names),
        CombinedSetting("precision", pl.when(is_unstated).then(pl.lit("bf16")), _ORIGINS, setting_source="assumed"),
    )


def _expert_parallel() -> pl.Expr:
    """Degree of expert parallelism. Of the old mesh only where cp and tp are 1: dp_shard_in_ep is ep over them."""
    is_plain = (_dimension("cp") == 1) & (_dimension("tp") == 1)
    return pl.coalesce(whole("arg:mesh_ep"), pl.when(is_plain).then(whole("arg:mesh_dp_shard_in_ep")))


def _dp_of_options() -> pl.Expr:
    """Before a mesh is built; a shard degree of -1 (fill what is left) is no number."""
    return pl.when(~_ON_MESH).then(whole("arg:dp_shard") * whole("arg:dp_replicate").fill_null(1))


def _zero_of_options() -> pl.Expr:
    """Before a mesh is built. Context parallel ranks hold shards, too."""
    ranks = whole("arg:dp_shard") * whole("cp").fill_null(1)
    is_kept = pl.col("arg:reshard").str.to_lowercase() == "never"
    is_default = pl.col("arg:reshard").str.to_lowercase().fill_null("default") == "default"
    is_kept = is_kept.fill_null(value=False) | (is_default & (whole("pp").fill_null(1) > 1))
    sharded = pl.when(ranks == 1).then(0).when(is_kept & (ranks > 1)).then(2).when(ranks > 1).then(3)
    return pl.when(~_ON_MESH).then(sharded)


def _model_of_options() -> pl.Expr:
    return pl.when(pl.col("model").is_null()).then(pl.format("{} {}", "arg:model", "arg:flavor"))


COMBINED: tuple[CombinedSetting, ...] = (
    *(CombinedSetting(name, _dimension(name), _ORIGINS) for name in ("tp", "pp", "cp")),
    CombinedSetting("dp", _product("dp", "dp_replicate", *_SHARDED), _ORIGINS),
    CombinedSetting("dp", _dp_of_options(), ("arg:dp_shard",)),
    CombinedSetting("ep", _expert_parallel(), _ORIGINS),
    CombinedSetting("zero_stage", _zero_stage(), _ORIGINS),
    CombinedSetting("zero_stage", _zero_of_options(), ("arg:dp_shard",)),
    CombinedSetting("dp_replicate", _dp_replicate(), _ORIGINS),
    *_precision(),
    CombinedSetting("pipeline_schedule", pl.when(_dimension("pp") > 1).then(pl.col("arg:schedule")), ("arg:schedule",)),
    CombinedSetting("model", _model_of_options(), ("arg:model",)),
)
