"""Columns of `runs` that follow from several of Megatron's arguments: precision, sharding, recomputation, model shape.

The arguments changed over the years: megatron/training/arguments.py defines what each combination means. Inputs named
`arg:` come from `megatron_settings`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting
from sweepscope.pipeline.logs.expressions import cases, has_value, is_true, whole


def _arg(name: str) -> pl.Expr:
    return pl.col(f"arg:{name}")


def _is_on(name: str) -> pl.Expr:
    return is_true(f"arg:{name}")


def _whole(name: str) -> pl.Expr:
    return whole(f"arg:{name}")


# What a dump of arguments does not name did not exist in that version, if the dump was printed to its end: its last
# line shows it, or something that comes after it (Megatron-Bridge and Primus print no last line).
_IS_WHOLE = pl.any_horizontal(
    _arg(name).is_not_null() for name in ("end_of_dump", "stepped", "shard_params", "total_params_billions")
)
# Every dump states params_dtype.
_IS_DUMP = _arg("params_dtype").is_not_null() & _IS_WHOLE


def _precision() -> pl.Expr:
    quantised = {name: has_value(f"arg:{name}") & (_arg(name).str.to_lowercase() != "false") for name in ("fp8", "fp4")}
    return cases(
        (quantised["fp4"], "fp4"),
        (quantised["fp8"] & (_arg("fp8_recipe") == "mxfp8"), "mxfp8"),
        (quantised["fp8"], "fp8"),
        (_is_on("bf16"), "bf16"),
        (_is_on("fp16"), "fp16"),
        (_arg("params_dtype") == "torch.float32", "fp32"),
    )


def _zero_stage() -> pl.Expr:
    """Distributed optimizer is ZeRO-1. `zero_stage` means something only with DeepSpeed.

    Versions before use_distributed_optimizer (2022) sharded nothing.
    """
    strategies = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
    sharding = _arg("data_parallel_sharding_strategy").replace_strict(strategies, default=None, return_dtype=pl.Int64)
    is_fsdp = (_is_on("use_custom_fsdp") | _is_on("use_megatron_fsdp")).fill_null(value=False)
    return cases(
        (_is_on("deepspeed"), _whole("zero_stage")),
        (_is_on("use_torch_fsdp2"), 3),
        (is_fsdp, sharding),
        (_IS_WHOLE & _is_on("use_distributed_optimizer"), 1),
        (_IS_WHOLE & ~_is_on("use_distributed_optimizer"), 0),
        (_IS_DUMP & ~_is_on("deepspeed").fill_null(value=False), 0),
    )


def _recompute() -> pl.Expr:
    was_full = _is_on("checkpoint_activations") | has_value("arg:activations_checkpoint_method")
    older = _IS_WHOLE & (_arg("recompute_activations").is_not_null() | _arg("checkpoint_activations").is_not_null())
    return cases(
        (_arg("recompute_granularity").is_in(["full", "selective"]), _arg("recompute_granularity")),
        (_is_on("recompute_activations"), "selective"),
        (was_full.fill_null(value=False), "full"),
        (_arg("recompute_granularity").is_not_null() | older, "none"),
    )


_IS_MLA = _is_on("multi_latent_attention").fill_null(value=False)


def _kv_heads() -> pl.Expr:
    """Query groups, or one per head; Megatron-Bridge states the groups without a switch, old dumps neither.

    Megatron-DeepSpeed names them as Llama does, with the number of heads where nothing else is asked for.
    """
    groups, heads = _whole("num_query_groups"), whole("num_heads")
    return cases(
        (_IS_MLA, pl.lit(None)),
        (_whole("num_key_value_heads").is_not_null(), _whole("num_key_value_heads")),
        (_is_on("group_query_attention"), groups),
        (~_is_on("group_query_attention"), heads),
        (groups.is_not_null(), groups),
        (_IS_DUMP | _arg("num_query_groups").is_not_null(), heads),
    )


def _head_dim() -> pl.Expr:
    """With latent attention the width of a value and of a key without its rotary part, where both are the same."""
    width, latent = _whole("kv_channels"), _whole("qk_head_dim")
    return cases(
        (_IS_MLA, pl.when(_whole("v_head_dim").fill_null(latent) == latent).then(latent)),
        (width * whole("num_heads") != whole("hidden_size"), width),
    )


def _q_lora_rank() -> pl.Expr:
    """0 where the dump has None: queries are projected in one step (`transformer/multi_latent_attention.py`)."""
    stated = _arg("q_lora_rank")
    return pl.when(_IS_MLA).then(pl.when(stated == "None").then(0).otherwise(_whole("q_lora_rank")))


def _gated() -> pl.Expr:
    switch = pl.coalesce(_is_on("swiglu"), _is_on("gated_linear_unit")).fill_null(value=False)
    is_known = pl.any_horizontal(_arg(n).is_not_null() for n in ("swiglu", "gated_linear_unit"))
    return pl.when(is_known | has_value("arg:glu_activation") | _IS_DUMP).then(switch | has_value("arg:glu_activation"))


def _tied() -> pl.Expr:
    """GPT shared its embeddings until the switch to untie them came."""
    return pl.coalesce(
        ~_is_on("untie_embeddings_and_output_weights"),
        _is_on("share_embeddings_and_output_weights"),
        pl.when(_IS_DUMP).then(pl.lit(value=True)),
    )


_EXPERTS = pl.coalesce(_whole("num_experts"), _whole("num_moe_experts"))
# Megatron-DeepSpeed states num_experts for dense models too.
_IS_MOE = (_EXPERTS > 1) & _arg("deepspeed").is_null()


def _experts() -> tuple[CombinedSetting, ...]:
    pattern = _arg("moe_layer_freq")
    dense_layers = cases((pattern.str.starts_with("["), pattern.str.count_matches(r"\b0\b")), (pattern == "1", 0))
    shared_width = pl.when(_arg("moe_router_topk").is_not_null()).then(
        _whole("moe_shared_expert_intermediate_size").fill_null(0)
    )
    expert_width = pl.coalesce(_whole("moe_ffn_hidden_size"), whole("ffn_hidden_size"))
    return (
        CombinedSetting("num_experts", pl.when(_IS_MOE).then(_EXPERTS)),
        CombinedSetting(
            "experts_per_token", pl.when(_IS_MOE).then(_whole("moe_router_topk")), ("arg:moe_router_topk",)
        ),
        CombinedSetting("expert_ffn_hidden_size", pl.when(_IS_MOE).then(expert_width), ("arg:moe_ffn_hidden_size",)),
        CombinedSetting("shared_expert_ffn_hidden_size", pl.when(_IS_MOE).then(shared_width), ("arg:moe_router_topk",)),
        CombinedSetting("num_dense_layers", pl.when(_IS_MOE).then(dense_layers), ("arg:moe_layer_freq",)),
    )


def _vocab_size() -> pl.Expr:
    """The dump often has only the padded size, or the unpadded one as None: the line about padding is better."""
    return pl.when(pl.col("vocab_size").is_null()).then(pl.coalesce(_whole("vocab_size"), _whole("padded_vocab_size")))


def _params() -> pl.Expr:
    """The count of one shard where nothing is split, else the total, if its two decimals say enough."""
    is_whole = (whole("tp") == 1) & (whole("pp") == 1) & (whole("ep").fill_null(1) == 1)
    billions = _arg("total_params_billions").cast(pl.Float64, strict=False)
    return pl.coalesce(
        pl.when(is_whole).then(_whole("shard_params")),
        pl.when(billions >= 1).then((billions * 1e9).round().cast(pl.Int64, strict=False)),
    )


# DeepSpeed's pipeline came before Megatron's.
_HAS_NO_PIPELINE = _arg("two_sizes").is_not_null() & _arg("pipe_parallel_size").is_null()

COMBINED: tuple[CombinedSetting, ...] = (
    CombinedSetting("precision", _precision(), ("arg:bf16",)),
    CombinedSetting("zero_stage", _zero_stage(), ("arg:use_distributed_optimizer", "arg:deepspeed")),
    CombinedSetting("recompute", _recompute(), ("arg:recompute_granularity", "arg:checkpoint_activations")),
    CombinedSetting("num_kv_heads", _kv_heads(), ("arg:num_key_value_heads", "arg:num_query_groups", "num_heads")),
    CombinedSetting("head_dim", _head_dim(), ("arg:kv_channels", "arg:qk_head_dim")),
    CombinedSetting("kv_lora_rank", pl.when(_IS_MLA).then(_whole("kv_lora_rank")), ("arg:kv_lora_rank",)),
    CombinedSetting("q_lora_rank", _q_lora_rank(), ("arg:q_lora_rank",)),
    CombinedSetting(
        "qk_rope_head_dim", pl.when(_IS_MLA).then(_whole("qk_pos_emb_head_dim")), ("arg:qk_pos_emb_head_dim",)
    ),
    CombinedSetting("gated_mlp", _gated(), ("arg:swiglu", "arg:gated_linear_unit")),
    CombinedSetting("tie_word_embeddings", _tied()),
    CombinedSetting("vocab_size", _vocab_size(), ("arg:vocab_size", "arg:padded_vocab_size")),
    CombinedSetting("params", _params(), ("arg:shard_params", "arg:total_params_billions")),
    *_experts(),
    *(CombinedSetting(name, pl.when(_HAS_NO_PIPELINE).then(1), ("arg:two_sizes",)) for name in ("pp", "cp")),
)
