"""Colossal-AI's example trainers.

Formats: colossalai/logging/logger.py (`INFO colossalai - colossalai - INFO: message`, by rich, which wraps a message at
any blank once the console's width is reached), examples/language/gpt/gemini/train_gpt_demo.py (`[1/10] Loss:10.9,
Step time: 0.9s, TFLOPS: 40.1, FWD time: ..`), examples/language/performance_evaluator.py (summary of a benchmark),
colossalai/initialize.py and context/parallel_context.py (world size, parallel sizes); before 0.3 trainer/_trainer.py
(`[Epoch 0 / Train]:  50%|#####     | 5/10 [00:05<00:05,  1.00s/it, loss=10.9, lr=0.00015, throughput=4.1 ..]`);
bars of applications/Colossal-LLaMA/train.py and examples/language/llama2/pretrain.py (`Epoch 0: ..| 5/10 [..,
Loss=1.8]`, from 0), of ColossalChat's coati/trainer/sft.py and examples/language/gpt (`Epoch 1/3`, `Epoch [1/3]`, from
1).

A message has several lines, so a single line decides nothing: `steps` passes on every line that may be part of one,
and `finalize` joins them when the whole file is known. A message needs its own first line and those that follow within
MAX_MESSAGE_LINES; indented lines continue it. A bar counts a batch before it is given the values of the next: the
first drawing of a count shows its own.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.expressions import is_true, whole
from sweepscope.pipeline.logs.extractors import computed_peaks, computed_settings, milestones, named_settings
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.quantities import NUMBER, human, number
from sweepscope.pipeline.text.timestamps import timestamp

MAX_MESSAGE_LINES = 8

_HEAD = r"colossalai - [\w.]+ - +INFO:|^(?:\[\d\d/\d\d/\d\d \d\d:\d\d:\d\d\])? +INFO +colossalai"
_CONTINUED = r"^ {8,}\S"
_COUNTER = r"\[(\d+)/(\d+)\]"
# Three decimals end the time: a message cut inside it holds fewer.
_STEP_TIME = r"\b[Ss]tep time: *(-?\d+\.\d{3,})s?(?:,|\s|$)"


_BAR = (
    r"^\s*(?:\[Epoch \d+ / Train\]|Epoch (?:\d+(?:/\d+)?|\[\d+(?:/\d+)?\])): +\d{1,3}%\|[^|]*\| *(\d+)/(\d+) \[[^\]]*\]"
)
_FROM_ZERO = r"^\s*(?:\[Epoch (\d+) / Train\]|Epoch (\d+)): "
_FROM_ONE = r"^\s*Epoch (?:(\d+)/\d+|\[(\d+)(?:/\d+)?\]): "


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of bars, and unparsed of logger lines that may belong to a step's message: `finalize` reads them."""
    text = pl.col("text")
    is_part = text.str.contains(_CONTINUED) & text.str.contains_any(["Loss:", " time: ", " TFLOPS: "])
    parts = lines.filter(text.str.contains(_HEAD) | is_part).with_columns(
        ts=timestamp(text), step=pl.lit(None, pl.Int64)
    )
    return pl.concat([conform(parts, STEP_FACTS), _bars(lines), _summaries(lines)])


_SUMMARY = ", TFLOPS per GPU: "


def _summaries(lines: pl.DataFrame) -> pl.DataFrame:
    """Mean TFLOPS that a benchmark prints at its end, by the plainer of its two counts; `finalize` adds the step."""
    rate = number(pl.col("text").str.extract(rf"{_SUMMARY}([\d.]+)\s*$"))
    found = lines.with_columns(tflops_per_gpu_logged=rate).drop_nulls("tflops_per_gpu_logged")
    return conform(found, STEP_FACTS)


