"""Step lines of DeepSpeed-Chat's scripts, for files without the engine's own.

Format: DeepSpeedExamples applications/DeepSpeed-Chat/training/step3_rlhf_finetuning/main.py (`epoch: 0|step: 3|ppo_ep:
1|act_loss: 0.2|cri_loss: 0.1|unsuper_loss: 0.0`; from August 2023 `Epoch: 0 | Step: 3 | PPO Epoch: 1 | Actor Loss: ..`)
and utils/perf.py print_throughput_step3 (`End-to-End => Latency: 2.5s, TFLOPs: 3.29, ..`, per GPU, right after it).

Steps 1 and 2 of its training print `Epoch: 0, Step: 3, Rank: 0, loss = 2.5` on every rank, if asked to (--print_loss),
and `Model Parameters: 6.738 B, Latency: 4.53s, TFLOPs: .., Batch Size: 16, Sequence Length: 512` behind it: the batch
is a device's, while the TFLOPs are one device's divided by the number of devices, which no GPU reached.

Their `step` counts micro-batches, of RLHF generation batches, from 0. The engine prints its first progress line after
ten optimizer steps: a run that ended before, or an excerpt, has nothing but these. Where the engine printed any, they
are left out.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs.extractors import extract_numbers
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.quantities import NUMBER, number
from sweepscope.pipeline.text.timestamps import timestamp

SIGNATURES = ("|ppo_ep: ", " | PPO Epoch: ", "s, Batch Size: ")
LITERALS = (*SIGNATURES, "End-to-End => Latency: ", ", Rank: ")

_LOOKS_LIKE = r"^\s*(?:[Ee]poch: \d+ ?\| ?[Ss]tep: \d+ ?\||Epoch: \d+, Step: \d+, Rank: \d+, loss = )"
_PACE = r"^\s*(?:End-to-End => |Model Parameters: [\w. ]+, )Latency: ([\d.]+)s, "
LINE = f"{_LOOKS_LIKE}|{_PACE}"
"""Finds the lines that matter here."""

_NEAR_LINES = 16
"""Other ranks may print between a step's line and that of its pace."""

_FIELDS = {
    "number": r"^\s*[Ee]poch: \d+(?: ?\| ?|, )[Ss]tep: (\d+)(?: ?\||,)",
    "loss": rf"\|(?:act_loss| Actor Loss): ({NUMBER}) ?\|",
    "plain_loss": rf", loss = ({NUMBER})\s*$",
    "printer": r", Rank: (\d+), loss = ",
}
PRINTED_SETTINGS = (
    ("mbs", r"\bTime/seq [\d.]+s, Batch Size: (\d+), Sequence Length: \d+"),
    ("seq_len", r"\bTime/seq [\d.]+s, Batch Size: \d+, Sequence Length: (\d+)"),
)
"""Settings in the line of the pace; RLHF prints `Total Seq. Length` elsewhere."""
_PACES = {"step_time_s": _PACE, "tflops_per_gpu_logged": r"^\s*End-to-End => .*?\bTFLOPs: ([\d.]+),"}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of generation batches, a cut one unparsed, and of their paces, which have no step: see `finalize`."""
    text = pl.col("text")
    ts = timestamp(pl.col("prefix"))
    batches = extract_each(lines.filter(text.str.contains(_LOOKS_LIKE)), _FIELDS).with_columns(
        loss=number(pl.coalesce("loss", "plain_loss")),
        rank=pl.coalesce(pl.col("printer").cast(pl.Int64, strict=False), "rank"),
        ts=ts,
    )
    step = pl.when(pl.col("loss").is_not_null()).then("number")
    paces = extract_numbers(lines.filter(text.str.contains(_PACE)), _PACES).with_columns(ts=ts)
    return pl.concat([conform(batches.with_columns(step=step), STEP_FACTS), conform(paces, STEP_FACTS)])


def finalize(facts: Facts) -> Facts:
    """Each batch with its pace, in files without a step of the engine's; elsewhere without either."""
    rows = facts.steps.sort("source", "line_no", maintain_order=True)
    is_pace = pl.col("step").is_null() & pl.col("step_time_s").is_not_null()
    is_batch = pl.col("text").str.contains(_LOOKS_LIKE) | (
        pl.col("step").is_not_null() & pl.col("loss").is_not_null() & pl.col("step_time_s").is_null()
    )
    is_chat = (is_pace | is_batch).fill_null(value=False)
    engine, batches = rows.filter(~is_chat), rows.filter(is_chat & ~is_pace)
    if rows.height == engine.height:
        return facts
    paces = rows.filter(is_pace).select("source", "line_no", *_PACES).rename({name: f"{name}_near" for name in _PACES})
    joined = batches.join_asof(
        paces, on="line_no", by="source", strategy="forward", tolerance=_NEAR_LINES, check_sortedness=False
    ).with_columns(pl.coalesce(name, f"{name}_near").alias(name) for name in _PACES)
    alone = joined.join(engine.drop_nulls("step"), on="source", how="anti", maintain_order="left")
    both = pl.concat([engine, conform(alone, STEP_FACTS)]).sort("source", "line_no", maintain_order=True)
    return replace(facts, steps=both)
