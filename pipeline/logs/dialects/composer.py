"""MosaicML Composer and llm-foundry.

Formats: composer/loggers/console_logger.py ConsoleLogger (a header per log, then one metric per line; floats with four
decimals), callbacks/speed_monitor.py (throughput; `device/` is per accelerator, MFU a fraction), callbacks/
memory_monitor.py (memory in units of 10**9 bytes; before 0.13 in bytes, and `allocated_mem` was all that had ever been
allocated); llm-foundry scripts/train (the configuration as YAML).

A header counts in the unit of max_duration. Where that is not the batch, `time/batch` (batches done before this one)
gives the step. Header and metrics are parts of a step until `finalize` joins them.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import CombinedSetting, Dialect
from sweepscope.pipeline.logs.dialects import environment
from sweepscope.pipeline.logs.expressions import switched, whole, words
from sweepscope.pipeline.logs.extractors import (
    computed_peaks,
    computed_settings,
    matched_settings,
    milestones,
    named_settings,
    once_per_text,
)
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform
from sweepscope.pipeline.text.field_extraction import extract_each
from sweepscope.pipeline.text.quantities import number

# _get_progress_string: a run measured in epochs has `[epoch=1][batch=5/100]:`, or `[batch=5]` of data without a length.
_HEADER = r"^\s*(?:\[(?:epoch|iteration|batch|sample|token|second)=\d+(?:/\d+)?\])+:?\s*$"
_BATCH_ONLY = r"^\s*\[batch=(\d+)/(\d+)\]:?\s*$"
_METRIC = r"^\s*Train (?P<name>[\w/.-]+): (?P<value>-?\d+|-?\d+\.\d{4}|-?inf|nan)\s*$"
_LOSS = "loss/train/total"

# Metric -> column and what one unit of it is.
_COLUMNS = {
    _LOSS: ("loss", 1.0),
    "throughput/tokens_per_sec": ("tokens_per_s", 1.0),
    "throughput/device/tokens_per_sec": ("tokens_per_s_per_gpu", 1.0),
    "throughput/device/flops_per_sec": ("tflops_per_gpu_logged", 1e-12),
    "throughput/device/mfu": ("mfu_logged", 1.0),
    "memory/current_allocated_mem": ("mem_allocated_bytes", 1e9),
    "memory/current_reserved_mem": ("mem_reserved_bytes", 1e9),
    "memory/allocated_mem": ("mem_allocated_bytes", 1e9),  # before 0.16: the current one too, after the batch
    "memory/reserved_mem": ("mem_reserved_bytes", 1e9),
    "memory/reserved_bytes": ("mem_reserved_bytes", 1.0),
}
_OLD_MEMORY = pl.when(pl.col("name") == "memory/reserved_mem").then(pl.lit("memory/reserved_bytes"))
_LEARNING_RATE = r"^lr-\w+/group0$"
_BATCHES_BEFORE = ("time/batch", "trainer/global_step")  # the latter before 0.11
_BATCHES = "throughput/batches_per_sec"
_GRADIENT = r"^l2_norm/grad/global$"
_PEAK = r"^\s*Train memory/peak_{}_mem(?:_max)?: (\d+\.\d{{4}})\s*$"
_SO_FAR = r"^\s*Train time/(?P<unit>batch|sample|token): (?P<total>\d+)\s*$"
_EVEN_TOKENS = 8
"""Of which the sequences of packed data are a multiple: others may come out whole by chance."""
_EXACT = 0.001
"""Throughputs are printed with four decimals: so near a whole number is their ratio one."""


def steps(lines: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS of headers (`steps_planned`, and `step` when they count batches) and of metrics (one column each)."""
    text = pl.col("text")
    metric = lines.with_columns(metric=text.str.extract_groups(_METRIC), is_header=text.str.contains(_HEADER))
    is_in_bytes = pl.col("name").str.starts_with("memory/") & ~pl.col("value").str.contains(".", literal=True)
    mine = (
        metric.unnest("metric")
        .filter(pl.col("is_header") | pl.col("name").is_not_null())
        .with_columns(number(pl.col("value")), name=pl.when(is_in_bytes).then(_OLD_MEMORY).otherwise("name"))
    )
    rows = mine.with_columns(
        # Marks headers for `finalize`; -1: without a total, which it leaves out.
        steps_planned=pl.when("is_header").then(
            text.str.extract(r"/(\d+)\]:?\s*$").cast(pl.Int64, strict=False).fill_null(-1)
        ),
        step=text.str.extract(_BATCH_ONLY).cast(pl.Int64, strict=False),
        grad_norm=pl.when(pl.col("name").str.contains(_GRADIENT)).then("value"),
        # Four decimals: of a small rate nothing is left, and of a slow step too little.
        learning_rate=pl.when(pl.col("name").str.contains(_LEARNING_RATE) & (pl.col("value") > 0)).then("value"),
        step_time_s=pl.when((pl.col("name") == _BATCHES) & (pl.col("value") >= 0.01)).then(
            (1 / pl.col("value")).round(3)
        ),
        **{
            column: pl.coalesce(
                pl.when(pl.col("name") == metric).then((pl.col("value") * unit).round(6))
                for metric, (target, unit) in _COLUMNS.items()
                if target == column
            ).cast(STEP_FACTS[column], strict=False)
            for column in dict.fromkeys(target for target, _ in _COLUMNS.values())
        },
    )
    before = pl.col("value").cast(pl.Int64, strict=False)
    started = rows.with_columns(
        step=pl.when(pl.col("name").is_in(_BATCHES_BEFORE)).then(before + 1).otherwise(pl.col("step"))
    )
    values = [column for column in STEP_FACTS.names() if column not in ("source", "line_no", "rank", "ts", "text")]
    has_value = pl.any_horizontal(pl.col(column).is_not_null() for column in values if column in started.columns)
    return conform(started.filter(has_value), STEP_FACTS)


