"""llm.c's other programs and its tables; a part of the `nanogpt` dialect, which reads the lines of its main program.

Formats: karpathy/llm.c train_gpt2.cu and train_gpt2_fp32.cu main (`| micro batch size B    | 64 |`, a setting a row),
train_gpt2_fp32.cu (`step    1/74: train loss 4.36 (80.63 ms, 50793 tok/s)`), train_gpt2.c (`step 0: train loss 4.67
(took 1987.5 ms)`).

The total batch is in tokens.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.extractors import extract_numbers, matched_settings
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.text.line_templates import matching
from sweepscope.pipeline.text.quantities import NUMBER, divided
from sweepscope.pipeline.text.timestamps import timestamp

STEP_BEGINNING = r"step +[0-9]+(?:/[0-9]+)?: train loss "
BEGINNING = rf"{STEP_BEGINNING}|\| [A-Za-z_]|=> "
_STEP = rf"^step +\d+(?:/\d+)?: train loss {NUMBER} \((?:took )?[\d.]+ ms"
_NUMBERS = {
    "loss": rf": train loss ({NUMBER}) \(",
    "ms": r" \((?:took )?([\d.]+) ms[,)]",
    "tokens_per_s": r" ms, (\d+) tok/s\)",
}
_COUNTERS = {"step": r"^step +(\d+)", "steps_planned": r"^step +\d+/(\d+):"}


def steps(bare: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of step lines (see `without_logger`)."""
    found = extract_numbers(matching(bare, _STEP), _NUMBERS, _COUNTERS)
    ts = timestamp(pl.concat_str("prefix", "logged", ignore_nulls=True))
    return conform(found.with_columns(step_time_s=divided(pl.col("ms"), 1000), ts=ts, text="logged"), STEP_FACTS)


def _row(label: str, value: str = r"\d+") -> str:
    return rf"^\| {label} +\| ({value}) *\|"


_ROWS = {
    "mbs": _row("(?:micro )?batch size B"),
    "seq_len": _row("sequence length T"),
    "gbs_tokens": _row("total batch size"),
    "num_layers": _row("num_layers L"),
    "num_heads": _row("num_heads NH"),
    "hidden_size": _row("channels C"),
    "vocab_size": _row("vocab_size V"),
    "params": _row("num_parameters"),
    "num_gpus": _row("num_processes"),
    "zero_stage": _row("zero_stage"),
    "accelerator": _row("device", r"\w[^|]*[^| ]"),
    "precision": _row("precision", "BF16|FP16|FP32|TF32"),
    "peak_tflops_logged": _row("peak TFlops", r"[\d.]+"),
    "gas": r"^=> setting grad_accum_steps=(\d+)",
}
SETTING_LITERALS = (
    *("| micro batch size B ", "| batch size B ", "| sequence length T ", "| total batch size ", "| num_layers L "),
    *("| num_heads NH ", "| channels C ", "| vocab_size V ", "| num_parameters ", "| num_processes ", "| zero_stage "),
    *("| device ", "| precision ", "| peak TFlops ", "grad_accum_steps="),
)


def settings(bare: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the tables, and the accumulation."""
    return matched_settings(bare, _ROWS.items())
