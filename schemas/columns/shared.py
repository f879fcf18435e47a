"""Columns that several tables share, each defined once: type, unit, meaning.

A column of one table alone is defined in that table. The name of a numeric column ends in the suffix of its unit where
one exists (`_bytes`, `_s`, `_tflops`); the same name means the same quantity in every table.
"""

from __future__ import annotations

from sweepscope.schemas import vocab
from sweepscope.schemas.core.column import Column, flag, integer, number, text, time
from sweepscope.schemas.vocab.memory import MEM_CATEGORY, MEM_ORIGIN
from sweepscope.schemas.vocab.nccl import INIT_STATE

_RUN = (
    text("run_id", "stable id of one run attempt: hash of its source path (or URL) and attempt"),
    text("source_path", "file the rows come from: absolute path, URL, or path of the bundled table"),
    integer("line_no", "count", "line in that file, counted from 1 at line feeds", minimum=1),
    text("run_dir", "directory that holds the run's files"),
    text("sweep", "directory (or published study) that the run belongs to"),
    text("framework", "training framework, or a dialect file", vocab.FRAMEWORK, other_words=vocab.DECLARED_FRAMEWORK),
    text("origin", "measured, published or simulated", vocab.ORIGIN),
    text("job_id", "scheduler job id, from the file name or the log"),
    text("author", "login name of who wrote it, where the command line did"),
    text("status", "how the run ended", vocab.STATUS),
    text("status_confidence", "how sure the classification is", vocab.CONFIDENCE),
    text("status_evidence", "the line, or rule, that decided the status"),
    time("started_at", "first timestamp in the log, else the job's start (as printed, no time zone)"),
    time("ended_at", "last timestamp in the log, else the job's end (as printed, no time zone)"),
)

_HARDWARE = (
    text("cluster", "cluster or site name"),
    text("accelerator", "accelerator as named in the `accelerators` table, or as found"),
    integer("num_nodes", "count", "nodes used", minimum=1),
    integer("gpus_per_node", "count", "accelerators per node", minimum=1),
    integer("num_gpus", "count", "accelerators used (ranks, on CPU runs)", minimum=1),
)

_MODEL = (
    text("model", "model name, of known models the same in all frameworks; from shape and size when no source has it"),
    text("model_logged", "model name as the source has it, where `model` is another spelling"),
    integer("params", "count", "parameters, tied embeddings once; from the shape when it is known", minimum=1),
    integer("active_params", "count", "parameters used per token (equals params for dense models)", minimum=1),
    integer("num_layers", "count", "transformer layers", minimum=1),
    integer("hidden_size", "count", "model width", minimum=1),
    integer("num_heads", "count", "attention heads", minimum=1),
    integer("num_kv_heads", "count", "key-value heads", minimum=1),
    integer("head_dim", "count", "width of a head, where not hidden_size / num_heads (MLA: no rotary part)", minimum=1),
    integer("kv_lora_rank", "count", "latent width of keys and values (MLA); NULL for other attention", minimum=1),
    integer("q_lora_rank", "count", "latent width of queries (MLA); 0 = not compressed; NULL for other attention"),
    integer("qk_rope_head_dim", "count", "rotary part of a head (MLA), beside head_dim; NULL for others", minimum=1),
    integer("ffn_hidden_size", "count", "feed-forward width (of the dense layers, in a MoE model)", minimum=1),
    flag("gated_mlp", "the feed-forward block has a gate (SwiGLU, GeGLU): three matrices instead of two"),
    integer("vocab_size", "count", "vocabulary size, unpadded where known", minimum=1),
    flag("tie_word_embeddings", "input and output embedding share weights"),
    integer("num_experts", "count", "routed experts per MoE layer", minimum=1),
    integer("experts_per_token", "count", "routed experts used per token", minimum=1),
    integer("expert_ffn_hidden_size", "count", "feed-forward width of one routed expert", minimum=1),
    integer("shared_expert_ffn_hidden_size", "count", "feed-forward width of the shared experts together; 0 = none"),
    integer("num_dense_layers", "count", "layers without experts in a MoE model; 0 = none"),
    integer("seq_len", "tokens", "sequence length of one sample (the whole sequence, also with cp)", minimum=1),
)

