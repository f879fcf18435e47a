"""EleutherAI GPT-NeoX, which trains with DeepSpeed's engine.

Formats: megatron/logging.py training_log (` samples/sec: ... | iteration ...`), megatron/neox_arguments/arguments.py
print (`name ...... value......updated`, `updated` or `default` names the value's source),
megatron/utils.py report_memory, megatron/training.py get_model (`> total params:`, over all model-parallel ranks).

DeepSpeed's pipeline engine prints each step too (`steps: 1 loss: ... iter time (s): ...`) and leaves out what happens
between steps: NeoX's own line is the step. The dump is printed before the ranks exist: `world_size` is None there, and
`using world size: 1` speaks of the process that printed it; `global_num_gpus` is the job's.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.deepspeed import settings as deepspeed_settings
from sweepscope.pipeline.logs.dialects.megatron import dialect
from sweepscope.pipeline.logs.expressions import has_value, is_true, switched, whole, words
from sweepscope.pipeline.logs.extractors import extract_numbers, named_settings
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.text.quantities import NUMBER, divided, human
from sweepscope.pipeline.text.timestamps import STAMPS, stamped, timestamp

# DeepSpeed's pipeline ends its own line with samples/sec.
_MINE = r"^\s*samples/sec:\s|(?:\s|\])samples/sec: +\S+ \| +iteration\s"


def _field(label: str) -> str:
    return rf"\| {label}:\s+({NUMBER})\s*\|"


_NUMBERS = {
    "loss": _field(r"(?:lm[_ -])?loss"),
    "elapsed_ms": _field(r"elapsed time per iteration \(ms\)"),
    "learning_rate": _field("learning rate"),
    "grad_norm": _field("grad[_ ]norm"),
}
_OTHERS = {
    "number": r"\biteration\s+(\d+)/\s*\d+ \|",
    "steps_planned": r"\biteration\s+\d+/\s*(\d+) \|",
    # logging.py human_readable_flops: one decimal and the unit glued, 55.1TFLOPS or 1.2PFLOPS
    "flops": rf"\| approx flops per GPU:\s+({NUMBER}[KMGTP]?)FLOPS\s*\|",
    "past_loss": r"\| (?:loss scale|number of (?:skipped|nan) iterations):\s+\S+\s*(\|)",
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of step lines; one without its time, or cut before its loss, stays unparsed. Skipped steps lack it."""
    text = pl.col("text")
    mine = lines.filter(text.str.contains(_MINE))
    fields = extract_numbers(mine, _NUMBERS, {**_OTHERS, **STAMPS}).with_columns(
        ts=pl.coalesce(stamped(), timestamp(pl.col("prefix"))),
        tflops_per_gpu_logged=divided(human(pl.col("flops")), 1e12),
    )
    complete = pl.col("elapsed_ms").is_not_null() & (pl.col("loss").is_not_null() | pl.col("past_loss").is_not_null())
    step_time_s = divided(pl.col("elapsed_ms"), 1000)
    return conform(fields.with_columns(step=pl.when(complete).then("number"), step_time_s=step_time_s), STEP_FACTS)


_NAMES = {
    "global_num_gpus": "num_gpus",
    "model_parallel_size": "tp",
    "pipe_parallel_size": "arg:pipe_parallel_size",
    "context_parallel_size": "cp",
    "moe_expert_parallel_size": "ep",
    "moe_num_experts": "arg:moe_num_experts",
    "moe_top_k": "arg:moe_top_k",
    "train_micro_batch_size_per_gpu": "mbs",
    "train_batch_size": "gbs",
    "gradient_accumulation_steps": "gas",
    "zero_stage": "zero_stage",
    "seq_length": "seq_len",
    "train_iters": "steps_planned",
    "num_layers": "num_layers",
    "hidden_size": "hidden_size",
    "num_attention_heads": "num_heads",
    "num_kv_heads": "arg:num_kv_heads",
    "intermediate_size": "ffn_hidden_size",
    "sequence_parallel": "sequence_parallel",
    "precision": "arg:precision",
    "no_weight_tying": "arg:no_weight_tying",
    "checkpoint_activations": "arg:checkpoint_activations",
    "mlp_type": "arg:mlp_type",
    "activation": "arg:activation",
}

