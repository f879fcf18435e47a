"""Megatron-LM and its descendants: Megatron-Bridge, Primus, ROCm's fork and bigscience's.

Formats: Megatron-LM megatron/training/training.py training_log (step line; megatron/training.py before 2024),
megatron/training/utils.py report_memory, Megatron-Bridge training/utils/train_utils.py training_log, Primus
backends/megatron/patches (`instant/average` pairs, extra memory fields). The last rank prints the step line; with a
log interval above 1 it is an average. Configuration: see `megatron_settings`.

Every field ends with ` |`, so a field that a cut line ends in never matches. Old versions put no colon behind some
names; bigscience writes `lm-loss`. The loss is absent while the loss scaler skips steps.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.io.spill import few_of
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.dialects.megatron import launch_files, rules, settings
from sweepscope.pipeline.logs.extractors import extract_numbers, milestones
from sweepscope.pipeline.logs.facts import PEAK_FACTS, STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.quantities import NUMBER, divided, number
from sweepscope.pipeline.text.timestamps import STAMPS, stamped, timestamp

_STEP = r"iteration\s+(\d+)/\s*(\d+) \|"
_CUT_STEP = r"^\s*(?:\[[^\]]*\]\s*)?iteration\s+\d+/"
# The loss comes before these two, so a line that reaches one of them and has no loss did not log one.
_PAST_LOSS = r"\| (?:loss scale|number of (?:skipped|nan) iterations):?\s+\S+\s*(\|)"
_MIB = 2**20  # report_memory divides by 1024 twice and prints "MB"


def _field(label: str) -> str:
    """Number behind a label; of Primus's `instant/average` pairs, or `instant (avg average)`, the first."""
    return rf"\| {label}:?\s+({NUMBER})(?:/{NUMBER}| \(avg {NUMBER}\))?\s*\|"


