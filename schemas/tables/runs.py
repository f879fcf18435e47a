"""The tables of the lake, the reference tables and the views, each with its grain and key.

A new table is one entry here plus its name in `schemas.registry`; a new column comes from `schemas.columns.shared`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.schemas import vocab
from sweepscope.schemas.columns.scheduler import RUN_COLUMNS
from sweepscope.schemas.columns.shared import LAYOUT, MODEL, PERFORMANCE, PLACE, PUBLISHED, SOFTWARE
from sweepscope.schemas.core.column import Column
from sweepscope.schemas.core.table import Rule, Table

_col = pl.col

FILES = Table(
    name="files",
    description="The ledger: every file seen, what was done with it and why.",
    grain="one row per file",
    primary_key=("path",),
    column_names=(
        "path",
        "unit",
        "kind",
        "bytes",
        "mtime",
        "sha256",
        "read_bytes",
        "offset_bytes",
        "parser",
        "parser_version",
        "status",
        "error",
        "rows_parsed",
        "lines_rejected",
        "batch_id",
        "linked_path",
    ),
    replaced_by="path",
    overrides=(
        Column("kind", pl.String, "what the file is", words=vocab.FILE_KIND),
        Column("status", pl.String, "what was done with the file", words=vocab.FILE_STATUS),
    ),
)

_RUN_MEDIANS = tuple(
    name for name in PERFORMANCE if name not in {"tflops_per_gpu_logged", "mem_allocated_bytes", "mem_reserved_bytes"}
)

RUNS = Table(
    name="runs",
    description="Every run attempt: outcome, place, model, layout, software and steady-state performance.",
    grain="one row per run attempt",
    primary_key=("run_id",),
    column_names=(
        "run_id",
        "attempt",
        "source_path",
        "line_no",
        "run_dir",
        "sweep",
        "framework",
        "origin",
        "job_id",
        "status",
        "status_confidence",
        "status_evidence",
        "started_at",
        "ended_at",
        "diverged_at_step",
        "quarantine_reason",
        "duplicate_of",
        *PLACE,
        *MODEL,
        *LAYOUT,
        *SOFTWARE,
        *_RUN_MEDIANS,
        "tflops_per_gpu_logged",
        *RUN_COLUMNS,
    ),
    rules=(Rule("steps_in_order", _col("first_step") <= _col("last_step"), "first_step comes after last_step"),),
)

STEPS = Table(
    name="steps",
    description="Training steps exactly as logged, warm-up included.",
    grain="one row per run attempt and logged step",
    primary_key=("run_id", "step"),
    column_names=(
        "run_id",
        "step",
        "ts",
        "loss",
        "step_time_s",
        "tokens_per_s",
        "tokens_per_s_per_gpu",
        "tflops_per_gpu_logged",
        "mfu_logged",
        "mem_allocated_bytes",
        "mem_reserved_bytes",
        "grad_norm",
        "learning_rate",
        "consumed_tokens",
        "source_path",
        "line_no",
    ),
)

EVENTS = Table(
    name="events",
    description="Evidence: lines that say how a run started, failed, ended or contradicts itself.",
    grain="one row per evidence line and kind",
    primary_key=("source_path", "line_no", "kind", "text"),
    column_names=("run_id", "source_path", "line_no", "ts", "kind", "rank", "host", "text"),
    nullable_key=("line_no",),
)

SETTINGS = Table(
    name="settings",
    description="Where each configuration value of a run comes from; conflicting sources stand side by side.",
    grain="one row per run attempt, setting and source",
    primary_key=("run_id", "name", "setting_source"),
    column_names=("run_id", "name", "value", "setting_source", "is_used", "source_path", "line_no"),
    nullable_key=("line_no",),
)

REJECTS = Table(
    name="rejects",
    description="Lines that look like records but did not parse, and rows that broke a schema. "
    "Nothing is dropped silently.",
    grain="one row per rejected line or row and reason",
    primary_key=("file", "line_no", "table", "column", "reason"),
    column_names=("file", "line_no", "table", "column", "reason", "raw"),
    replaced_by="file",
    nullable_key=("line_no", "table", "column"),
)

_AS_PUBLISHED = tuple(
    Column(name, pl.String, f"{name}, as published")
    for name in ("precision", "recompute", "sequence_parallel", "pipeline_schedule", "status")
)

# Ours rather than the source's; they stand at the end of the table.
_JUDGEMENTS = {"dataset", "extra", "comparability", "is_claimed_best", "notes", "verification"}

PUBLISHED_RUNS = Table(
    name="published_runs",
    description="Published results as their sources print them, with provenance. Each also stands in `runs`.",
    grain="one row per published result",
    primary_key=("run_id",),
    column_names=(
        "run_id",
        "dataset",
        "line_no",
        "source_path",
        *(name for name in PUBLISHED if name not in _JUDGEMENTS),
        "model",
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
        "seq_len",
        "num_gpus",
        "gpus_per_node",
        "num_nodes",
        "accelerator",
        "dp",
        "tp",
        "pp",
        "cp",
        "ep",
        "vpp",
        "precision",
        "recompute",
        "sequence_parallel",
        "pipeline_schedule",
        "status",
        "step_time_s",
        "tokens_per_s_per_gpu",
        "verification",
        "comparability",
        "is_claimed_best",
        "notes",
        "extra",
    ),
    overrides=_AS_PUBLISHED,
)

ACCELERATORS = Table(
    name="accelerators",
    description="Peaks and memory used for MFU and for the memory tracks, per accelerator.",
    grain="one row per accelerator",
    primary_key=("accelerator",),
    column_names=(
        "accelerator",
        "vendor",
        "peak_bf16_tflops",
        "peak_fp8_tflops",
        "memory_bytes",
        "memory_label",
        "aliases",
        "source_url",
        "notes",
    ),
    layer="reference",
    replaced_by="accelerator",
)

CELL_KEY = ("origin", "model", "num_nodes", "num_gpus", "seq_len", "gbs_tokens", "accelerator")

_WINNER = (
    "run_id",
    "framework",
    "params",
    "gpus_per_node",
    "dp",
    "tp",
    "pp",
    "cp",
    "ep",
    "vpp",
    "zero_stage",
    "mbs",
    "gas",
    "recompute",
    "precision",
    "sequence_parallel",
    "pipeline_schedule",
    "layout",
    "variant",
    "strategy",
    "tokens_per_s_per_gpu",
    "tokens_per_s",
    "step_time_s",
    "mfu",
    "mfu_logged",
    "hfu",
    "model_tflops_per_gpu",
    "mem_peak_allocated_bytes",
    "mem_peak_reserved_bytes",
)

BEST_CONFIGS = Table(
    name="best_configs",
    description="The fastest layout of each cell by measured tokens/s/GPU (median over repeats), its runner-up and "
    "how sure the lead is.",
    grain="one row per origin, model, num_nodes, num_gpus, seq_len, gbs_tokens and accelerator with a ranked run",
    primary_key=CELL_KEY,
    column_names=(
        *CELL_KEY,
        *_WINNER,
        "repeats",
        "repeat_spread",
        "runner_up_run_id",
        "runner_up_layout",
        "runner_up_tokens_per_s_per_gpu",
        "runner_up_mfu",
        "margin",
        "is_tie",
        "runs_tried",
        "runs_completed",
        "layouts_completed",
    ),
    layer="view",
)

RANKED_LAYOUTS = Table(
    name="ranked_layouts",
    description="Every completed layout of each cell in order of tokens/s/GPU; rank 1 stands in best_configs.",
    grain="one row per cell and layout",
    primary_key=(*CELL_KEY, "rank_in_cell"),
    column_names=(*CELL_KEY, "rank_in_cell", *_WINNER, "repeats", "repeat_spread", "speed_resolution"),
    layer="view",
)

GRID_CELLS = Table(
    name="grid_cells",
    description="Every cell of each grid, with the typed reason when it is empty.",
    grain="one row per origin, seq_len, gbs_tokens, accelerator, and each model x num_nodes that one sweep spans",
    primary_key=CELL_KEY,
    column_names=(
        *CELL_KEY,
        "params",
        "gpus_per_node",
        "cell_state",
        "cell_reason",
        "runs_tried",
        "runs_completed",
        "runs_quarantined",
        "states_lower_bound_bytes",
        "memory_bytes",
        "run_id",
        "layout",
        "mfu",
        "tokens_per_s_per_gpu",
        "mem_peak_allocated_bytes",
        "sweeps",
    ),
    layer="view",
)

SCALING_EFFICIENCY = Table(
    name="scaling_efficiency",
    description="MFU of the best layout at each size against the smallest, per model and per strategy "
    "(strategy 'best' = any layout).",
    grain="one row per origin, model, seq_len, gbs_tokens, accelerator, strategy, num_nodes and num_gpus",
    primary_key=("origin", "model", "seq_len", "gbs_tokens", "accelerator", "strategy", "num_nodes", "num_gpus"),
    column_names=(
        "origin",
        "model",
        "seq_len",
        "gbs_tokens",
        "accelerator",
        "strategy",
        "num_nodes",
        "num_gpus",
        "params",
        "run_id",
        "layout",
        "mfu",
        "tokens_per_s",
        "tokens_per_s_per_gpu",
        "baseline_num_nodes",
        "baseline_num_gpus",
        "baseline_mfu",
        "scaling_efficiency",
        "ideal_tokens_per_s",
        "runs_completed",
        "runs_tried",
    ),
    layer="view",
)

MFU_AUDIT = Table(
    name="mfu_audit",
    description="Runs and cells whose published or logged MFU cannot be taken at face value, and why.",
    grain="one row per run and finding",
    primary_key=("run_id", "finding"),
    column_names=(
        "run_id",
        "origin",
        "framework",
        "model",
        "num_nodes",
        "layout",
        "finding",
        "detail",
        "mfu",
        "mfu_logged",
        "mfu_ratio",
        "source_path",
        "line_no",
    ),
    layer="view",
)

FRONTIER = Table(
    name="frontier",
    description="Published frontier configurations with MFU and HFU apart and a word on comparability.",
    grain="one row per published frontier configuration",
    primary_key=("run_id",),
    column_names=(
        "run_id",
        "model",
        "total_params_b",
        "active_params_b",
        "num_gpus",
        "accelerator",
        "seq_len",
        "dp",
        "tp",
        "pp",
        "cp",
        "ep",
        "global_batch_tokens",
        "precision",
        "tflops_per_gpu",
        "mfu",
        "mfu_logged",
        "hfu",
        "comparability",
        "verification",
        "source_title",
        "source_url",
        "table_or_figure",
        "notes",
    ),
    layer="view",
    overrides=_AS_PUBLISHED[:1],
)

STORE_INFO = Table(
    name="store_info",
    description="What this store is: its version, the release of the lake behind it, and what published it.",
    grain="one row",
    primary_key=("version",),
    column_names=("version", "release", "published_at", "package_version", "fingerprint", "row_count"),
    layer="store",
)
