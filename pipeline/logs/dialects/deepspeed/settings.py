"""What DeepSpeed prints about itself, under whatever trainer it runs.

Formats: deepspeed/runtime/config.py print (one `[config.py:962:print]   name ......... value` line per value, behind
`DeepSpeedEngine configuration:`), launcher/launch.py (`dist_world_size=8`, `Process 123 exits successfully.`),
launcher/runner.py (`cmd = ...`), runtime/pipe/engine.py (`CONFIG: micro_batches=256 micro_batch_size=4`, `RANK=0
STAGE=0 .. UNIQUE_PARAMS=20553056256 (20553.056M)`).

`world_size` is the engine's data-parallel size: the ranks divided by the model-parallel size. Every engine of a process
prints its own configuration: with several (actor, critic) the last one counts.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.expressions import whole
from sweepscope.pipeline.logs.extractors import computed_settings, matched_settings, milestones, named_settings

NAMES = {
    "train_batch_size": "gbs",
    "train_micro_batch_size_per_gpu": "mbs",
    "gradient_accumulation_steps": "gas",
    "zero_optimization_stage": "zero_stage",
    "world_size": "dp",
    "bfloat16_enabled": "arg:ds_bf16",
    "fp16_enabled": "arg:ds_fp16",
}

SIGNATURES = ("DeepSpeedEngine configuration:", "log_dist] [Rank 0] step=", "RunningAvgSamplesPerSec=", "] [launch.py:")
"""Printed by the engine and its launcher under any trainer: dialects on top of it count them too, so that their own
literals decide."""

PIPE_SIGNATURES = ("] CONFIG: micro_batches=",)
"""Printed by the pipeline engine, which transformers' Trainer does not use."""

LAUNCH_LITERALS = ("--num_gpus", "--include ", "--include=")
EVENT_LITERALS = ("[runner.py:",)
LITERALS = (
    *(":print]   train_", ":print]   gradient_accumulation_steps", ":print]   zero_optimization_stage"),
    *(":print]   world_size", ":print]   bfloat16_", ":print]   fp16_enabled", ":print]   float16_config"),
    *("dist_world_size=", "Discovered MPI settings of ", "nnodes=", "] CONFIG: micro_batches=", "] RANK=0 STAGE=0"),
    *LAUNCH_LITERALS,
    *EVENT_LITERALS,
)

_STAGES = whole("arg:pipe_parallel_size")
PIPE_STAGES = pl.when(_STAGES == 0).then(1).otherwise(_STAGES)
"""Pipeline size as trainers on top of DeepSpeed state it: 0 switches the pipeline engine off, which is one stage."""

_SPLIT = whole("tp") * pl.coalesce(whole("pp"), PIPE_STAGES).fill_null(1) * whole("cp").fill_null(1)
DATA_PARALLEL = pl.when(pl.col("dp").is_null()).then(whole("num_gpus") // _SPLIT)
"""Data-parallel size of a run that stops before the engine states it."""

# From 0.17 the booleans are parts of `bfloat16_config ... enabled=True ...`.
_ENABLED = r"\[config\.py:\d+:print\]\s+(bfloat16|float16)_config(?: \.+ |  )enabled=(True|False)\b"
_ENABLED_NAMES = {"bfloat16": "arg:ds_bf16", "float16": "arg:ds_fp16"}
# Names that fill their column leave no room for dots: two blanks stand between them and the value.
_PRINTED = r"\[config\.py:\d+:print\]\s+(\w+)(?: \.+ |  )(\S+)\s*$"
_LINE = {
    # Its own launcher, or one of MPI (comm/comm.py mpi_discovery).
    "num_gpus": (
        r"(?:\[launch\.py:\d+:main\] dist_|\bMPI settings of world_rank=\d+, local_rank=\d+, )world_size=(\d+)"
    ),
    "num_nodes": r"\[launch\.py:\d+:main\] nnodes=(\d+),",
    "gpus_per_node": r"\[launch\.py:\d+:main\] nnodes=\d+, num_local_procs=(\d+)",
    "gas": r"\] CONFIG: micro_batches=(\d+) micro_batch_size=\d+",
    "mbs": r"\] CONFIG: micro_batches=\d+ micro_batch_size=(\d+)",
    "params": r"\] RANK=0 STAGE=0 .*\bUNIQUE_PARAMS=(\d+)",  # of all stages, tied ones once
}


_LAUNCHED = {
    "gpus_per_node": r"\bdeepspeed\s.*--num_gpus[= ](\d+)",
    "num_nodes": r"\bdeepspeed\s.*--num_nodes[= ](\d+)",
}
_INCLUDED = r"\bdeepspeed\s.*--include[= ]\"?'?localhost:([\d,]+)"


def launched(lines: pl.DataFrame) -> pl.DataFrame:
    """GPUs and nodes of a `deepspeed ...` command (launcher/runner.py): one node unless it names more, or a file."""
    text = pl.col("text")
    near = lines.filter(text.str.contains(r"\bdeepspeed\s.*--(?:num_gpus|include)[= ]"))
    is_alone = ~text.str.contains(r"--num_nodes|--hostfile|-H ") & ~text.str.ends_with("\\")
    computed = {
        "gpus_per_node": text.str.extract(_INCLUDED).str.count_matches(",") + 1,
        "num_nodes": pl.when(is_alone).then(pl.lit("1")),
    }
    given = matched_settings(near, _LAUNCHED.items()).with_columns(setting_source=pl.lit("command_line"))
    return pl.concat([computed_settings(near, computed, setting_source="command_line"), given])


def settings(lines: pl.DataFrame) -> pl.DataFrame:
    """The engine's configuration and the launcher's world, as SETTING_FACTS."""
    printed = named_settings(lines, _PRINTED, NAMES, setting_source="argument_dump")
    enabled = named_settings(lines, _ENABLED, _ENABLED_NAMES, setting_source="argument_dump")
    return pl.concat([printed, enabled, matched_settings(lines, _LINE.items()), launched(lines)])


def extracted(
    lines: pl.DataFrame, name: str, pattern: str, *, setting_source: str = "log_line", thousands: bool = False
) -> pl.DataFrame:
    """The first group of `pattern` as SETTING_FACTS; `thousands`: the number has separators."""
    value = pl.col("text").str.extract(pattern)
    if thousands:
        value = value.str.replace_all(",", "", literal=True)
    return computed_settings(lines, {name: value}, setting_source=setting_source)


_LAUNCH = r"\[runner\.py:\d+:main\] cmd = "

events = milestones(launch=_LAUNCH)
"""EVENT_FACTS where DeepSpeed's launcher begins. Where a process ended well is evidence for any trainer."""
