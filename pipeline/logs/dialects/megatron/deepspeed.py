"""Megatron-DeepSpeed: Microsoft's, bigscience's and ALCF's forks of Megatron-LM with DeepSpeed's engine below.

Formats: Megatron-DeepSpeed megatron/training.py training_log (Megatron's step line plus `consumed tokens`,
`actual seqlen`, `samples per second`, `tokens per gpu per second (tgs)` and `TFLOPs`, the last two per GPU),
megatron/arguments.py (dump; before 2021 with `batch_size` per GPU, `pipe_parallel_size` and `gas`); since 2024 ALCF's
fork (argonne-lcf/Megatron-DeepSpeed, same file) spells the step line `iteration=  1/ 317892 | consumed_samples= 768 |`
and prints two rates, `[LM]TFLOPs` by Megatron's count, which is kept, and `[DS]TFLOPs` by DeepSpeed's.

DeepSpeed's own lines repeat the step (`steps: 2 loss: ...` of its pipeline engine, `step=2, skipped=0, ...`): they are
not steps of their own. In the dump `num_experts` is a list, `[1]` for dense models, and `zero_stage` counts only with
DeepSpeed on. What Megatron prints is read by `megatron`, what DeepSpeed prints by `deepspeed_settings`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects.deepspeed import settings as deepspeed_settings
from sweepscope.pipeline.logs.dialects.megatron import dialect, rules
from sweepscope.pipeline.logs.dialects.megatron import settings as megatron_settings
from sweepscope.pipeline.logs.expressions import whole
from sweepscope.pipeline.logs.extractors import extract_numbers, matched_settings, named_settings
from sweepscope.pipeline.logs.facts import SETTING_FACTS, STEP_FACTS, conform
from sweepscope.pipeline.text.quantities import NUMBER, divided
from sweepscope.pipeline.text.timestamps import timestamp

_ADDED = {
    "added_tokens": rf"\| consumed tokens:\s+({NUMBER})\s*\|",
    "added_tokens_per_s_per_gpu": rf"\| tokens per gpu per second \(tgs\):\s+({NUMBER})\s*\|",
}


_EQUAL_LITERAL = "elapsed_time_per_iteration_ms="
_EQUAL_LOOKS_LIKE = r"\biteration=\s*\d+/\s*\d+ \|"


def _equal(label: str) -> str:
    return rf"\| {label}=\s*({NUMBER})\s*\|"


_EQUAL = {
    "loss": _equal("lm[ _]loss"),
    "elapsed_ms": _equal("elapsed_time_per_iteration_ms"),
    "tflops_per_gpu_logged": _equal(r"(?:\[LM\]-?)?TFLOPs"),
    "tokens_per_s_per_gpu": _equal("tokens_per_gpu_per_second_tgs"),
    "learning_rate": _equal("learning_rate"),
    "grad_norm": _equal("grad_norm"),
    "consumed_tokens": _equal("consumed_tokens"),
}
_EQUAL_COUNTERS = {
    "number": r"\biteration=\s*(\d+)/",
    "steps_planned": r"\biteration=\s*\d+/\s*(\d+) \|",
    "past_loss": r"\| number_of_skipped_iterations=\s*\d+\s*(\|)",
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of step lines in either spelling."""
    return pl.concat([_steps_with_colons(lines), _steps_with_equal_signs(lines)])


def _steps_with_equal_signs(lines: pl.DataFrame) -> pl.DataFrame:
    """ALCF's step lines; one without its time, or cut before its loss, stays unparsed."""
    mine = lines.filter(pl.col("text").str.contains(_EQUAL_LOOKS_LIKE))
    fields = extract_numbers(mine, _EQUAL, _EQUAL_COUNTERS)
    is_past_loss = pl.col("loss").is_not_null() | pl.col("past_loss").is_not_null()
    return conform(
        fields.with_columns(
            ts=timestamp(pl.concat_str("prefix", "text", ignore_nulls=True)),
            step=pl.when(pl.col("elapsed_ms").is_not_null() & is_past_loss).then("number"),
            step_time_s=divided(pl.col("elapsed_ms"), 1000),
        ),
        STEP_FACTS,
    )


