"""nanotron: the step line, the Config dump and the memory lines.

Formats: src/nanotron/trainer.py train_step_logs and log_memory, logging/base.py human_format (three significant digits
with a suffix: 1e9 is `G` in old versions and `B` in new ones), config/config.py (pretty-printed dataclasses).

Old lines say `elapsed_time_per_iteration_ms`, new ones `time_per_iteration_ms` with an `eta`; the order of keys varies.
`global_batch_size` is in samples in the old and in tokens in the new ones, rounded in both, so the batch is taken from
the configuration instead. The prefix is `[INFO|DP=0|PP=0|TP=0]`, without PP in the newest version and with a host name
in some; several ranks may print the same steps.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.expressions import whole, words
from sweepscope.pipeline.logs.extractors import computed_peaks, computed_settings, milestones, named_settings
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.logs.sidecars import run_files
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.line_templates import with_text
from sweepscope.pipeline.text.quantities import HUMAN, divided, human, size
from sweepscope.pipeline.text.timestamps import STAMPS, stamped

_PEAK = r"Memory usage:.*Peak {}:? ([\d.]+[KMGT]?i?B)"
_PREFIX = r"^(?:[\d/]+ [\d:]+ )?\[[A-Z]+\|[^\]]*\]:\s?"


def _field(key: str, end: str = r" \|") -> str:
    """Number of a key; every field that others follow ends with ` |`, so one that a cut line ends in never matches."""
    return rf"(?:\| ){key}: ({HUMAN}){end}"


_NUMBERS = {
    "consumed_tokens": _field("consumed_tokens"),
    "elapsed_ms": _field("(?:elapsed_)?time_per_iteration_ms"),
    "tokens_per_s": _field("tokens_per_sec"),
    "tokens_per_s_per_gpu": _field("tokens_per_sec_per_gpu"),
    "loss": _field("lm_loss"),
    "learning_rate": _field("lr"),
    "tflops_per_gpu_logged": _field("model_tflops_per_gpu"),
    "grad_norm": _field("grad_norm", r"(?: \||$)"),  # the last key of most lines
    "mem_allocated_bytes": _field("cuda_memory_allocated"),
}
_COUNTERS = {
    "number": r"iteration:\s*(\d+) / \d+(?: \||$)",
    "steps_planned": r"iteration:\s*\d+ / (\d+)(?: \||$)",
    **{f"at_{axis}": rf"\|{axis}=(\d+)" for axis in ("DP", "TP", "PP")},
}


def _printer() -> pl.Expr:
    """A number that distinguishes printing ranks by their coordinates; it is no global rank."""
    parts = [pl.col(f"at_{axis}") for axis in ("DP", "TP", "PP")]
    known = pl.any_horizontal(part.is_not_null() for part in parts)
    return pl.when(known).then(sum((part.fill_null(0) * 1000**i for i, part in enumerate(parts)), start=pl.lit(0)))


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of step lines; one without a whole loss and time stays unparsed."""
    text = pl.col("text")
    mine = lines.filter(text.str.contains(r"\biteration:\s*\d+"))
    printed = extract_each(mine, {**_NUMBERS, **_COUNTERS, **STAMPS}).with_columns(
        pl.col(*_COUNTERS).cast(pl.Int64, strict=False), *(human(pl.col(name)) for name in _NUMBERS)
    )
    fields = printed.with_columns(
        ts=stamped(), rank=pl.coalesce("rank", _printer()), step_time_s=divided(pl.col("elapsed_ms"), 1000)
    )
    complete = pl.col("loss").is_not_null() & pl.col("step_time_s").is_not_null()
    return conform(fields.with_columns(step=pl.when(complete).then("number")), STEP_FACTS)


_NAMES = (
    {"model": "arg:model", "tokens": "arg:tokens", "dp": "arg:dp", "pp": "pp", "tp": "tp"}
    | {"context_parallel_size": "arg:cp", "expert_parallel_size": "arg:ep"}
    | {"pp_engine": "arg:pp_engine", "tp_mode": "arg:tp_mode", "recompute_layer": "arg:recompute_layer"}
    | {"hidden_size": "hidden_size", "intermediate_size": "ffn_hidden_size", "num_attention_heads": "num_heads"}
    | {"num_hidden_layers": "num_layers", "num_key_value_heads": "num_kv_heads", "head_dim": "head_dim"}
    | {"vocab_size": "vocab_size", "tie_word_embeddings": "tie_word_embeddings"}
    | {"dtype": "arg:dtype", "sequence_length": "seq_len", "train_steps": "steps_planned"}
    | {"micro_batch_size": "mbs", "batch_accumulation_per_replica": "gas", "zero_stage": "zero_stage"}
    | {"num_experts": "num_experts", "top_k": "experts_per_token", "moe_intermediate_size": "expert_ffn_hidden_size"}
    | {"shared_expert_intermediate_size": "shared_expert_ffn_hidden_size"}
)
_DUMPED = r"(?:^|[\s(])([a-z_]+)=(<\w[^>]*>|[^,()\s]+)"