def _bars(lines: pl.DataFrame) -> pl.DataFrame:
    """Bars of the training with a loss, whatever the epoch; those of no batch yet show the epoch before."""
    text = pl.col("text")
    done, total = (text.str.extract(_BAR, group).cast(pl.Int64, strict=False) for group in (1, 2))
    from_zero, from_one = (
        pl.coalesce(text.str.extract(form, group) for group in (1, 2)).cast(pl.Int64, strict=False)
        for form in (_FROM_ZERO, _FROM_ONE)
    )
    epoch = pl.coalesce(from_zero, from_one - 1)
    loss = number(text.str.extract(rf"[ ,](?:train/)?[Ll]oss=({NUMBER})[,\]]"))
    found = lines.filter(text.str.contains(_BAR) & (done > 0)).with_columns(
        step=epoch * total + done, loss=loss, learning_rate=number(text.str.extract(rf", lr=({NUMBER})[,\]]"))
    )
    return conform(found.drop_nulls("loss"), STEP_FACTS)


def finalize(facts: Facts) -> Facts:
    """The first drawing of each bar, and messages of several lines to steps; the mean rate to the last of them."""
    order = ["source", "line_no"]
    is_mean = pl.col("step").is_null() & pl.col("tflops_per_gpu_logged").is_not_null()
    printed = facts.steps.filter(~is_mean)
    means = facts.steps.filter(is_mean).group_by("source").agg(mean=pl.col("tflops_per_gpu_logged").last())
    bars = printed.drop_nulls("step").sort(order, maintain_order=True)
    is_first = pl.col("step").ne_missing(pl.col("step").shift(1).over("source"))
    steps = pl.concat([bars.filter(is_first), _messages(printed.filter(pl.col("step").is_null()))])
    steps = steps.sort(order, maintain_order=True).join(means, on="source", how="left", maintain_order="left")
    is_last = pl.int_range(pl.len()).over("source") == pl.len().over("source") - 1
    rate = pl.coalesce("tflops_per_gpu_logged", pl.when(is_last).then("mean"))
    return Facts(
        conform(steps.with_columns(tflops_per_gpu_logged=rate), STEP_FACTS), facts.settings, facts.peaks, facts.events
    )


def _messages(parts: pl.DataFrame) -> pl.DataFrame:
    """Steps of messages of several lines. A message with a step time but no counter is numbered by its position."""
    is_head = pl.col("text").str.contains(_HEAD)
    messages = (
        parts.sort("source", "line_no", maintain_order=True)
        .with_columns(message=is_head.cast(pl.Int64).cum_sum().over("source"))
        .with_columns(first=pl.col("line_no").min().over("source", "message"))
        .filter(is_head | ((pl.col("message") > 0) & (pl.col("line_no") - pl.col("first") < MAX_MESSAGE_LINES)))
        .group_by("source", "message", maintain_order=True)
        .agg(
            pl.col("line_no", "rank", "ts").first(),
            text=pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars().str.join(" "),
        )
    )
    text = pl.col("text")
    printed = messages.filter(text.str.contains(r"\b[Ss]tep time:"))
    seconds = number(text.str.extract(_STEP_TIME))
    ordinal = pl.int_range(1, pl.len() + 1).over("source")
    counted = printed.with_columns(
        step=pl.when(seconds.is_not_null()).then(
            pl.coalesce(text.str.extract(_COUNTER).cast(pl.Int64, strict=False), ordinal)
        ),
        steps_planned=text.str.extract(_COUNTER, 2),
        loss=number(text.str.extract(rf"\b[Ll]oss: *({NUMBER})")),
        step_time_s=pl.when(seconds != 0).then(seconds),
        tflops_per_gpu_logged=number(text.str.extract(rf"\bTFLOPS: *({NUMBER})(?:,|\s|$)")),
    ).with_columns(text=pl.when(pl.col("step").is_null()).then("text"))
    return conform(counted, STEP_FACTS)


_PRINTED = {
    "num_gpus": r"\bworld size: *(\d+)",
    "dp": r"\bdata parallel size: *(\d+)|\bdp_world_size: *(\d+)",
    "pp": r"\bpipeline parallel size: *(\d+)",
    "tp": r"\btensor parallel size: *(\d+)",
}
_PARAMETERS = r"\bModel params(?: count)?: *([\d.]+ ?[KMB]?)"


