"""torchtitan, also as Primus runs it.

Formats: torchtitan/components/metrics.py MetricsProcessor.log (step line), distributed/parallel_dims.py (mesh),
train.py / trainer.py (batch line), tools/logging.py. The line is printed by the ranks of LOG_RANK; with a pipeline
only the last stage has a loss and the others print -1. `tps` is tokens/s per device (`wps` in 2024), memory is the peak
reserved since the last line, and MFU is judged against the peak that `Peak FLOPS used` names. No step time is printed.
Configuration: see `torchtitan_settings`.
"""

from __future__ import annotations

import polars as pl

from pipeline.parse import environment, torchtitan_settings
from pipeline.parse.milestones import milestones
from pipeline.parse.protocol import STEP_FACTS, Dialect, conform
from pipeline.parse.quantities import NUMBER, divided, number, size
from pipeline.parse.timestamps import timestamp

_NUMBERED = r"step:\s*\d+(?:/\d+(?: = [\d.]+%)?)?"  # some forks print `step: 640/644 = 99.4%`
_STEP = rf"(?:^|- |\s){_NUMBERED}(?:\s+loss:|\s*$|\s+\w*$)"
_COMPLETE = rf"{_NUMBERED}\s+loss:\s*\S+\s.*\bmfu:\s*(?:N/A|[\d.]+%)"
_NO_LOSS = -1.0  # what a pipeline stage without the loss prints


def _field(label: str, value: str = NUMBER) -> pl.Expr:
    return pl.col("text").str.extract(rf"\b{label}:\s*({value})")


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """Step lines; a line that does not reach its MFU is cut and stays unparsed. Validation lines are not steps."""
    text = pl.col("text")
    mine = lines.filter(text.str.contains(_STEP) & ~text.str.contains("validate step:", literal=True))
    loss = number(_field("loss"))
    return conform(
        mine.with_columns(
            ts=pl.coalesce(timestamp(text), timestamp(pl.col("prefix"))),
            step=pl.when(text.str.contains(_COMPLETE)).then(_field("step", r"\d+").cast(pl.Int64, strict=False)),
            steps_planned=text.str.extract(r"\bstep:\s*\d+/(\d+)\s").cast(pl.Int64, strict=False),
            loss=pl.when(loss != _NO_LOSS).then(loss),
            grad_norm=number(_field("grad_norm")),
            tokens_per_s_per_gpu=number(_field("(?:tps|wps)")),
            tflops_per_gpu_logged=number(_field("tflops")),
            mfu_logged=divided(number(text.str.extract(r"\bmfu:\s*([\d.]+)%")), 100),
            mem_reserved_bytes=size(_field("memory", r"[\d.]+\s*[KMGT]i?B")),
        ),
        STEP_FACTS,
    )


_LAUNCH = r"torchtitan version: |Starting job: |Building (?:\d-D )?device mesh with "
_END = r"(?:^|- )Training completed\s*$"


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """Where a run begins, and where the trainer says that it ended."""
    return milestones(lines, launch=_LAUNCH, training_end=_END)


DIALECT = Dialect(
    name="torchtitan",
    version=1,
    signature=(
        "  tps: ", "  wps: ", "  mfu: ", "  tflops: ", "device mesh with parallelism:", "-D device mesh with [",
        "Peak FLOPS used for computing MFU", "with local batch size", "torchtitan version:", "TorchTitan Config",
        "-m torchtitan.train",
    ),
    anchors=(
        "step: ", "Training completed", "Starting job: ", "torchtitan version:", "Building device mesh",
        *torchtitan_settings.ANCHORS, *environment.ANCHORS,
    ),
    steps=steps,
    settings=torchtitan_settings.settings,
    events=events,
    combined=torchtitan_settings.COMBINED,
)  # fmt: skip