# Values longer than their column have the origin glued behind them.
_DUMPED = r"^\s*(\w+)(?: \.+ |  )([^.\s].*?)\.*(?:updated|default)\s*$"


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """The arguments, the model's size and DeepSpeed's configuration, as SETTING_FACTS."""
    dumped = named_settings(lines, _DUMPED, _NAMES, setting_source="argument_dump")
    params = deepspeed_settings.extracted(lines, "params", r"> total params: ([\d,]+)", thousands=True)
    vocab = deepspeed_settings.extracted(lines, "vocab_size", r"> padded vocab \(size: (\d+)\)")
    found = [dumped, params, vocab, deepspeed_settings.settings(lines), environment.settings(lines)]
    return pl.concat(found)


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS where a run begins, and where DeepSpeed's launcher reports its end."""
    return pl.concat([dialect.events(lines), deepspeed_settings.events(lines)])


_PRECISION = {"bfloat16": "bf16", "fp16": "fp16", "fp32": "fp32"}
_GATED = ("swiglu", "geglu", "reglu", "liglu", "bilinear", "glu")


def _gated() -> pl.Expr:
    """Whether the feed-forward block is gated: `mlp_type: llama` was, later ones by the name of the activation."""
    return (pl.col("arg:mlp_type") == "llama") | pl.col("arg:activation").str.to_lowercase().is_in(_GATED)


def _kv_heads() -> pl.Expr:
    """None in the dump, or no such argument in 2023: one per head."""
    return pl.when(has_value("arg:num_kv_heads")).then(whole("arg:num_kv_heads")).otherwise(whole("num_heads"))


COMBINED: tuple[CombinedSetting, ...] = (
    CombinedSetting("pp", deepspeed_settings.PIPE_STAGES),
    CombinedSetting("dp", deepspeed_settings.DATA_PARALLEL, ("num_gpus",), setting_source="derived"),
    CombinedSetting("precision", words("arg:precision", _PRECISION)),
    CombinedSetting("tie_word_embeddings", ~is_true("arg:no_weight_tying")),
    CombinedSetting("recompute", switched("arg:checkpoint_activations", "full", "none")),
    CombinedSetting("gated_mlp", _gated(), ("arg:activation", "arg:mlp_type")),
    # 1 expert is a dense model.
    CombinedSetting("num_experts", pl.when(whole("arg:moe_num_experts") > 1).then(whole("arg:moe_num_experts"))),
    CombinedSetting("experts_per_token", pl.when(whole("arg:moe_num_experts") > 1).then(whole("arg:moe_top_k"))),
    CombinedSetting("num_kv_heads", _kv_heads(), ("arg:num_kv_heads", "num_heads")),
)

DIALECT = Dialect(
    name="gpt-neox",
    module=__name__,
    # Megatron's and DeepSpeed's literals count here too, so that NeoX's own decide.
    signature_literals=(
        *("NeoXArgs.", "| approx flops per GPU:", "| lm_loss:", "global_num_gpus"),
        *("- arguments -", "| elapsed time per iteration (ms):", "model-parallel size:"),
        *("deepspeed_activation_checkpointing", "DeepSpeed general environment info:"),
        *deepspeed_settings.SIGNATURES,
        *deepspeed_settings.PIPE_SIGNATURES,
    ),
    steps=steps,
    settings=settings,
    peaks=dialect.peaks,
    events=events,
    combined=COMBINED,
    literals_by_function={
        "steps": ("samples/sec: ",),
        "peaks": ("memory (MB)",),
        "settings": (
            *_NAMES,
            "> total params:",
            "padded vocab (size:",
            *deepspeed_settings.LITERALS,
            *environment.LITERALS,
        ),
        "events": ("- arguments -", *deepspeed_settings.EVENT_LITERALS),
    },
)
