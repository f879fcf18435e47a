"""Every column, once: type, unit, meaning. Tables pick columns from here by name.

Add a column here first. Numeric columns carry a unit; its name ends in the unit's suffix where one exists
(`_bytes`, `_s`, `_tflops`). The same name means the same quantity in every table. A new area lists its columns in a
module of its own, built from `schemas.core.column`, which joins `_GROUPS` below.
"""

from __future__ import annotations

from sweepscope.schemas import vocab
from sweepscope.schemas.columns import estimates, memory, memory_views, nccl, reliability, scheduler
from sweepscope.schemas.core.column import Column
from sweepscope.schemas.core.column import bool_column as _bool
from sweepscope.schemas.core.column import float_column as _float
from sweepscope.schemas.core.column import int_column as _int
from sweepscope.schemas.core.column import text_column as _text
from sweepscope.schemas.core.column import time_column as _time

_IDENTITY = (
    _text("run_id", "stable id of one run attempt: hash of its source path (or URL) and attempt"),
    _int("attempt", "count", "number of the launch within its run directory or log, from 1", minimum=1),
    _text("source_path", "file the rows come from: absolute path, URL, or path of the bundled table"),
    _int("line_no", "count", "line in that file, counted from 1 at line feeds", minimum=1),
    _text("run_dir", "directory that holds the run's files"),
    _text("sweep", "directory (or published study) that the run belongs to"),
    _text(
        "framework",
        "training framework; a word beside those listed is the name of a dialect file",
        vocab.FRAMEWORK,
        other_words=vocab.DECLARED_FRAMEWORK,
    ),
    _text("origin", "measured, published or simulated", vocab.ORIGIN),
    _text("job_id", "scheduler job id, from the file name or the log"),
)

_OUTCOME = (
    _text("status", "how the run ended", vocab.STATUS),
    _text("status_confidence", "how sure the classification is", vocab.CONFIDENCE),
    _text("status_evidence", "the line, or rule, that decided the status"),
    _time("started_at", "first timestamp in the log, else the job's start (as printed, no time zone)"),
    _time("ended_at", "last timestamp in the log, else the job's end (as printed, no time zone)"),
    _int(
        "diverged_at_step",
        "steps",
        "first logged step from which the loss (or the gradient norm) stays NaN or infinite or, by the rule of "
        "pipeline/logs/diagnostics/divergence.py, stays far above its best; NULL when nothing says so",
    ),
    _text("quarantine_reason", "why the run is kept out of every ranking; NULL when it is ranked"),
    _text("duplicate_of", "table that holds the same run; such a row counts nowhere. NULL for a run of its own"),
)

_PLACE = (
    _text("cluster", "cluster or site name"),
    _text("accelerator", "accelerator as named in the `accelerators` table, or as found"),
    _int("num_nodes", "count", "nodes used", minimum=1),
    _int("gpus_per_node", "count", "accelerators per node", minimum=1),
    _int("num_gpus", "count", "accelerators used (ranks, on CPU runs)", minimum=1),
)

_MODEL = (
    _text("model", "model name, of known models the same for all frameworks; from shape and size when nobody named it"),
    _text("model_logged", "model name as the source has it, where `model` is another spelling"),
    _int("params", "count", "parameters, tied embeddings once; from the shape when it is known", minimum=1),
    _int("active_params", "count", "parameters used per token (equals params for dense models)", minimum=1),
    _int("num_layers", "count", "transformer layers", minimum=1),
    _int("hidden_size", "count", "model width", minimum=1),
    _int("num_heads", "count", "attention heads", minimum=1),
    _int("num_kv_heads", "count", "key-value heads", minimum=1),
    _int(
        "head_dim",
        "count",
        "width of one attention head, where it is not hidden_size / num_heads (MLA: no rotary part)",
        minimum=1,
    ),
    _int("kv_lora_rank", "count", "latent width of keys and values (MLA); NULL for other attention", minimum=1),
    _int("q_lora_rank", "count", "latent width of queries (MLA); 0 = not compressed; NULL for other attention"),
    _int(
        "qk_rope_head_dim", "count", "rotary part of a head (MLA), beside head_dim; NULL for other attention", minimum=1
    ),
    _int("ffn_hidden_size", "count", "feed-forward width (of the dense layers, in a MoE model)", minimum=1),
    _bool("gated_mlp", "the feed-forward block has a gate (SwiGLU, GeGLU): three matrices instead of two"),
    _int("vocab_size", "count", "vocabulary size, unpadded where known", minimum=1),
    _bool("tie_word_embeddings", "input and output embedding share weights"),
    _int("num_experts", "count", "routed experts per MoE layer", minimum=1),
    _int("experts_per_token", "count", "routed experts used per token", minimum=1),
    _int("expert_ffn_hidden_size", "count", "feed-forward width of one routed expert", minimum=1),
    _int("shared_expert_ffn_hidden_size", "count", "feed-forward width of the shared experts together; 0 = none"),
    _int("num_dense_layers", "count", "layers without experts in a MoE model; 0 = none"),
    _int("seq_len", "tokens", "sequence length of one sample (the whole sequence, also with cp)", minimum=1),
)