def peaks(lines: pl.DataFrame) -> pl.DataFrame:
    """PEAK_FACTS of peaks since the start; the figures without `peak` are what was left after the batch."""
    peaks = {"allocated": "mem_peak_allocated_bytes", "reserved": "mem_peak_reserved_bytes"}
    printed = extract_each(lines, {label: _PEAK.format(label) for label in peaks})
    return computed_peaks(printed, {name: (number(pl.col(label)) * 1e9).round() for label, name in peaks.items()})


def finalize(facts: Facts) -> Facts:
    """One row per header with the metrics below it; a block without a loss (a cut one) stays unparsed.

    The microbatch size is printed with every block and counts where it is printed first.
    """
    rows = facts.steps.sort("source", "line_no", maintain_order=True)
    is_header = pl.col("steps_planned").is_not_null()
    rows = rows.with_columns(block=is_header.cast(pl.Int64).cum_sum().over("source", "rank"))
    values = [name for name in STEP_FACTS.names() if name not in ("source", "rank")]
    blocks = (
        rows.filter(pl.col("block") > 0)
        .group_by("source", "rank", "block", maintain_order=True)
        .agg(pl.col(values).drop_nulls().first(), is_batch=pl.col("step").first().is_not_null())
    )
    is_whole = pl.col("loss").is_not_null() & pl.col("step").is_not_null()
    header = pl.coalesce("text", pl.format("[batch={}/{}]", "step", "steps_planned"))
    steps = blocks.with_columns(
        text=pl.when(~is_whole).then(header),
        step=pl.when(is_whole).then("step"),
        steps_planned=pl.when("is_batch").then("steps_planned"),
    )
    settings = pl.concat([facts.settings, _devices(steps)]).sort("source", "line_no", maintain_order=True)
    is_repeated = (pl.col("name") == "mbs") & (pl.col("setting_source") == "log_line")
    return Facts(
        conform(steps, STEP_FACTS).sort("source", "line_no", maintain_order=True),
        settings.filter(~is_repeated | pl.struct("source", "value").is_first_distinct().over(is_repeated)),
        facts.peaks,
        facts.events,
    )


def _devices(steps: pl.DataFrame) -> pl.DataFrame:
    """Accelerators that share the pace of the job: both are printed with four decimals."""
    shared = pl.col("tokens_per_s") / pl.col("tokens_per_s_per_gpu")
    whole_ratio = steps.filter((shared >= 0.99) & ((shared - shared.round()).abs() < _EXACT))
    devices = computed_settings(whole_ratio, {"num_gpus": shared}, setting_source="derived")
    return devices.unique(["source", "value"], keep="first", maintain_order=True)


_CONFIG = (
    {"max_seq_len": "seq_len", "device_train_batch_size": "arg:local_batch"}
    | {"device_train_microbatch_size": "mbs", "n_gpus": "num_gpus"}
    | {"precision": "arg:precision", "sharding_strategy": "arg:sharding", "n_layers": "num_layers"}
    | {"n_heads": "num_heads", "d_model": "hidden_size", "n_params": "params", "vocab_size": "vocab_size"}
    | {"num_nodes": "num_nodes", "num_gpus_per_node": "gpus_per_node", "max_duration": "arg:max_duration"}
    | {"global_train_batch_size": "gbs", "activation_checkpointing": "arg:checkpointing"}
)