_STARTED = {"mbs": "mbs", "grad_accum": "gas", "sequence_length": "seq_len", "train_steps": "steps_planned"}
_PARAMS = rf"Total number of parameters: ({HUMAN})"
# LlamaConfig and Qwen2Config have a gate in their feed-forward block, Starcoder2Config has none.
_GATED = r"\b(?:(LlamaConfig|Qwen2Config)|Starcoder2Config)\("


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """The Config dump, the start line and the parameter count, as SETTING_FACTS."""
    text = pl.col("text")
    body = with_text(lines, text.str.replace(_PREFIX, ""))
    started = body.filter(text.str.contains("[Start training]", literal=True))
    gated = {"gated_mlp": text.str.extract(_GATED).is_not_null()}
    # The dump is one call expression over many lines; nothing else in a log is written as name=value, with a comma.
    dump = body.filter(text.str.contains(r"=[^=]*(?:,|\))\s*$"))
    return pl.concat(
        [
            named_settings(dump, _DUMPED, _NAMES, setting_source="argument_dump"),
            named_settings(started, r"\| (\w+): (\d+)(?: |$)", _STARTED, setting_source="log_line"),
            computed_settings(body, {"params": human(text.str.extract(_PARAMS))}),
            computed_settings(body.filter(text.str.contains(_GATED)), gated, setting_source="argument_dump"),
            environment.settings(lines),
        ]
    )


_ENGINES = {"OneForwardOneBackward": "1f1b", "1f1b": "1f1b", "AllForwardAllBackward": "afab", "afab": "afab"}
_TYPES = {"torch.bfloat16": "bf16", "torch.float16": "fp16", "torch.float32": "fp32"}


def _schedule() -> pl.Expr:
    engine = pl.col("arg:pp_engine")
    named = (pl.when(engine.str.contains(sign, literal=True)).then(pl.lit(word)) for sign, word in _ENGINES.items())
    return pl.when(whole("pp") > 1).then(pl.coalesce(named))


def _context_parallel() -> pl.Expr:
    """Versions whose dump does not name it had no context parallelism: their dump goes on to the sections behind."""
    is_past = pl.any_horizontal(pl.col(name).is_not_null() for name in ("arg:tokens", "arg:model", "arg:stepped"))
    return pl.coalesce(whole("arg:cp"), pl.when(pl.col("arg:dp").is_not_null() & is_past).then(1))


COMBINED = (
    # Experts have ranks of their own beside dp here (parallel/context.py); elsewhere in the store ep lies inside dp.
    CombinedSetting("dp", whole("arg:dp") * whole("arg:ep").fill_null(1), ("arg:dp",)),
    CombinedSetting("ep", whole("arg:ep")),
    CombinedSetting("cp", _context_parallel(), ("arg:cp", "arg:dp")),
    CombinedSetting("recompute", words("arg:recompute_layer", {"True": "full", "False": "none"})),
    # REDUCE_SCATTER keeps activations split along the sequence between the tensor-parallel blocks.
    CombinedSetting(
        "sequence_parallel",
        (whole("tp") > 1) & pl.col("arg:tp_mode").str.contains("REDUCE_SCATTER", literal=True),
        ("arg:tp_mode",),
    ),
    CombinedSetting("precision", words("arg:dtype", _TYPES)),
    CombinedSetting("pipeline_schedule", _schedule(), ("arg:pp_engine",)),
)


def peaks(lines: pl.DataFrame) -> pl.DataFrame:
    """PEAK_FACTS of `Memory usage: 64.15MiB. Peak allocated 309.29MiB. Peak reserved: 496.00MiB`, from every rank.

    The step line repeats the reserved peak in three digits: the least that it can mean counts, so that the exact one
    wins where both are there.
    """
    text = pl.col("text")
    peaks = {"allocated": "mem_peak_allocated_bytes", "reserved": "mem_peak_reserved_bytes"}
    printed = extract_each(
        lines.filter(text.str.contains("Memory usage: ", literal=True)), {label: _PEAK.format(label) for label in peaks}
    )
    exact = computed_peaks(printed, {name: size(pl.col(label)) for label, name in peaks.items()})
    stepped = extract_each(
        lines.filter(text.str.contains(_RESERVED, literal=True)), {"reserved": _field("cuda_max_memory_reserved")}
    ).with_columns(human(pl.col("reserved")))
    rounded = pl.col("reserved")
    least = rounded - 0.5 * pl.lit(10.0).pow(rounded.log10().floor() - 2)
    return pl.concat([exact, computed_peaks(stepped, {"mem_peak_reserved_bytes": least})])


_RESERVED = "| cuda_max_memory_reserved: "
_SETTING_LITERALS = (
    *("[Start training]", "Total number of parameters:", "GeneralArgs("),
    *("LlamaConfig(", "Qwen2Config(", "Starcoder2Config(", "(dp=", " pp=", " tp="),
    *(f"{name}=" for name in _NAMES if len(name) > 2),
    *environment.LITERALS,
)

DIALECT = Dialect(
    name="nanotron",
    module=__name__,
    signature_literals=(
        "| tokens_per_sec_per_gpu: ",
        "| consumed_tokens: ",
        "Config(general=GeneralArgs(",
        "[Start training] datetime:",
        "parallelism=ParallelismArgs(",
        "tokens=TokensArgs(",
    ),
    steps=steps,
    settings=settings,
    peaks=peaks,
    events=milestones(launch=r"Config\(general=GeneralArgs\(", training_end="Throughput logging complete"),
    combined=COMBINED,
    sidecars=run_files.NANOTRON,
    steps_show_current_memory=True,
    literals_by_function={
        "steps": ("iteration: ",),
        "settings": _SETTING_LITERALS,
        "peaks": ("Memory usage: ", _RESERVED),
        "events": ("GeneralArgs(", "Throughput logging complete"),
    },
)