_LAYOUT = (
    _int("dp", "count", "data-parallel replicas", minimum=1),
    _int("tp", "count", "tensor-parallel degree", minimum=1),
    _int("pp", "count", "pipeline stages", minimum=1),
    _int("cp", "count", "context-parallel degree", minimum=1),
    _int("ep", "count", "expert-parallel degree (lives inside dp, as in Megatron)", minimum=1),
    _int("vpp", "count", "virtual pipeline stages per rank (interleaving)", minimum=1),
    _int("zero_stage", "count", "ZeRO stage 0-3; FSDP full shard is 3, distributed optimizer is 1"),
    _int("dp_replicate", "count", "copies of what ZeRO shards (HSDP), within dp; 1 = sharded over all", minimum=1),
    _int("mbs", "sequences", "micro-batch size per replica", minimum=1),
    _int("gas", "count", "gradient accumulation steps = micro-batches per step and replica", minimum=1),
    _int("gbs", "sequences", "global batch = dp * gas * mbs", minimum=1),
    _int("gbs_tokens", "tokens", "global batch in tokens = gbs * seq_len", minimum=1),
    _text("layout", "layout in one text, e.g. DP8 TP4 PP2 · GAS16 MBS2 · Z1; unknown parts are left out"),
    _text(
        "variant", "what else sets a run apart from others of its layout, in its source's words (async TP, a kernel)"
    ),
    _text("recompute", "activation recomputation", vocab.RECOMPUTE),
    _bool("sequence_parallel", "Megatron sequence parallelism is on"),
    _text("precision", "precision of the matrix products", vocab.PRECISION),
    _text("pipeline_schedule", "pipeline schedule as the framework names it"),
)

_SOFTWARE = (
    _text("framework_version", "version or commit of the framework"),
    _text("torch_version", "PyTorch (or JAX) version"),
    _text("cuda_version", "CUDA or ROCm version"),
    _text("nccl_version", "NCCL or RCCL version"),
    _text("parser", "parser that read the file"),
    _int("parser_version", "id", "version of that parser; a higher one makes the file new again", minimum=1),
)

_PERFORMANCE = (
    _int("steps_planned", "steps", "last step the run was configured to reach", minimum=1),
    _int("steps_logged", "steps", "distinct steps found in the log"),
    _int("first_step", "steps", "first step logged"),
    _int("last_step", "steps", "last step logged"),
    _float("last_loss", "nats", "training loss of the last step that logged one"),
    _int("warmup_steps_dropped", "steps", "leading logged steps left out of the steady medians"),
    _float("step_time_s", "s", "time per step; in `runs` the median over steady steps", positive=True),
    _float("step_time_p10_s", "s", "10th percentile of steady step times", positive=True),
    _float("step_time_p90_s", "s", "90th percentile of steady step times", positive=True),
    _float("tokens_per_s", "tokens/s", "throughput of the whole job", minimum=0),
    _float("tokens_per_s_per_gpu", "tokens/s/GPU", "throughput per accelerator", minimum=0),
    _float(
        "model_tflops_per_gpu",
        "TFLOP/s/GPU",
        "model FLOPs (6N + 12Lhs per token, no recomputation) per second and accelerator, recomputed",
        minimum=0,
    ),
    _float("mfu", "fraction", "model FLOPs utilisation, recomputed from tokens/s and shape", minimum=0),
    _float("mfu_logged", "fraction", "MFU as the framework or source printed it", minimum=0),
    _float("hfu", "fraction", "hardware FLOPs utilisation (counts recomputation), as published", minimum=0),
    _text("mfu_basis", "how `mfu` was computed (FLOPs per token, peak and its precision), or why it could not be"),
    _float("flops_per_token", "FLOP/token", "model FLOPs per token used for `mfu`", positive=True),
    _float("peak_tflops", "TFLOP/s", "dense peak of the accelerator used for `mfu`", positive=True),
    _float(
        "peak_tflops_logged",
        "TFLOP/s",
        "peak that the framework divided by for `mfu_logged`, as printed",
        positive=True,
    ),
    _float("tflops_per_gpu_logged", "TFLOP/s/GPU", "TFLOP/s per accelerator as logged", minimum=0),
    _int("mem_allocated_bytes", "bytes", "allocator bytes in use, as logged at this step"),
    _int("mem_reserved_bytes", "bytes", "allocator bytes reserved, as logged at this step"),
    _int("mem_peak_allocated_bytes", "bytes", "peak allocated, worst rank seen"),
    _int("mem_peak_reserved_bytes", "bytes", "peak reserved, worst rank seen"),
    _float("gpu_hours", "GPU·h", "accelerator-hours from start to end, as far as the log shows", minimum=0),
    _text("gpu_hours_basis", "where `gpu_hours` comes from", vocab.GPU_HOURS_BASIS),
    _float("warmup_step_time_s", "s", "time of the first logged step", positive=True),
)

