"""Every bundled profile's recipe, in one list. A new profile is one entry here; `sweepscope calibrate` fits it.

Starts are published values where there are some (see `data/calibration/default.toml`) and otherwise values of the right
size. Where a start was chosen after looking at the rows that it is scored on, a comment names it: such a figure is not
blind, whatever the split.
"""

from __future__ import annotations

from typing import Final

import polars as pl

from sweepscope.pipeline.estimate.calibration.recipe_rows import Recipe, Weights

_bf16 = ~pl.col("precision").fill_null("bf16").str.contains("(?i)fp8|float8")
_SHAPE_OF_GEMM: Final = {"gemm_wave_loss": 0.35, "gemm_half_waves": 0.1, "gemm_half_depth": 300.0}
_FSDP: Final = {
    **_SHAPE_OF_GEMM,
    "attention_half_tokens": 300.0,
    "elementwise_passes": 1.2,
    "full_recompute_cost": 0.8,
    "shard_contention": 0.5,
    "optimizer_passes": 1.0,
    "fixed_step_s": 0.002,
    "memory_share": 0.8,
}

# llm-foundry's loss is flash-attention's by default, which keeps 16 bit logits and their 16 bit gradients, and nothing
# in fp32 (`models/mpt/modeling_mpt.py`: fused_crossentropy, not in place; Dao-AILab/flash-attention, csrc/xentropy).
_FUSED_LOSS: Final = {"logit_bytes": 4.0}