# trainer.py _train_loop, at the level INFO; the name of an enumeration's member before its value took its place.
_USED = r"\bUsing precision (?:Precision\.)?((?i:amp_bf16|amp_fp16|amp_fp8|fp32))\b"


@once_per_text
def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of the YAML that llm-foundry prints, and the microbatch size of the first metrics."""
    dumped = named_settings(lines, r"^\s*(\w+): ([\w.]+)\s*$", _CONFIG, setting_source="argument_dump")
    text = pl.col("text")
    size = text.str.extract(r"^\s*Train trainer/device_train_microbatch_size: (\d+)\s*$")
    precision = matched_settings(lines, [("arg:precision", _USED)]).with_columns(pl.col("value").str.to_lowercase())
    own = [dumped, computed_settings(lines, {"mbs": size}), precision, _batch(lines)]
    return pl.concat([*own, environment.settings(lines)])


def _batch(lines: pl.DataFrame) -> pl.DataFrame:
    """SETTING_FACTS of what the totals so far come to: samples of a batch, tokens of a sample where all have as many.

    composer/core/time.py: of data that are padded, the tokens are those without padding, no multiple of the samples.
    """
    printed = lines.with_columns(pl.col("text").str.extract_groups(_SO_FAR).alias("so_far")).unnest("so_far")
    printed = printed.filter(pl.col("unit").is_not_null()).with_columns(pl.col("total").cast(pl.Int64, strict=False))
    per = {}
    for name, of, unit in (("gbs", "sample", "batch"), ("seq_len", "token", "sample")):
        units = pl.when(pl.col("unit") == unit).then("total").forward_fill()
        is_whole = (pl.col("unit") == of) & (units > 0) & (pl.col("total") > 0) & (pl.col("total") % units == 0)
        per[name] = pl.when(is_whole).then(pl.col("total") // units)
    is_even = (pl.col("seq_len") % _EVEN_TOKENS == 0).fill_null(value=True)
    found = printed.with_columns(**per).filter(is_even)
    settings = computed_settings(found, {name: pl.col(name) for name in per}, setting_source="derived")
    return settings.unique(["source", "name", "value"], keep="first", maintain_order=True)


_PRECISIONS = {"amp_bf16": "bf16", "amp_fp16": "fp16", "amp_fp8": "fp8", "fp32": "fp32"}
_SHARDING = {"FULL_SHARD": "3", "SHARD_GRAD_OP": "2", "HYBRID_SHARD": "3", "NO_SHARD": "0"}
_DURATION = pl.col("arg:max_duration").str.extract(r"^(\d+)ba$")

COMBINED = (
    CombinedSetting("precision", words("arg:precision", _PRECISIONS)),
    CombinedSetting("zero_stage", words("arg:sharding", _SHARDING)),
    # PyTorch's HYBRID_SHARD shards inside a node.
    CombinedSetting(
        "dp_replicate", pl.when(pl.col("arg:sharding") == "HYBRID_SHARD").then(whole("num_nodes")), ("arg:sharding",)
    ),
    CombinedSetting("gas", whole("arg:local_batch") // whole("mbs"), ("arg:local_batch",)),
    CombinedSetting("steps_planned", _DURATION),
    CombinedSetting("recompute", switched("arg:checkpointing", "full", "none")),
)

_END = r"^\s*Done\.\s*$|composer\.trainer\.trainer: .*[Tt]raining (?:finished|complete)"


_STEP_LITERALS = (
    *("[batch=", "[token=", "[sample=", "[second=", "[epoch=", "[iteration="),
    *("Train time/batch:", "Train trainer/global_step:", "Train loss/train/total:"),
    *("Train throughput/", "Train memory/", "Train lr-", "Train l2_norm/grad/global:"),
)

DIALECT = Dialect(
    name="composer",
    module=__name__,
    signature_literals=(
        *("Train loss/train/total:", "Train time/batch:", "Train trainer/device_train_microbatch_size:"),
        *("composer.trainer.trainer", "Train throughput/device/", "composer.cli.launcher", "composer/callbacks/"),
    ),
    steps=steps,
    settings=settings,
    peaks=peaks,
    events=milestones(launch=r"^\s*Starting training\.\.\.\s*$", training_end=_END),
    combined=COMBINED,
    finalize=finalize,
    steps_show_current_memory=True,
    literals_by_function={
        "steps": _STEP_LITERALS,
        "peaks": ("Train memory/peak_",),
        "settings": (
            *(f"{name}: " for name in _CONFIG),
            "Using precision ",
            *("Train trainer/device_train_microbatch_size:", "Train time/"),
            *environment.LITERALS,
        ),
        "events": ("Starting training...", "Done.", "composer.trainer.trainer"),
    },
)