_LAYOUT = (
    integer("dp", "count", "data-parallel replicas", minimum=1),
    integer("tp", "count", "tensor-parallel degree", minimum=1),
    integer("pp", "count", "pipeline stages", minimum=1),
    integer("cp", "count", "context-parallel degree", minimum=1),
    integer("ep", "count", "expert-parallel degree (lives inside dp, as in Megatron)", minimum=1),
    integer("vpp", "count", "virtual pipeline stages per rank (interleaving)", minimum=1),
    integer("zero_stage", "count", "ZeRO stage 0-3; FSDP full shard is 3, distributed optimizer is 1"),
    integer("dp_replicate", "count", "copies of what ZeRO shards (HSDP), within dp; 1 = sharded over all", minimum=1),
    integer("mbs", "sequences", "micro-batch size per replica", minimum=1),
    integer("gas", "count", "gradient accumulation steps = micro-batches per step and replica", minimum=1),
    integer("gbs", "sequences", "global batch = dp * gas * mbs", minimum=1),
    integer("gbs_tokens", "tokens", "global batch in tokens = gbs * seq_len", minimum=1),
    text("layout", "layout in one text, e.g. DP8 TP4 PP2 · GAS16 MBS2 · Z1; unknown parts are left out"),
    text("variant", "what else sets a run apart from others of its layout, in its source's words (async TP, a kernel)"),
    text("options_id", "digest of the options in `arguments`; runs of a layout that differ in it are no repeats"),
    text("recompute", "activation recomputation", vocab.RECOMPUTE),
    flag("sequence_parallel", "Megatron sequence parallelism is on"),
    text("precision", "precision of the matrix products", vocab.PRECISION),
    text("pipeline_schedule", "pipeline schedule as the framework names it"),
)

_SOFTWARE = (
    text("framework_version", "version or commit of the framework"),
    text("torch_version", "PyTorch (or JAX) version"),
    text("cuda_version", "CUDA or ROCm version"),
    text("nccl_version", "NCCL or RCCL version"),
    text("parser", "parser that read the file"),
    integer("parser_version", "id", "hash of that parser's source; a file read by another is read again", minimum=1),
)

_PERFORMANCE = (
    integer("steps_planned", "steps", "last step the run was configured to reach", minimum=1),
    integer("last_step", "steps", "last step logged; `runs.step_basis` names what its number counts"),
    number("step_time_s", "s", "time per step; in `runs` what `step_time_basis` says", positive=True),
    number("tokens_per_s", "tokens/s", "throughput of the whole job", minimum=0),
    number("tokens_per_s_per_gpu", "tokens/s/GPU", "throughput per accelerator", minimum=0),
    number("model_tflops_per_gpu", "TFLOP/s/GPU", "recomputed, by 6N + 12Lhs model FLOPs per token", minimum=0),
    number("mfu", "fraction", "model FLOPs utilisation, recomputed from tokens/s and shape", minimum=0),
    number("mfu_logged", "fraction", "MFU as the framework or source printed it", minimum=0),
    number("hfu", "fraction", "hardware FLOPs utilisation (counts recomputation), as published", minimum=0),
    number("tflops_per_gpu_logged", "TFLOP/s/GPU", "TFLOP/s per accelerator as logged", minimum=0),
    integer("mem_peak_allocated_bytes", "bytes", "peak allocated, worst rank seen"),
    integer("mem_peak_reserved_bytes", "bytes", "peak reserved, worst rank seen"),
    number("gpu_hours", "GPU·h", "accelerator-hours from start to end, as far as the log shows", minimum=0),
)

_LINE = (
    time("ts", "timestamp of the line (as logged, no time zone)"),
    integer("rank", "id", "rank that printed the line"),
    text("host", "host that printed the line, or that it names"),
    text("text", "the line, trimmed to 2,000 characters"),
)