RECIPES: Final = (
    Recipe(
        profile="ampere-composer",
        dataset="llm_foundry",
        rows=pl.col("accelerator").str.contains("A100"),
        group="fold",
        time={"gemm_peak_share": 0.8, "attention_efficiency": 0.35, **_FSDP},
        fixed=_FUSED_LOSS,
        weights=(Weights(pull=0.02),),
    ),
    Recipe(
        profile="hopper-composer",
        dataset="llm_foundry",
        rows=pl.col("accelerator").str.contains("H100"),
        group="fold",
        time={"gemm_peak_share": 0.7, "attention_efficiency": 0.2, "fp8_gain": 0.5, **_FSDP},
        fixed=_FUSED_LOSS,
        weights=(Weights(pull=0.02),),
    ),
    Recipe(
        profile="ampere-megatron",
        dataset="selene_megatron",
        rows=pl.col("source_id").str.contains("tab5"),
        group="model",
        time={"gemm_peak_share": 0.88, "full_recompute_cost": 0.8},
        fixed={"tp_hidden": 0.0, "has_dropout": True, "attention_efficiency": 0.55, "cut_sends": 2.0},
        # Of Megatron-LM before it had fused attention. Later versions on A100 (the README of NeMo's launcher, 2022, and
        # golden values of Megatron-LM's tests) are off by 26 and 78 % with these constants, 12 and 53 % without.
        covers={"is_flash": (False,)},
    ),
    Recipe(
        profile="blackwell-megatron",
        dataset="simumax_b200",
        rows=pl.lit(True),
        group="kind",
        time={
            "gemm_peak_share": 0.6,
            "attention_efficiency": 0.45,
            "link_share": 0.77,
            "microbatch_s": 1e-3,
            # As counted of a loss that is sharded over the vocabulary (`physics/elementwise.py`).
            "head_bytes_per_logit": 52.0,
            "elementwise_passes": 1.2,
            "gemm_half_waves": 0.1,
            "link_latency_s": 8.5e-6,
            "optimizer_passes": 1.0,
        },
        memory={"logit_bytes": 4.5, "context_bytes": 1e8, "norm_bytes": 4.0},
        fixed={"tp_hidden": 0.0, "dp_hidden": 0.0, "kernel_launch_s": 1e-5},
        # Products reach half of the peak on this machine, and on no other: Megatron-LM on GB200
        # (NVIDIA/dgxc-benchmarking) is off by 29 % in 16 bit and 42 % in FP8 with these constants, 8 and 3 % with those
        # of the generation; Llama 3.1 8B in NeMo 26.02 on B200 reaches 0.53 of the peak as a whole.
        covers={"source_id": ("simumax_b200",)},
    ),
    # Starts are those of `hopper.toml` and `default.toml`; of terms that are zero there, round numbers.
    Recipe(
        profile="hopper-nanotron",
        dataset="ultrascale_playbook_all_runs",
        rows=(pl.col("status") == "success")
        & (pl.col("global_batch_tokens").cast(pl.Float64) == 2**20)
        & ~(pl.col("model").str.contains("80B") & (pl.col("num_kv_heads") == "8")),
        group="model",
        time={
            **_SHAPE_OF_GEMM,
            "gemm_peak_share": 0.7,
            "attention_efficiency": 0.38,
            "elementwise_passes": 1.2,
            "head_bytes_per_logit": 24.0,
            "memory_share": 0.8,
            "link_share": 0.77,
            "network_share": 0.87,
            "network_decay": 0.05,
            "link_latency_s": 8.5e-6,
            "network_latency_s": 4e-6,
            "tp_hidden": 0.45,
            "dp_hidden": 0.67,
            "shard_contention": 0.2,
            "fixed_step_s": 0.002,
            "microbatch_s": 1e-3,
            "optimizer_passes": 1.0,
            "kernel_launch_s": 8e-6,
            "bucket_bytes": 1e9,
            "exchange_launch_s": 1e-3,
            "exchange_launch_growth": 0.1,
            "slow_node_chance": 0.01,
            "slow_node_cost": 0.1,
        },
        # Nanotron's tensors: norms' inputs, fp32 gradients and DDP's 16 bit buckets, fp32 logits that live on, the two
        # buffers of gathered inputs (`parallel/utils.py: MemoryBuffer`).
        memory={
            "norm_bytes": 4.0,
            "mlp_bytes_gated": 8.0,
            "gathered_bytes": 4.0,
            "logit_bytes": 9.0,
            "context_bytes": 3e8,
            "rotary_copies": 1.5,
        },
        fixed={
            "placement": "by_cost",
            "hides_gather": False,
            "grad_fresh_bytes": 0.0,
            "grad_held_bytes": 4.0,
            "grad_bucket_bytes": 2.0,
            "logit_kept_bytes": 4.0,
            "exchange_buffer_bytes": 4.0,
        },
        memory_pull=0.1,
        memory_unit=2.0**30,
        is_bound=True,
        weights=tuple(Weights(pull, early) for pull in (0.02, 0.05) for early in (1.0, 1.6, 2.0, 2.5)),
    ),
    Recipe(
        profile="hopper-torchtitan",
        dataset="torchtitan",
        rows=~pl.col("table_or_figure").str.contains("(?i)rowwise|async"),
        group="model",
        time={"gemm_peak_share": 0.7, "attention_efficiency": 0.19, "fp8_gain": 0.6},
        memory={"norm_bytes": 4.0, "mlp_bytes_gated": 4.0, "logit_bytes": 12.0},
        # Compiled, as all but two rows are: its loss and its launches are Inductor's.
        fixed={"selective": "products", "head_bytes_per_logit": 16.0, "kernel_launch_s": 5e-6},
        kernels={"execution": "compiled"},
        weights=(Weights(pull=0.3),),
    ),
    Recipe(
        profile="ampere-internevo",
        dataset="other_sweeps",
        rows=pl.col("source_id") == "internevo",
        group="num_gpus",
        time={
            "gemm_peak_share": 0.75,
            "attention_efficiency": 0.43,
            "elementwise_passes": 1.2,
            "network_share": 0.87,
            "network_latency_s": 4e-6,
            "bucket_bytes": 1e9,
            "dp_hidden": 0.67,
            "tp_hidden": 0.45,
            "microbatch_s": 1e-3,
        },
        fixed={"reduces_whole": True, "grad_bytes": 2.0, "grad_held_bytes": 2.0},
        weights=(Weights(pull=0.05),),
    ),
    Recipe(
        profile="ampere-megatron-deepspeed",
        dataset="bigscience_sweeps",
        rows=pl.col("accelerator").str.contains("A100"),
        group="model",
        time={"gemm_peak_share": 0.7, "attention_efficiency": 0.45, "elementwise_passes": 1.2, "network_share": 0.87},
        fixed={
            "is_flash": False,
            "has_dropout": True,
            "is_sequence_parallel": False,
            "tp_hidden": 0.0,
            "dp_hidden": 0.0,
            "hides_gather": False,
            "reduces_whole": True,
            "cut_sends": 1.0,
            "unfused_hidden_bytes": 2.0,
            "unfused_query_bytes": 4.0,
        },
    ),
)