def _steps_with_colons(lines: pl.DataFrame) -> pl.DataFrame:
    """Megatron's step lines with the fields that this fork adds."""
    added = extract_numbers(lines, _ADDED).select("source", "line_no", "text", *_ADDED)
    added = added.with_columns(pl.col("added_tokens").cast(pl.Int64, strict=False))
    # Redraws share a line number, so the text is part of the key.
    found = dialect.steps(lines).join(
        added.unique(["source", "line_no", "text"], keep="first"),
        on=["source", "line_no", "text"],
        how="left",
        maintain_order="left",
    )
    return conform(
        found.with_columns(
            consumed_tokens=pl.coalesce("consumed_tokens", "added_tokens"),
            tokens_per_s_per_gpu=pl.coalesce("tokens_per_s_per_gpu", "added_tokens_per_s_per_gpu"),
        ),
        STEP_FACTS,
    )


_ADDED_ARGUMENTS = {
    "batch_size": "mbs",
    "pipe_parallel_size": "arg:pipe_parallel_size",
    "gas": "gas",
    # Ulysses splits the sequence over ranks, as context parallelism does.
    "ds_sequence_parallel_size": "cp",
    "num_experts": "arg:num_experts_list",
    "moe_expert_parallel_size": "arg:moe_expert_parallel_size",
    "topk": "arg:topk",
}
_DUMPED = r"^\s*(\w+)(?: \.+ |  )(\S.*?)\s*$"
_OF_STEP_LINES = (
    ("gbs", r"\| global_batch_size=\s*(\d+) \|"),
    ("arg:actual_seqlen", r"\| actual seqlen:\s+(\d+) \|"),
)


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of Megatron's arguments, this fork's and DeepSpeed's."""
    added = named_settings(lines, _DUMPED, _ADDED_ARGUMENTS, setting_source="argument_dump")
    printed = matched_settings(lines, _OF_STEP_LINES)
    return pl.concat([megatron_settings.settings(lines), added, printed, deepspeed_settings.settings(lines)]).select(
        SETTING_FACTS.names()
    )


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS where a run begins, and where the trainer or DeepSpeed's launcher reports its end."""
    return pl.concat([dialect.events(lines), deepspeed_settings.events(lines)])


# One number per group of layers; equal ones in every log and example.
_EXPERTS = pl.col("arg:num_experts_list").str.extract(r"^\[?(\d+)").cast(pl.Int64, strict=False)

COMBINED: tuple[CombinedSetting, ...] = (
    *rules.COMBINED,
    # A curriculum's sequences are shorter at first, so that the argument counts.
    CombinedSetting(
        "seq_len", pl.when(pl.col("seq_len").is_null()).then(whole("arg:actual_seqlen")), ("arg:actual_seqlen",)
    ),
    CombinedSetting("pp", deepspeed_settings.PIPE_STAGES),
    CombinedSetting("dp", deepspeed_settings.DATA_PARALLEL, ("num_gpus",), setting_source="derived"),
    CombinedSetting("num_experts", pl.when(_EXPERTS > 1).then(_EXPERTS), ("arg:num_experts_list",)),
    CombinedSetting(
        "ep", pl.when(_EXPERTS > 1).then(whole("arg:moe_expert_parallel_size")), ("arg:moe_expert_parallel_size",)
    ),
    CombinedSetting("experts_per_token", pl.when(_EXPERTS > 1).then(whole("arg:topk")), ("arg:topk",)),
)

DIALECT = Dialect(
    name="megatron-deepspeed",
    module=__name__,
    # Megatron's literals count here too, so that this fork's own decide.
    signature_literals=(
        *dialect.DIALECT.signature_literals,
        *("| consumed tokens:", "| samples per second:", "tokens per gpu per second (tgs):"),
        *("deepspeed_activation_checkpointing", "moe_expert_parallel_size"),
        *("zero_contigious_gradients", "tokens_per_gpu_per_second_tgs="),
        *("| samples_per_second=", "| consumed_tokens=", "DeepSpeed general environment info:"),
        *deepspeed_settings.SIGNATURES,
        *deepspeed_settings.PIPE_SIGNATURES,
    ),
    steps=steps,
    settings=settings,
    peaks=dialect.peaks,
    events=events,
    combined=COMBINED,
    literals_by_function={
        **dialect.LITERALS_BY_FUNCTION,
        "steps": (*dialect.STEP_LITERALS, _EQUAL_LITERAL),
        "settings": (
            *dialect.LITERALS_BY_FUNCTION["settings"],
            *_ADDED_ARGUMENTS,
            "actual seqlen:",
            *deepspeed_settings.LITERALS,
        ),
        "events": (*dialect.LITERALS_BY_FUNCTION["events"], *deepspeed_settings.EVENT_LITERALS),
    },
)
