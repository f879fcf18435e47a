"""DeepSpeed under a custom training script, such as DeepSpeed-Chat.

Formats: deepspeed/runtime/engine.py _report_progress (`[Rank 0] step=10, skipped=6, lr=[...], mom=[...]`),
utils/timer.py ThroughputTimer.stop (`epoch=0/micro_step=10/global_step=10, RunningAvgSamplesPerSec=...`; before 0.8
`0/10, RunningAvgSamplesPerSec=...`), runtime/pipe/engine.py (`steps: 1 loss: ... iter time (s): ...`),
profiling/flops_profiler/profiler.py (`world size:   16`),
DeepSpeedExamples applications/DeepSpeed-Chat (`saving the final model ...`, `Beginning of Epoch 1/16, ...`).

`step=` is the optimizer step, and so is `global_step=`: the lines about one step are merged. The old timer form counts
micro-batches: it gives the peak of memory and no step. "GB" are GiB. Several engines of one process (RLHF's actor and
critic) report the same steps: the first counts. Samples per second mean nothing without their length; the loss of
DeepSpeed-Chat is in lines that count generation batches, not optimizer steps. Neither becomes part of a step; see
`chat` for a file that has only the latter.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect, Sidecar
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.dialects.deepspeed import chat
from sweepscope.pipeline.logs.dialects.deepspeed import settings as deepspeed_settings
from sweepscope.pipeline.logs.expressions import cases, is_true, whole
from sweepscope.pipeline.logs.extractors import (
    computed_peaks,
    extract_numbers,
    matched_settings,
    milestones,
    named_settings,
)
from sweepscope.pipeline.logs.facts import STEP_FACTS, conform
from sweepscope.pipeline.logs.sidecars import run_files
from sweepscope.pipeline.logs.sidecars.deepspeed_autotuning import read_experiment
from sweepscope.pipeline.text.quantities import NUMBER, number
from sweepscope.pipeline.text.timestamps import STAMPS, stamped, timestamp

_GIB = 2**30

_PROGRESS = r"\[Rank \d+\] step=\d"
_TIMER = r"\[timer\.py:\d+:stop\] epoch="
_PIPE = r"^\s*steps: \d+ loss: "
_STEPS = {
    # A complete line of each form, its step in the group.
    "progress": r"\[Rank \d+\] step=(\d+), skipped=\d+, lr=\[[^\]]*\]",
    "timer": r"\[timer\.py:\d+:stop\] epoch=\d+/micro_step=\d+/global_step=(\d+), .*\bMaxMemAllocated=[\d.]+GB",
    "pipe": r"^\s*steps: (\d+) loss: \S+ iter time \(s\): [\d.]+ samples/sec: [\d.]+",
}
_NUMBERS = {
    "learning_rate": rf"\blr=\[\s*({NUMBER})\s*[,\]]",
    "loss": rf"^\s*steps: \d+ loss: ({NUMBER})\s",
    "step_time_s": rf"\biter time \(s\): ({NUMBER})\s",
}
_OTHERS = {
    "allocated": r"\bMemAllocated=(-?[\d.]+)GB",
    "mine": rf"()(?:{_PROGRESS}|{_TIMER}|{_PIPE})",
    "chat": rf"()(?:{chat.LINE})",
}


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of lines about one optimizer step; a cut one stays unparsed. Step 0 only marks the engine's start."""
    fields = extract_numbers(lines, _NUMBERS, {**_STEPS, **_OTHERS, **STAMPS})
    steps_ = fields.filter(pl.col("mine").is_not_null()).with_columns(
        ts=pl.coalesce(stamped(), timestamp(pl.col("prefix"))),
        step=pl.coalesce(*_STEPS).cast(pl.Int64, strict=False),
        mem_allocated_bytes=_gib(pl.col("allocated")),
    )
    batches = chat.steps(fields.filter(pl.col("chat").is_not_null()).select(lines.columns))
    return pl.concat([conform(steps_.filter(pl.col("step").ne_missing(0)), STEP_FACTS), batches])


def _gib(text: pl.Expr) -> pl.Expr:
    """Printed GiB to bytes; 0.0 is what a machine without an accelerator prints."""
    value = number(text)
    return pl.when(value != 0).then((value * _GIB).round()).cast(pl.Int64, strict=False)


def peaks(lines: pl.DataFrame) -> pl.DataFrame:
    """PEAK_FACTS of the timer line in both forms, and of see_memory_usage (runtime/utils.py): `Max_MA 5 GB`."""
    peak = pl.col("text").str.extract(r"\b(?:MaxMemAllocated=|Max_MA )([\d.]+) ?GB")
    return computed_peaks(lines, {"mem_peak_allocated_bytes": _gib(peak)})