_PUBLISHED = (
    text("source_id", "short id of the publication"),
    text("source_title", "title of the publication"),
    text("source_url", "where it can be read"),
    text("table_or_figure", "table, figure or line within it"),
    number("total_params_b", "1e9", "parameters in billions, as published", minimum=0),
    number("active_params_b", "1e9", "active parameters in billions, as published", minimum=0),
    integer("global_batch_tokens", "tokens", "global batch in tokens"),
    number("tflops_per_gpu", "TFLOP/s/GPU", "TFLOP/s per accelerator, as published", minimum=0),
    text("verification", "how the row was checked against its source"),
    text("notes", "caveats: derived, inferred or inconsistent values are named here"),
    text("comparability", "comparable, or why the MFU may not be set beside another"),
    integer("memory_bytes", "bytes", "memory a job can allocate"),
)

_CELL = (
    integer("runs_tried", "count", "run attempts in this cell"),
    integer("runs_completed", "count", "of those, completed and ranked"),
    integer("repeats", "count", "completed runs of the winning layout"),
    number("repeat_spread", "fraction", "(max - min) / median of tokens/s/GPU over its repeats"),
    text("strategy", "dimensions in use: DP, TP, PP, CP, EP joined by +, or none; 'best' = the best layout of any"),
    number("duration_s", "s", "seconds from the first to the last sign of life", positive=True),
    integer("runs_failed", "count", "run attempts that ended without completing"),
    integer("runs_judged", "count", "run attempts that completed or failed"),
    number("failure_rate", "fraction", "runs_failed / runs_judged; NULL when nothing could be judged", minimum=0),
    number("failure_rate_low", "fraction", "lower end of its 95 % interval (Wilson 1927)", minimum=0),
    number("failure_rate_high", "fraction", "upper end of its 95 % interval (Wilson 1927)", minimum=0),
    number("gpu_hours_lost", "GPU·h", "accelerator-hours of the failures; NULL: known of none", minimum=0),
)

_JOB = (
    text("hosts", "hosts, written out, separated by a comma and a space"),
    integer("host_mem_peak_bytes", "bytes", "peak resident memory of the host processes (MaxRSS, largest task)"),
    integer("queue_wait_s", "s", "time from submission to start, from the scheduler"),
)

_NCCL = (
    text("transports", "transports in use (`via` lines), separated by a comma and a space"),
    integer("coll_calls", "count", "COLL lines: calls summed over ranks"),
    number("init_time_s", "s", "time of communicator initialisation (of the slowest rank)", minimum=0),
    integer("comm_index", "id", "number of the communicator within its file, from 1, by first line", minimum=1),
    integer("nranks", "count", "ranks of the communicator", minimum=1),
    text("init_state", "how far the communicator or rank came", INIT_STATE),
    number("init_bootstrap_s", "s", "part of the initialisation: finding ranks, waiting for late ones", minimum=0),
    integer("pid", "id", "process id"),
    text("comm_pointer", "address of the communicator in its process, used again after it is destroyed"),
    integer("rank_from", "id", "rank at the sending end"),
    integer("rank_to", "id", "rank at the receiving end"),
    text("op", "operation as printed: AllReduce (NCCL), ALLREDUCE (watchdog), all_reduce (flight recorder)"),
    text("datatype", "element type; int8 for AllGather and Broadcast of NCCL 2.7 to 2.21, which print bytes"),
    integer("element_count", "count", "elements per call (AllGather: per sender; ReduceScatter: per receiver)"),
    text("reduction", "reduction: sum, prod, max, min, avg; NULL where there is none"),
    integer("root", "id", "root rank of rooted collectives; the peer of Send and Recv", minimum=-1),
    integer("calls", "count", "lines: calls summed over ranks"),
    integer("message_bytes", "bytes", "buffer of one operation; of all ranks for AllGather, ReduceScatter, AlltoAll"),
    integer("total_bytes", "bytes", "message_bytes times operations"),
    integer("seq", "id", "sequence number of the collective within its process group"),
    text("process_group", "process group, as PyTorch names it; NULL where it is not printed"),
    integer("timeout_ms", "ms", "timeout of the watchdog"),
    integer("ran_for_ms", "ms", "longest time that a rank waited"),
    integer("last_enqueued_seq", "id", "last collective that the rank enqueued in the group; -1 = none", minimum=-1),
    integer("last_completed_seq", "id", "last collective that the rank completed in the group; -1 = none", minimum=-1),
)