# applications/*/train*.py and examples/language/*/*.py, as the shell echoes their launch; `3d` is the hybrid plugin.
_LAUNCH = r"\b(?:colossalai run|torchrun|torch\.distributed\.\w+)\b.*\.py\b"
_OPTIONS = (
    {"batch_size": "mbs", "accumulation_steps": "gas", "max_length": "seq_len", "max_len": "seq_len"}
    | {"mixed_precision": "precision", "zero_stage": "zero_stage", "plugin": "arg:plugin"}
    | {"tp": "tp", "pp": "pp"}
)
# Their benchmarks print what they were given (`Namespace(config='7b', plugin='gemini', ..)`).
_GIVEN = r"\bNamespace\(.*\bplugin="
_ARGUMENTS = {name: column for name, column in _OPTIONS.items() if name != "zero_stage"} | {
    "grad_checkpoint": "arg:grad_checkpoint"
}
_PLUGINS = {"zero1": 1, "zero1_cpu": 1, "zero2": 2, "zero2_cpu": 2, "gemini": 3, "gemini_auto": 3}
_OPTION_LITERALS = ("colossalai run", "torchrun", "torch.distributed.")


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of world and parallel sizes, the parameter count, and the launch's options."""
    text = pl.col("text")
    computed = {
        name: pl.coalesce(text.str.extract(pattern, group + 1) for group in range(pattern.count("(\\d+)")))
        for name, pattern in _PRINTED.items()
    }
    computed["params"] = human(text.str.extract(_PARAMETERS))
    launch = lines.filter(text.str.contains(_LAUNCH))
    options = named_settings(launch, r"--(\w+)[= ]+(\w+)", _OPTIONS, setting_source="command_line")
    arguments = lines.filter(text.str.contains(_GIVEN))
    given = named_settings(arguments, r"\b(\w+)='?([\w.-]+)", _ARGUMENTS, setting_source="argument_dump")
    return pl.concat([computed_settings(lines, computed), options, given, environment.settings(lines)])


_PEAKS = {  # benchmark.py, utils/memory.py report_memory_usage
    "mem_peak_allocated_bytes": r"\b(?:[Mm]ax (?:CUDA|device) memory usage:|max allocated) *([\d.]+) ?MB",
    "mem_peak_reserved_bytes": r"\bmax cached: *([\d.]+) ?MB",
}


def peaks(lines: pl.DataFrame) -> pl.DataFrame:
    """PEAK_FACTS of peak memory, in units of 1024**2 bytes though they print MB."""
    values = {name: number(pl.col("text").str.extract(pattern)) * 2**20 for name, pattern in _PEAKS.items()}
    return computed_peaks(lines, {name: value.round() for name, value in values.items()})


# examples/language/*/benchmark.py: what they print after the training loop; before it they print `Booster init max ..`.
# The trainer of 2022, if its limit comes before the end of the epochs.
_END = r"^\s*Max (?:CUDA|device) memory usage: |\bMax number of steps \d+ has been reached, training is stopped"

_STAGE = pl.col("arg:plugin").replace_strict(_PLUGINS, default=None, return_dtype=pl.Int64)

COMBINED = (
    CombinedSetting("num_gpus", whole("dp") * whole("pp") * whole("tp"), ("dp",)),
    CombinedSetting("zero_stage", _STAGE, ("arg:plugin",)),
    CombinedSetting("recompute", pl.when(is_true("arg:grad_checkpoint")).then(pl.lit("full"))),
)

_LITERALS = (
    *("colossalai - ", "Loss:", " time: ", " TFLOPS: ", "oss=", " / Train]: ", _SUMMARY),
    *("world size: ", "dp_world_size: ", "parallel size: ", "Model params", "Namespace(", "Max number of steps "),
    *("memory usage: ", "max allocated ", "max cached: "),
    *_OPTION_LITERALS,
    *environment.LITERALS,
)

DIALECT = Dialect(
    name="colossalai",
    module=__name__,
    signature_literals=(
        *("colossalai - colossalai - ", "INFO     colossalai - ", "colossalai run ", "TFLOPS per GPU by Megatron:"),
        *("colossalai/initialize.py", "colossalai/booster", "colossalai/zero", " / Train]: "),
    ),
    steps=steps,
    settings=settings,
    peaks=peaks,
    events=milestones(training_end=_END),
    combined=COMBINED,
    finalize=finalize,
    literals_by_function=dict.fromkeys(("steps", "settings", "peaks", "events"), _LITERALS),
)
