"""torchtitan, also as Primus runs it.

Formats: torchtitan/components/metrics.py MetricsProcessor.log (step line), distributed/parallel_dims.py (mesh),
train.py / trainer.py (batch line), tools/logging.py. The line is printed by the ranks of LOG_RANK; with a pipeline
only the last stage has a loss and the others print -1. `tps` is tokens/s per device (`wps` in 2024), memory is the peak
reserved since the last line, and MFU is judged against the peak that `Peak FLOPS used` names. No step time is printed,
but in the line of early 2024 (train.py), which ends with `iter:` (seconds), `data:` (of them, for loading) and `lr:`.
Configuration: see `torchtitan_settings`.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.torchtitan import launch_files, rules
from sweepscope.pipeline.logs.dialects.torchtitan import settings as torchtitan_settings
from sweepscope.pipeline.logs.extractors import extract_numbers, milestones
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.quantities import NUMBER, divided, size
from sweepscope.pipeline.text.timestamps import STAMPS, stamped, timestamp

_NUMBERED = r"step:\s*\d+(?:/\d+(?: = [\d.]+%)?)?"  # some forks print `step: 640/644 = 99.4%`
# Behind `INFO:torchtitan.components.metrics:`, too, and within a JSON object.
_STEP = rf"(?:^|- |[\s:\"]|\[36m){_NUMBERED}(?:\s+loss:|\s*$|\s+\w*$)"
_BARE_COLOUR = r"\[\d{1,3}(?:;\d{1,3})*m"  # where the escape character got lost, as in many a copied log
_NO_LOSS = -1.0  # what a pipeline stage without the loss prints


def _field(label: str, value: str = NUMBER) -> str:
    return rf"\b{label}:\s*({value})"


_NUMBERS = {
    "loss": _field("loss"),
    "grad_norm": _field("grad_norm"),
    "tokens_per_s_per_gpu": _field("(?:tps|wps)"),
    "tflops_per_gpu_logged": _field("tflops"),
    "percent": r"\bmfu:\s*([\d.]+)%",
    "step_time_s": _field("iter"),
    "learning_rate": _field("lr"),
}
_OTHERS = {
    "number": _field("step", r"\d+"),
    "steps_planned": r"\bstep:\s*\d+/(\d+)\s",
    "memory": _field("memory", r"[\d.]+\s*[KMGT]i?B"),
    "complete": rf"({_NUMBERED})\s+loss:\s*\S+\s.*\b(?:mfu:\s*(?:N/A|[\d.]+%)|data:.*\blr:\s*[\d.e-]+\s*$)",
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of step lines; one that does not reach its last field stays unparsed. Validations are no steps."""
    text = pl.col("text")
    is_bare = text.str.contains("[36mstep: ", literal=True)
    if lines.select(is_bare.any()).item():
        lines = lines.with_columns(pl.when(is_bare).then(text.str.replace_all(_BARE_COLOUR, "")).otherwise(text))
    mine = lines.filter(text.str.contains(_STEP) & ~text.str.contains("validate step:", literal=True))
    printed = extract_numbers(mine, _NUMBERS, {**_OTHERS, **STAMPS})
    return conform(
        printed.with_columns(
            ts=pl.coalesce(stamped(), timestamp(pl.col("prefix"))),
            step=pl.when(pl.col("complete").is_not_null()).then("number"),
            loss=pl.when(pl.col("loss") != _NO_LOSS).then("loss"),
            mfu_logged=divided(pl.col("percent"), 100),
            mem_reserved_bytes=size(pl.col("memory")),
        ),
        STEP_FACTS,
    )


# Experiments that count no operations (autoparallel, 2025) print nothing behind the pace.
_SHORT = rf"{_NUMBERED}\s+loss:\s*\S+\s.*\b(?:tps|wps):\s*\d{{1,3}}(?:,\d{{3}})*\s*$"


def finalize(facts: Facts) -> Facts:
    """Short lines are whole where a file has several of them and no longer one; else they are what is left of a cut."""
    is_open = pl.col("step").is_null()
    is_short = (is_open & pl.col("text").str.contains(_SHORT)).fill_null(value=False)
    is_whole = is_short & ((is_short.sum() > 1) & is_open.all()).over("source")
    printed = pl.col("text").str.extract(_OTHERS["number"]).cast(pl.Int64, strict=False)
    steps = facts.steps.with_columns(step=pl.when(is_whole).then(printed).otherwise("step"))
    steps = steps.with_columns(text=pl.when(pl.col("step").is_null()).then("text"))
    return replace(facts, steps=steps)


_LAUNCH = r"torchtitan version: |Starting job: |Building (?:\d-D )?device mesh with "
# train.py, of a job that did not raise. With a full stop (2025) it was in a `finally` and means nothing.
_END = r"(?:^|- )(?:Training completed|Process group destroyed)\s*$"


_EVENT_LITERALS = ("Training completed", "Process group destroyed", "Starting job: ", "torchtitan version:")

DIALECT = Dialect(
    name="torchtitan",
    module=__name__,
    signature_literals=(
        *("  tps: ", "  wps: ", "  mfu: ", "  tflops: ", "device mesh with parallelism:"),
        *("-D device mesh with [", "Peak FLOPS used for computing MFU", "with local batch size"),
        *("torchtitan version:", "TorchTitan Config", "-m torchtitan.train", "[36mstep: "),
    ),
    steps=steps,
    settings=torchtitan_settings.settings,
    events=milestones(launch=_LAUNCH, training_end=_END),
    combined=rules.COMBINED,
    finalize=finalize,
    sidecars=launch_files.SIDECARS,
    literals_by_function={
        "steps": ("step: ",),
        "settings": (*torchtitan_settings.LITERALS, *environment.LITERALS),
        "events": (*_EVENT_LITERALS, "device mesh with"),
    },
)