_ESTIMATED_MEMORY = {
    "weights": "weights",
    "gradients": "gradients kept over a step",
    "optimizer": "optimizer states and master weights",
    "activations": "activations kept for the backward pass",
    "logits": "logits and what the loss needs at once",
    "buffers": "gathered weights, working set of one layer, context",
}

_MEMORY = (
    integer("device", "id", "device ordinal within the process; -1 = CPU, NULL where the file has none", minimum=-1),
    integer("reserved_bytes", "bytes", "bytes that the allocator holds from the driver"),
    integer("allocated_bytes", "bytes", "bytes of blocks in use, as the allocator rounds them"),
    flag("peak_is_lower_bound", "the record begins with memory in use, so that the true peak may lie before it"),
    integer("oom_requested_bytes", "bytes", "what the last failed allocation asked for"),
    integer("oom_device_free_bytes", "bytes", "what the device had left at the last failure"),
    text("category", "what the bytes are for", MEM_CATEGORY),
    text("rule", "the rule that chose the category, and what it saw"),
    integer("site_no", "id", "number of the site, from the one with the largest maximum", minimum=1),
    integer("point", "count", "events before this point, or its number along the record"),
    text("mem_origin", "how much is known about the blocks", MEM_ORIGIN),
    text("frame", "innermost line of the user's own code, else of any Python code, else of C++"),
    text("label", "category or metadata that the user or the profiler gave the blocks"),
    integer("gpu_index", "id", "index of the GPU on its host, as printed"),
    integer("mem_used_bytes", "bytes", "memory in use on the device, by all processes and the driver"),
    integer("mem_total_bytes", "bytes", "memory of the device"),
    number("power_mean_w", "W", "mean power per GPU over the run", minimum=0),
    number("power_busy_w", "W", "the same over samples with a kernel running, where that is sampled", minimum=0),
    number("gpu_utilisation", "fraction", "share of time with a kernel running, as sampled", minimum=0),
    integer("mem_used_max_bytes", "bytes", "most memory in use on the device, by all processes and the driver"),
    text("est_profile", "constants used: <accelerator generation>-<framework>, or the nearest ones"),
    number("est_mem_bytes", "bytes", "estimated peak of allocated bytes, fullest rank", minimum=0),
    number("est_step_time_s", "s", "estimated time per step", positive=True),
    number("est_mfu", "fraction", "estimated model FLOPs utilisation", minimum=0),
    *(
        number(f"est_mem_{part}_bytes", "bytes", f"estimated: {what}", minimum=0)
        for part, what in _ESTIMATED_MEMORY.items()
    ),
    number("eps_frag", "fraction", "reserved over allocated, minus 1, both of one source"),
    integer("mem_process_bytes", "bytes", "memory of the process on the device, context and libraries included"),
    integer("n", "count", "runs that the figures rest on", minimum=1),
    integer("oom_missing_bytes", "bytes", "asked for less what the device, or a share of it, had left", minimum=None),
)

_GROUPS = (_RUN, _HARDWARE, _MODEL, _LAYOUT, _SOFTWARE, _PERFORMANCE, _LINE, _PUBLISHED, _CELL, _JOB, _NCCL, _MEMORY)
COLUMNS = {column.name: column for group in _GROUPS for column in group}

HARDWARE, MODEL, LAYOUT, SOFTWARE = (tuple(column.name for column in group) for group in _GROUPS[1:5])
"""Names of the columns of these groups, in order."""


def columns(*parts: str | Column | tuple[str | Column, ...]) -> tuple[Column, ...]:
    """Columns of a table in order: shared ones by their names, separated by blanks, and the table's own.

    >>> [column.name for column in columns("run_id tp", text("colour", "colour of the run"))]
    ['run_id', 'tp', 'colour']
    """
    found: list[Column] = []
    for part in parts:
        if isinstance(part, Column):
            found.append(part)
        elif isinstance(part, str):
            found += (COLUMNS[name] for name in part.split())
        else:
            found += columns(*part)
    return tuple(found)
