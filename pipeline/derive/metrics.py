"""Derived performance of `runs`: parameters, FLOPs per token, MFU, GPU-hours, and what may not be ranked.

MFU here is model FLOPs utilisation as in PaLM (Chowdhery et al. 2022, appendix B): the training FLOPs that the model
needs, without recomputation, over the dense peak at the precision of the matrix products. It is always recomputed;
what a log or a paper prints stays in `mfu_logged`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.reference.accelerators import SIXTEEN_BIT, highest_peak_tflops, is_known, peak_tflops
from sweepscope.schemas.tables.runs import RUNS
from sweepscope.schemas.thresholds import LABEL_TOLERANCE

_col = pl.col

# HFU counts at least what MFU counts, but a source may leave attention out of it: 12Lhs over the 6 x 12Lh2 of the
# layers is s/6h, so that an honest HFU stays above MFU / 1.5 up to sequences of three times the width.
_HFU_MARGIN = 1.5
_ENDS_EARLY = 0.9  # a median step may exceed the mean by some percent; timestamps that miss more than that miss steps


def _attention_width() -> pl.Expr:
    """Width over all heads: hidden_size unless the model has heads of another width (PaLM, Qwen3)."""
    return pl.coalesce(_col("num_heads") * _col("head_dim"), "hidden_size")


def _attention_params() -> pl.Expr:
    """Q and O: hidden x (heads x head width). K and V: hidden x (KV heads x head width). See also `_latent_params`."""
    width = _attention_width()
    kv_width = width * _col("num_kv_heads") / _col("num_heads")
    plain = _col("hidden_size") * (2 * width + 2 * kv_width)
    return pl.when(_col("kv_lora_rank").is_null()).then(plain).otherwise(_latent_params())


def _latent_params() -> pl.Expr:
    """Latent attention (DeepSeek-V2, 2405.04434, section 2.1): queries down and up (or in one step), keys and values
    down with the rotary key, and up, and the output. NULL unless rank, rotary part and head width are known.
    """
    hidden, rope, values = _col("hidden_size"), _col("qk_rope_head_dim"), _col("num_heads") * _col("head_dim")
    queries = values + _col("num_heads") * rope
    rank = _col("q_lora_rank")
    query = pl.when(rank > 0).then((hidden + queries) * rank).when(rank == 0).then(hidden * queries)
    return query + hidden * (_col("kv_lora_rank") + rope) + _col("kv_lora_rank") * 2 * values + values * hidden


def _mlp_params(width: pl.Expr) -> pl.Expr:
    matrices = pl.when(_col("gated_mlp")).then(3).when(~_col("gated_mlp")).then(2)
    return matrices * _col("hidden_size") * width


def _shape_params(experts_counted: str) -> pl.Expr:
    """Parameters that the shape implies, counting `experts_counted` routed experts per layer; NULL unless all is known.

    Norm weights are counted (2L + 1 vectors), biases and learned positions are not: under 0.1 % of any model here.
    """
    hidden, layers = _col("hidden_size"), _col("num_layers")
    embeddings = _col("vocab_size") * hidden * pl.when(_col("tie_word_embeddings")).then(1).otherwise(2)
    outside_mlp = layers * _attention_params() + (2 * layers + 1) * hidden + embeddings
    dense = layers * _mlp_params(_col("ffn_hidden_size"))

    dense_layers = _col("num_dense_layers")
    per_expert_layer = (
        _col(experts_counted) * _mlp_params(_col("expert_ffn_hidden_size"))
        + _mlp_params(_col("shared_expert_ffn_hidden_size"))
        + _col("num_experts") * hidden  # the router
    )
    first_layers = pl.when(dense_layers == 0).then(0.0).otherwise(dense_layers * _mlp_params(_col("ffn_hidden_size")))
    sparse = first_layers + (layers - dense_layers) * per_expert_layer

    is_tying_known = _col("tie_word_embeddings").is_not_null()
    mlp = pl.when(_col("num_experts").is_null()).then(dense).otherwise(sparse)
    return pl.when(is_tying_known).then(outside_mlp + mlp).round().cast(pl.Int64, strict=False)


def fill_params(runs: pl.DataFrame) -> pl.DataFrame:
    """`params` and `active_params` from the shape where it is complete, else as given; and the label check.

    A given `params` that differs from its shape by more than LABEL_TOLERANCE puts the run in quarantine: the label
    names another model than the one that ran.
    """
    shape = runs.with_columns(from_shape=_shape_params("num_experts"), active=_shape_params("experts_per_token"))
    is_mislabelled = ((_col("from_shape") / _col("params") - 1).abs() > LABEL_TOLERANCE).fill_null(False)
    reason = pl.format(
        "the shape has {}B parameters, the label says {}B",
        (_col("from_shape") / 1e9).round(1),
        (_col("params") / 1e9).round(1),
    )
    return shape.with_columns(
        quarantine_reason=pl.coalesce("quarantine_reason", pl.when(is_mislabelled).then(reason)),
        params=pl.coalesce("from_shape", "params"),
        active_params=pl.coalesce("active", "active_params", pl.when(_col("num_experts").is_null()).then("params")),
    ).drop("from_shape", "active")


def _fill_throughput(runs: pl.DataFrame) -> pl.DataFrame:
    """Step time, tokens/s and tokens/s/GPU from each other; a logged value is never replaced."""
    return runs.with_columns(
        tokens_per_s=pl.coalesce(
            "tokens_per_s",
            _col("tokens_per_s_per_gpu") * _col("num_gpus"),
            _col("gbs_tokens") / _col("step_time_s"),
        )
    ).with_columns(
        tokens_per_s_per_gpu=pl.coalesce("tokens_per_s_per_gpu", _col("tokens_per_s") / _col("num_gpus")),
        step_time_s=pl.coalesce(
            "step_time_s", pl.when(_col("tokens_per_s") > 0).then(_col("gbs_tokens") / _col("tokens_per_s"))
        ),
    )


def _attention_flops() -> pl.Expr:
    """12 L (heads x head width) s per token: scores and values, forward and backward.

    Latent attention scores over a head and its rotary part: 6 L s (queries + values). NULL where that is not known.
    """
    per_layer = 12.0 * _attention_width()
    latent = 6.0 * _col("num_heads") * (2 * _col("head_dim") + _col("qk_rope_head_dim"))
    width = pl.when(_col("kv_lora_rank").is_null()).then(per_layer).otherwise(latent)
    return width * _col("num_layers") * _col("seq_len")


def _basis(peak: pl.Expr) -> pl.Expr:
    """How `mfu` was computed, or the first reason why it could not be."""
    formula = (
        pl.when(_attention_flops().is_null())
        .then(pl.lit("6N, attention left out"))
        .when(_col("kv_lora_rank").is_null())
        .then(pl.lit("6N + 12Lhs"))
        .otherwise(pl.lit("6N + 6Ls(q + v)"))
    )
    precision = (
        pl.when(_col("precision").is_null())
        .then(pl.lit("16-bit, precision not stated"))
        .when(_col("precision").is_in(SIXTEEN_BIT))
        .then(pl.lit("16-bit"))
        .otherwise(_col("precision").str.to_uppercase())
    )
    return (
        pl.when(_col("tokens_per_s_per_gpu").is_null())
        .then(pl.lit("not computed: no throughput"))
        .when(_col("active_params").is_null())
        .then(pl.lit("not computed: parameters unknown"))
        .when(_col("accelerator").is_null())
        .then(pl.lit("not computed: accelerator unknown"))
        .when(~is_known())
        .then(pl.format("not computed: {} is not in the accelerators table", "accelerator"))
        .when(_col("precision") == "unclear")
        .then(pl.lit("not computed: precision not stated, 8-bit or lower possible"))
        .when(peak.is_null())
        .then(pl.format("not computed: no {} peak for {}", _col("precision").fill_null("16-bit"), "accelerator"))
        .otherwise(pl.format("{}; peak {} TFLOP/s ({})", formula, peak.cast(pl.Int64), precision))
    )


def _impossible() -> pl.Expr:
    """Why a completed run cannot be what it says, from its figures alone; NULL for every other run.

    TFLOP/s that a framework prints are no evidence: their formulas leave out gates, attention or heads. HFU counts more
    work than MFU, so one far below it means that tokens/s, batch or step time are wrong.
    """
    degrees = _col("dp") * _col("tp") * _col("pp") * _col("cp").fill_null(1)
    reason = (
        pl.when(degrees != _col("num_gpus"))
        .then(pl.format("the layout needs {} accelerators, the run had {}", degrees, "num_gpus"))
        .when(_col("model_tflops_per_gpu") > highest_peak_tflops())
        .then(pl.format("{} TFLOP/s is above the accelerator's peak", _col("model_tflops_per_gpu").round(0)))
        .when(_col("mfu") > _HFU_MARGIN * _col("hfu"))
        .then(
            pl.format(
                "tokens/s imply an MFU of {} %, the printed HFU is {} %",
                (100 * _col("mfu")).round(1),
                (100 * _col("hfu")).round(1),
            )
        )
    )
    return pl.when(_col("status") == "completed").then(reason)


def _fill_gpu_hours(runs: pl.DataFrame) -> pl.DataFrame:
    """`gpu_hours` and `gpu_hours_basis`; a given value is never replaced.

    A log shows its run from its first to its last timestamp. Where that is one moment, or ends long before the steps do
    (only the launcher's lines carry a time), steps times median step time is the better lower bound.
    """
    stamped_s = (_col("ended_at") - _col("started_at")).dt.total_milliseconds() / 1e3
    stamped_s = pl.when(stamped_s > 0).then(stamped_s)  # a single timestamp spans nothing: unknown, not 0
    stepped_s = (_col("last_step") - _col("first_step") + 1) * _col("step_time_s")
    is_stamped = stamped_s.is_not_null() & (stamped_s >= _ENDS_EARLY * stepped_s).fill_null(value=True)
    seconds = pl.when(is_stamped).then(stamped_s).otherwise(stepped_s)
    known = seconds.is_not_null() & _col("num_gpus").is_not_null()
    basis = (
        pl.when(_col("gpu_hours").is_not_null())
        .then(pl.lit("given"))
        .when(known & is_stamped)
        .then(pl.lit("timestamps"))
        .when(known)
        .then(pl.lit("steps"))
    )
    return runs.with_columns(
        gpu_hours=pl.coalesce("gpu_hours", seconds * _col("num_gpus") / 3600),
        gpu_hours_basis=pl.coalesce("gpu_hours_basis", basis),
    )


def add_metrics(runs: pl.DataFrame) -> pl.DataFrame:
    """Recompute throughput, FLOPs, MFU, GPU-hours and quarantine of a `runs` frame that was normalised.

    `flops_per_token` is 6N + 12Lhs, with N the active parameters (PaLM appendix B; Korthikanti et al., 2205.05198).
    Where the shape or the sequence length is unknown, or attention is latent, it is 6N and `mfu_basis` says so: `mfu`
    is then a lower bound. `mfu` is NULL, with the reason in `mfu_basis`, when any factor is unknown.
    """
    runs = _fill_gpu_hours(_fill_throughput(RUNS.conform(runs)))
    peak = peak_tflops()
    flops = 6.0 * _col("active_params") + _attention_flops().fill_null(0.0)
    return (
        runs.with_columns(flops_per_token=flops, peak_tflops=peak, mfu_basis=_basis(peak))
        .with_columns(model_tflops_per_gpu=_col("flops_per_token") * _col("tokens_per_s_per_gpu") / 1e12)
        .with_columns(
            mfu=_col("model_tflops_per_gpu") / _col("peak_tflops"),
        )
        .with_columns(quarantine_reason=pl.coalesce("quarantine_reason", _impossible()))
    )
