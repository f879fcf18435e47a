"""Published results and the data sheets of accelerators."""

from __future__ import annotations

from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import flag, integer, number, text
from sweepscope.schemas.core.table import Table

_AS_PUBLISHED = ("precision", "recompute", "sequence_parallel", "pipeline_schedule", "status")

PUBLISHED_RUNS = Table(
    name="published_runs",
    description="Published results as their sources print them, with provenance. Each is in `runs` as well.",
    grain="one row per published result",
    primary_key=("run_id",),
    redefines=_AS_PUBLISHED,
    columns=columns(
        "run_id",
        text("dataset", "bundled file of the row, without its ending"),
        "line_no source_path source_id source_title source_url table_or_figure total_params_b active_params_b",
        number("peak_tflops_bf16", "TFLOP/s", "dense BF16 peak used by the source or its table", minimum=0),
        integer("grad_accum", "count", "gradient accumulation steps"),
        integer("micro_batch_size", "sequences", "micro-batch size"),
        integer("global_batch_size_seqs", "sequences", "global batch"),
        "global_batch_tokens",
        text("zero_stage_or_fsdp", "sharding, as published"),
        text("flash_attention", "flash attention, as published"),
        "tflops_per_gpu",
        number("mfu_pct", "%", "MFU in percent, as published", minimum=0),
        number("hfu_pct", "%", "HFU in percent, as published", minimum=0),
        number("peak_mem_gb", "GB", "peak memory as published (nanotron's GB is 2**30 bytes)", minimum=0),
        "model num_layers hidden_size num_heads num_kv_heads head_dim kv_lora_rank q_lora_rank "
        "qk_rope_head_dim ffn_hidden_size gated_mlp vocab_size tie_word_embeddings num_experts "
        "experts_per_token expert_ffn_hidden_size shared_expert_ffn_hidden_size num_dense_layers seq_len "
        "num_gpus gpus_per_node num_nodes accelerator dp tp pp cp ep vpp",
        tuple(text(name, f"{name}, as published") for name in _AS_PUBLISHED),
        "step_time_s tokens_per_s_per_gpu verification comparability",
        flag("is_claimed_best", "the source presents this row as the best of its cell"),
        "notes",
        text("extra", "columns that only this table has, as JSON"),
    ),
)

ACCELERATORS = Table(
    name="accelerators",
    description="Peaks and memory used for MFU and for the memory tracks, per accelerator.",
    grain="one row per accelerator",
    primary_key=("accelerator",),
    layer="reference",
    replaced_by="accelerator",
    columns=columns(
        "accelerator",
        text("vendor", "maker"),
        number("peak_bf16_tflops", "TFLOP/s", "dense BF16 (or FP16) peak", minimum=0),
        number("peak_fp8_tflops", "TFLOP/s", "dense FP8 (or INT8) peak", minimum=0),
        number("peak_fp4_tflops", "TFLOP/s", "dense FP4 (NVFP4 or MXFP4) peak; NULL without one", minimum=0),
        "memory_bytes",
        text("memory_label", "memory as sold"),
        text("aliases", "other spellings, separated by |"),
        "source_url notes",
    ),
)

FRONTIER = Table(
    name="frontier",
    description="Published frontier configurations with MFU and HFU apart and a word on comparability.",
    grain="one row per published frontier configuration",
    primary_key=("run_id",),
    layer="view",
    redefines=("precision",),
    columns=columns(
        "run_id model total_params_b active_params_b num_gpus accelerator seq_len dp tp pp cp ep global_batch_tokens",
        text("precision", "precision, as published"),
        "tflops_per_gpu mfu mfu_logged hfu comparability verification source_title source_url table_or_figure notes",
    ),
)