_NUMBERS = {
    "loss": _field(r"(?:lm[ _-])?loss"),
    "elapsed_ms": _field(r"elapsed time per iteration \(ms\)"),
    "elapsed_s": _field(r"elapsed time per iteration \(s\)"),  # bigscience's logs of BLOOM
    "tflops_per_gpu_logged": _field(r"(?:(?:throughput|compute) per GPU \(TFLOP/s/GPU\)|TFLOPs)"),
    # Primus before and from 26.5; NVIDIA's and Swiss AI's forks, the latter twice
    "tokens_per_s_per_gpu": _field(
        r"(?:tokens? (?:throughput )?per GPU \(tokens/s/GPU\)|tokens/s/GPU inst/harmonic mean"
        r"|Tokens per second per GPU \(Tok/s/GPU\)|tokens/sec/gpu)"
    ),
    "learning_rate": _field("learning rate"),
    "grad_norm": _field("grad norm"),
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of step lines; one without its time, or cut before its loss, stays unparsed."""
    text = pl.col("text")
    mine = lines.filter(text.str.contains(_STEP) | text.str.contains(_CUT_STEP))
    counters = {"number": r"iteration\s+(\d+)/\s*\d+ \|", "steps_planned": r"iteration\s+\d+/\s*(\d+) \|"}
    fields = extract_numbers(mine, _NUMBERS, {**counters, "past_loss": _PAST_LOSS, **STAMPS}).with_columns(
        ts=pl.coalesce(stamped(), timestamp(pl.col("prefix")))
    )
    step_time_s = pl.coalesce(divided(pl.col("elapsed_ms"), 1000), "elapsed_s")
    complete = step_time_s.is_not_null() & (pl.col("loss").is_not_null() | pl.col("past_loss").is_not_null())
    return conform(fields.with_columns(step=pl.when(complete).then("number"), step_time_s=step_time_s), STEP_FACTS)


_UTILISATION = rf"\bStep Time : ({NUMBER})s GPU utilization: ({NUMBER}) ?MODEL_TFLOP/s/GPU"
_NEAR_LINES = 64  # rank 0 prints it, the last rank the step line; other ranks' lines may come between
_ROUNDING_S = 0.00501  # two decimals


def _steps_and_utilisation(lines: pl.DataFrame) -> pl.DataFrame:
    """Step lines, and Megatron-Bridge's line about the same step, which has no number: `finalize` joins it."""
    text = pl.col("text")
    utilisation = extract_numbers(
        lines.filter(text.str.contains("MODEL_TFLOP/s/GPU", literal=True)),
        {"step_time_s": _UTILISATION, "tflops_per_gpu_logged": _UTILISATION.replace(f"({NUMBER})", NUMBER, 1)},
    )
    return pl.concat([steps(lines), conform(utilisation.drop_nulls("step_time_s"), STEP_FACTS)])


def finalize(facts: Facts) -> Facts:
    """TFLOP/s of Megatron-Bridge's utilisation lines to the next step that took as long, else the one before."""
    is_utilisation = (
        pl.all_horizontal(pl.col("step", "loss").is_null())
        & pl.col("tflops_per_gpu_logged").is_not_null()
        & pl.col("text").str.contains(_UTILISATION)
    )
    utilisation = few_of(facts.steps, is_utilisation).sort("source", "line_no")
    if utilisation.is_empty():
        return facts
    rows = facts.steps.filter(~is_utilisation.fill_null(value=False)).sort("source", "line_no", maintain_order=True)
    for strategy in ("backward", "forward"):
        rows = rows.join_asof(
            utilisation.select(
                "source", "line_no", **{f"{strategy}_s": "step_time_s", strategy: "tflops_per_gpu_logged"}
            ),
            on="line_no",
            by="source",
            strategy=strategy,
            tolerance=_NEAR_LINES,
            check_sortedness=False,
        )
    same = (
        pl.when((pl.col(f"{strategy}_s") - pl.col("step_time_s")).abs() <= _ROUNDING_S).then(pl.col(strategy))
        for strategy in ("backward", "forward")
    )
    merged = rows.with_columns(tflops_per_gpu_logged=pl.coalesce("tflops_per_gpu_logged", *same))
    return replace(facts, steps=merged.select(facts.steps.columns))


_PEAKS = (
    ("max allocated", "mem_peak_allocated_bytes", _MIB),
    ("max reserved", "mem_peak_reserved_bytes", _MIB),
    # Megatron-Bridge since 2026: train_utils.py report_memory divides by 1e9, five digits.
    ("mem-max-allocated-gigabytes", "mem_peak_allocated_bytes", 10**9),
    ("mem-max-reserved-gigabytes", "mem_peak_reserved_bytes", 10**9),
)


def peaks(lines: pl.DataFrame) -> pl.DataFrame:
    """PEAK_FACTS of peak memory of every rank that reports; several reports may be glued into one line."""
    mine = lines.filter(pl.col("text").str.contains(r"memory \([MG]B\)"))
    found = [
        mine.select("source", "line_no", name=pl.lit(name), hit=pl.col("text").str.extract_all(rf"{label}:\s*[\d.]+"))
        .explode("hit")
        .drop_nulls("hit")
        .with_columns(value=(number(pl.col("hit").str.extract(r"([\d.]+)$")) * unit_bytes).round())
        for label, name, unit_bytes in _PEAKS
    ]
    return conform(pl.concat(found), PEAK_FACTS)


# training.py prints the first after its train loop, and the second when --exit-interval or --exit-duration ends it.
# Primus: core/runtime/train_runtime.py.
_END = (
    r"^\s*(?:\[after training is done\]|Training completed\.\s*$"
    r"|\[?exiting program (?:at iteration|after [\d.]+ minutes))"
)
# arguments.py _print_args; Megatron-Bridge prints its ConfigContainer as YAML, once per rank.
_LAUNCH = r"^\s*-{10,} arguments -{10,}|^_target_: megatron\.bridge\.training\.config\.ConfigContainer"

events = milestones(launch=_LAUNCH, training_end=_END)
"""EVENT_FACTS where a run begins, and where the trainer reports its end."""


STEP_LITERALS = ("iteration  ", "elapsed time per iteration (ms)", "MODEL_TFLOP/s/GPU")
LITERALS_BY_FUNCTION = {
    "steps": STEP_LITERALS,
    "settings": settings.LITERALS,
    "peaks": ("memory (MB)", "memory (GB)"),
    "events": (
        "exiting program",
        "Training completed.",
        "[after training is done]",
        "- arguments -",
        "bridge.training.config.ConfigContainer",
    ),
}

DIALECT = Dialect(
    name="megatron",
    module=__name__,
    signature_literals=(
        *("| consumed samples:", "| elapsed time per iteration (ms):"),
        *("throughput per GPU (TFLOP/s/GPU):", "- arguments -", "[after training is done]"),
        *("model-parallel size:", "megatron.bridge.training.config", "MegatronLauncherAdapter"),
    ),
    steps=_steps_and_utilisation,
    settings=settings.settings,
    peaks=peaks,
    events=events,
    combined=rules.COMBINED,
    finalize=finalize,
    sidecars=launch_files.SIDECARS,
    literals_by_function=LITERALS_BY_FUNCTION,
)