_OPTIONS = (
    {"per_device_train_batch_size": "mbs", "per_device_training_batch_size": "mbs"}
    | {"gradient_accumulation_steps": "gas", "zero_stage": "zero_stage", "actor_zero_stage": "zero_stage"}
    | {"max_seq_len": "seq_len", "max_seq_length": "seq_len", "model_max_length": "seq_len"}
    | {"block_size": "seq_len", "seq_len": "seq_len", "seq_length": "seq_len"}
    | {"max_prompt_seq_len": "arg:max_prompt_seq_len", "max_answer_seq_len": "arg:max_answer_seq_len"}
    | {"model_name_or_path": "model", "actor_model_name_or_path": "model"}
)
# launch.py prints a process's command as a list. A switch has no value: the next option is none.
_OPTION = r"--(\w+)(?:[ =]|', ')([\w./~][\w./~-]*)"
# DeepSpeed-Chat main.py; transformers' summary, which its example scripts keep.
_PRINTED = {
    "arg:epochs": r"^\s*Beginning of Epoch \d+/(\d+), Total Micro Batches",
    "arg:epoch_batches": r"^\s*Beginning of Epoch \d+/\d+, Total Micro Batches (\d+)",
    "mbs": r"^\s*Instantaneous batch size per device = (\d+)",
    "params": r"^\s*Number of parameters: (\d+)\s*$",
    "arg:pipe_stage": r"\bRANK=\d+ STAGE=(\d+) LAYERS=",
}
# profiling/flops_profiler/profiler.py print_model_profile: names in a column of 60 or 70; `paralel` in 2021.
_PROFILED = {
    name: rf"^{label}: {{8,}}(\d+)\s*$"
    for name, label in (
        ("num_gpus", "world size"),
        ("dp", "data parallel size"),
        ("tp", "model parall?el size"),
        ("mbs", "batch size per GPU"),
    )
}


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """The engine's configuration and what the script's command and messages say, as SETTING_FACTS."""
    launch = lines.filter(pl.col("text").str.contains(r"cmd = |\bdeepspeed\s.*\.py\b|\] \[launch\.py:\d+:.* \['"))
    options = named_settings(launch, _OPTION, _OPTIONS, setting_source="command_line")
    return pl.concat(
        [
            options,
            matched_settings(lines, [*_PRINTED.items(), *_PROFILED.items(), *chat.PRINTED_SETTINGS]),
            deepspeed_settings.settings(lines),
            environment.settings(lines),
        ]
    )


_END = r"^\s*saving (?:the final )?model ?\.\.\.\s*$"


def events(lines: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS where the launcher begins, and where it or the script reports the end."""
    return pl.concat([milestones(training_end=_END)(lines), deepspeed_settings.events(lines)])


_PRECISION = cases(
    (is_true("arg:ds_bf16"), "bf16"),
    (is_true("arg:ds_fp16"), "fp16"),
    (~is_true("arg:ds_bf16") & ~is_true("arg:ds_fp16"), "fp32"),
)
_STEPS_PLANNED = whole("arg:epochs") * whole("arg:epoch_batches") // whole("gas")
# Without pipeline stages the engine's world is the job's: one gives the other.
_HAS_NO_STAGES = pl.col("arg:pipe_stage").is_null()
_DP = pl.when(_HAS_NO_STAGES & pl.col("dp").is_null()).then(whole("num_gpus"))
_NUM_GPUS = pl.when(_HAS_NO_STAGES & pl.col("num_gpus").is_null()).then(whole("dp"))

COMBINED: tuple[CombinedSetting, ...] = (
    CombinedSetting("precision", _PRECISION, ("arg:ds_bf16",)),
    CombinedSetting("steps_planned", _STEPS_PLANNED, ("arg:epoch_batches",), setting_source="derived"),
    CombinedSetting("seq_len", whole("arg:max_prompt_seq_len") + whole("arg:max_answer_seq_len")),
    CombinedSetting("dp", _DP, ("num_gpus",), setting_source="derived"),
    CombinedSetting("num_gpus", _NUM_GPUS, ("dp",), setting_source="derived"),
)

_STEP_LITERALS = ("] step=", "[timer.py:", "steps: ", *chat.LITERALS)
_SETTING_LITERALS = (
    *("Beginning of Epoch", "Instantaneous batch size per device", "Number of parameters:"),
    *("cmd = ", "deepspeed ", "] [launch.py:", "world size:   ", "parallel size:   "),
    *("paralel size:   ", "batch size per GPU:   ", " STAGE=", "s, Batch Size: "),
    *deepspeed_settings.LITERALS,
    *environment.LITERALS,
)

DIALECT = Dialect(
    name="deepspeed",
    module=__name__,
    signature_literals=(
        # transformers' scripts without its Trainer print the banner, too; with it they print losses as dicts.
        *deepspeed_settings.SIGNATURES,
        *("MaxMemAllocated=", ":sigkill_handler] [", "Instantaneous batch size per device"),
        *("Total optimization steps", "|E2E latency=", "|CurSamplesPerSec=", "***** Evaluating perplexity, Epoch"),
        *("***** Evaluating reward, Epoch", ", Total Micro Batches ", ", mom=[", "cmd = deepspeed "),
        *deepspeed_settings.PIPE_SIGNATURES,
        *chat.SIGNATURES,
    ),
    steps=steps,
    settings=settings,
    peaks=peaks,
    events=events,
    combined=COMBINED,
    finalize=chat.finalize,
    sidecars=(*run_files.DEEPSPEED, Sidecar("exp.json", "config", read_experiment)),
    steps_show_current_memory=True,
    literals_by_function={
        "steps": _STEP_LITERALS,
        "settings": _SETTING_LITERALS,
        "peaks": ("MaxMemAllocated=", "Max_MA "),
        "events": ("saving ", *deepspeed_settings.EVENT_LITERALS),
    },
)