_STEP = (
    _int("step", "steps", "optimizer step as the framework counts it"),
    _time("ts", "timestamp of the line (as logged, no time zone)"),
    _float("loss", "nats", "training loss as logged (may be NaN)"),
    _float("grad_norm", "1", "gradient norm as logged"),
    _float("learning_rate", "1", "learning rate as logged"),
    _int("consumed_tokens", "tokens", "tokens consumed so far, as logged"),
)

_EVENT = (
    _text("kind", "what the line says", vocab.EVENT_KIND),
    _int("rank", "id", "rank that printed the line"),
    _text("host", "host that printed the line, or that it names"),
    _text("text", "the line, trimmed to 2,000 characters"),
)

_FILE = (
    _text("path", "absolute path, URL, or path of the bundled table"),
    _int("bytes", "bytes", "size of the file"),
    _float("mtime", "s", "modification time, seconds since 1970 (0 for bundled tables)"),
    _text(
        "sha256", "SHA-256 of the file; NULL for a log that was read in parts, until it is at rest and is read whole"
    ),
    _int(
        "read_bytes",
        "bytes",
        "what the last ingest had to read of it, less than its size for a log that had only grown",
    ),
    _int(
        "offset_bytes",
        "bytes",
        "end of the last whole line, where reading goes on when the log grows; NULL where it would start anew",
    ),
    _text("linked_path", "the file's own name where `path` leads to it through a link; NULL where `path` is that name"),
    _text("unit", "run directory or file that is ingested, and replaced, as a whole"),
    _text("batch_id", "ingest batch that read the file last"),
    _text("error", "why the file was skipped or rejected"),
    _int("rows_parsed", "count", "rows that came from this file, over all tables"),
    _int("lines_rejected", "count", "lines and rows of this file in `rejects`"),
)

_REJECT = (
    _text("file", "file the line or row comes from"),
    _text("table", "table the row was meant for"),
    _text("column", "column that failed, when one can be named"),
    _text("reason", "why it was rejected"),
    _text("raw", "the raw line or row, trimmed to 2,000 characters"),
)

_SETTING = (
    _text("name", "setting, named as the column of `runs` it fills, or as the framework spells it"),
    _text("value", "value as text"),
    _text("setting_source", "where the value comes from", vocab.SETTING_SOURCE),
    _bool("is_used", "this is the value that stands in `runs`"),
)

_PUBLISHED = (
    _text("source_id", "short id of the publication"),
    _text("source_title", "title of the publication"),
    _text("source_url", "where it can be read"),
    _text("table_or_figure", "table, figure or line within it"),
    _text("dataset", "bundled file the row stands in, without its ending"),
    _float("total_params_b", "1e9", "parameters in billions, as published"),
    _float("active_params_b", "1e9", "active parameters in billions, as published"),
    _float("peak_tflops_bf16", "TFLOP/s", "dense BF16 peak used by the source or its table"),
    _int("grad_accum", "count", "gradient accumulation steps"),
    _int("micro_batch_size", "sequences", "micro-batch size"),
    _int("global_batch_size_seqs", "sequences", "global batch"),
    _int("global_batch_tokens", "tokens", "global batch in tokens"),
    _text("zero_stage_or_fsdp", "sharding, as published"),
    _text("flash_attention", "flash attention, as published"),
    _float("tflops_per_gpu", "TFLOP/s/GPU", "TFLOP/s per accelerator, as published"),
    _float("mfu_pct", "%", "MFU in percent, as published"),
    _float("hfu_pct", "%", "HFU in percent, as published"),
    _float("peak_mem_gb", "GB", "peak memory as published (nanotron's GB is 2**30 bytes)"),
    _text("verification", "how the row was checked against its source"),
    _text("notes", "caveats: derived, inferred or inconsistent values are named here"),
    _text("extra", "columns that only this table has, as JSON"),
    _text("comparability", "comparable, or why the MFU may not be set beside another"),
    _bool("is_claimed_best", "the source presents this row as the best of its cell"),
)

_ACCELERATOR = (
    _text("vendor", "maker"),
    _float("peak_bf16_tflops", "TFLOP/s", "dense BF16 (or FP16) peak"),
    _float("peak_fp8_tflops", "TFLOP/s", "dense FP8 (or INT8) peak"),
    _int("memory_bytes", "bytes", "memory a job can allocate"),
    _text("memory_label", "memory as sold"),
    _text("aliases", "other spellings, separated by |"),
)

_CELL = (
    _text("sweeps", "sweeps that the runs of the cell come from, in alphabetical order, separated by a comma"),
    _text("cell_state", "what is known about this cell", vocab.CELL_STATE),
    _text("cell_reason", "why the cell is empty, in words; NULL when it is measured"),
    _int("runs_tried", "count", "run attempts in this cell"),
    _int("runs_completed", "count", "of those, completed and ranked"),
    _int("layouts_completed", "count", "distinct layouts among the completed runs"),
    _int("runs_quarantined", "count", "completed runs that are not ranked: quarantined, or without a throughput"),
    _int("repeats", "count", "completed runs of the winning layout"),
    _float("repeat_spread", "fraction", "(max - min) / median of tokens/s/GPU over its repeats"),
    _float("speed_resolution", "fraction", "last printed digit of tokens/s/GPU over its value", minimum=0),
    _text("runner_up_run_id", "best run of the second-best layout"),
    _text("runner_up_layout", "second-best layout"),
    _float("runner_up_tokens_per_s_per_gpu", "tokens/s/GPU", "its throughput"),
    _float("runner_up_mfu", "fraction", "its MFU"),
    _float("margin", "fraction", "winner over runner-up in tokens/s/GPU, minus 1"),
    _bool("is_tie", "the margin is within the noise: repeats' spread and printed digits, or 1 % without repeats"),
    _int("rank_in_cell", "count", "1 = fastest layout of the cell", minimum=1),
    _float("states_lower_bound_bytes", "bytes", "16 bytes per parameter over all accelerators: fully sharded"),
)

_SCALING = (
    _int("baseline_num_nodes", "count", "node count of this line's smallest run with a result"),
    _int("baseline_num_gpus", "count", "accelerators of this line's smallest run with a result"),
    _float("baseline_mfu", "fraction", "MFU at the baseline"),
    _float("scaling_efficiency", "fraction", "MFU(N) / MFU(baseline)"),
    _float("ideal_tokens_per_s", "tokens/s", "baseline throughput times the growth in accelerators"),
    _text(
        "strategy",
        "which dimensions are used: DP, TP, PP, CP, EP joined by +, or none; 'best' = the best layout of any",
    ),
)

_AUDIT = (
    _text("finding", "what is wrong, as one word", vocab.FINDING),
    _text("detail", "the finding in one sentence, with its figures"),
    _float("mfu_ratio", "1", "mfu_logged / mfu"),
)

_STORE = (
    _int("version", "id", "number of the published store, one higher each time", minimum=1),
    _int("release", "id", "release of the lake that it was built from", minimum=1),
    _time("published_at", "when it was published (UTC)"),
    _text("package_version", "version of sweepscope that published it"),
    _text("fingerprint", "hash of the table and view definitions; another one means publishing anew"),
    _int("row_count", "count", "rows over all tables"),
)

_GROUPS = (
    _IDENTITY,
    _OUTCOME,
    _PLACE,
    _MODEL,
    _LAYOUT,
    _SOFTWARE,
    _PERFORMANCE,
    _STEP,
    _EVENT,
    _FILE,
    _REJECT,
    _SETTING,
    _PUBLISHED,
    _ACCELERATOR,
    _CELL,
    _SCALING,
    _AUDIT,
    _STORE,
    scheduler.COLUMNS,
    reliability.COLUMNS,
    nccl.COLUMNS,
    memory.COLUMNS,
    estimates.COLUMNS,
    memory_views.COLUMNS,
)

COLUMNS: dict[str, Column] = {column.name: column for group in _GROUPS for column in group}


def names(group: tuple[Column, ...]) -> tuple[str, ...]:
    """Names of a group of columns, in order."""
    return tuple(column.name for column in group)


PLACE, MODEL, LAYOUT = names(_PLACE), names(_MODEL), names(_LAYOUT)
SOFTWARE, PERFORMANCE, PUBLISHED = names(_SOFTWARE), names(_PERFORMANCE), names(_PUBLISHED)
