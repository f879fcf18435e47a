"""Runs as parsed: attempts, steps, events and the sources of their settings."""

from __future__ import annotations

import polars as pl

from sweepscope.schemas import vocab
from sweepscope.schemas.columns.shared import HARDWARE, LAYOUT, MODEL, SOFTWARE, columns
from sweepscope.schemas.core.column import flag, integer, number, text
from sweepscope.schemas.core.rules import in_order, within
from sweepscope.schemas.core.table import Rule, Table
from sweepscope.schemas.thresholds import MFU_LIMIT
from sweepscope.schemas.vocab.scheduler import JOB_STATE

PRINTED_BYTES = 2**29
"""Rounding of bytes in logs: DeepSpeed prints allocated memory in hundredths of GiB, reserved memory in whole GiB."""


def _consistent(name: str, columns: str, holds: pl.Expr, message: str) -> Rule:
    """A law that does not tell which value is wrong. The values stay; `mfu_audit` judges them.

    Published rows are as their source prints them: their contradictions are in `mfu_audit` alone.
    """
    return Rule(name, tuple(columns.split()), (pl.col("origin") == "published") | holds, message, empties=False)


_RANKS = pl.col("dp") * pl.col("tp") * pl.col("pp") * pl.col("cp").fill_null(1)  # ep lies within dp
_CONSISTENT = (
    _consistent("ranks", "dp tp pp cp num_gpus", pl.col("num_gpus") == _RANKS, "dp x tp x pp x cp is not num_gpus"),
    _consistent(
        "batch",
        "dp gas mbs gbs",
        pl.col("dp") * pl.col("gas") * pl.col("mbs") == pl.col("gbs"),
        "dp x gas x mbs is not gbs",
    ),
    _consistent(
        "batch_tokens",
        "gbs seq_len gbs_tokens",
        pl.col("gbs") * pl.col("seq_len") == pl.col("gbs_tokens"),
        "gbs x seq_len is not gbs_tokens",
    ),
    _consistent("mfu", "mfu", pl.col("mfu") <= MFU_LIMIT, "more than the peak of the accelerator"),
)

RUNS = Table(
    name="runs",
    description="Every run attempt: outcome, place, model, layout, software and steady-state performance.",
    grain="one row per run attempt",
    primary_key=("run_id",),
    rules=(
        in_order("started_at", "ended_at"),
        in_order("first_step", "last_step"),
        within("mem_peak_allocated_bytes", "mem_peak_reserved_bytes", absolute=PRINTED_BYTES),
        *_CONSISTENT,
    ),
    columns=columns(
        "run_id",
        integer("attempt", "count", "number of the launch within its run directory or log, from 1", minimum=1),
        "source_path line_no run_dir sweep framework origin job_id status status_confidence status_evidence "
        "started_at ended_at",
        integer(
            "diverged_at_step",
            "steps",
            "first logged step from which the loss (or the gradient norm) stays NaN or infinite or, by the rule of "
            "pipeline/logs/diagnostics/divergence.py, stays far above its best; NULL when it did not diverge",
        ),
        text("quarantine_reason", "why the run is kept out of every ranking; NULL when it is ranked"),
        text(
            "duplicate_of",
            "run_id, or published table, of the same run; such a row counts nowhere. NULL for a run of its own",
        ),
        HARDWARE,
        MODEL,
        LAYOUT,
        integer("data_workers", "count", "processes that load data for each rank ahead of its steps; 0: none"),
        SOFTWARE,
        "steps_planned",
        integer("steps_logged", "steps", "distinct steps found in the log"),
        integer("first_step", "steps", "first step logged; see `step_basis`"),
        "last_step",
        text("step_basis", "what the numbers of its steps count; NULL where none was logged", vocab.STEP_BASIS),
        number("last_loss", "nats", "last logged training loss; NaN or infinite after divergence", finite=False),
        integer("warmup_steps_dropped", "steps", "leading logged steps left out of the steady medians"),
        "step_time_s",
        text("step_time_basis", "what `step_time_s` is", vocab.STEP_TIME_BASIS),
        number("step_time_p10_s", "s", "10th percentile of steady step times", positive=True),
        number("step_time_p90_s", "s", "90th percentile of steady step times", positive=True),
        "tokens_per_s tokens_per_s_per_gpu model_tflops_per_gpu mfu mfu_logged hfu",
        text("mfu_basis", "how `mfu` was computed (FLOPs per token, peak and its precision), or why it could not be"),
        text("flops_basis", "what `flops_per_token` rests on; MFU compares within one basis", vocab.FLOPS_BASIS),
        number("flops_per_token", "FLOP/token", "model FLOPs per token used for `mfu`", positive=True),
        number("peak_tflops", "TFLOP/s", "dense peak of the accelerator used for `mfu`", positive=True),
        number("peak_tflops_logged", "TFLOP/s", "peak that the framework divided by for `mfu_logged`", positive=True),
        "mem_peak_allocated_bytes mem_peak_reserved_bytes gpu_hours",
        text("gpu_hours_basis", "where `gpu_hours` comes from", vocab.GPU_HOURS_BASIS),
        number("warmup_step_time_s", "s", "time of the first logged step", positive=True),
        "tflops_per_gpu_logged hosts host_mem_peak_bytes queue_wait_s",
        text("scheduler_state", "the scheduler's word on the run's job", JOB_STATE),
        text("scheduler_exit", "the scheduler's exit code and signal, as code:signal"),
        number(
            "allocated_gpu_hours", "GPU·h", "accelerator-hours held for its job's last attempt, idle too", minimum=0
        ),
        number("held_after_end_s", "s", "for which it held its GPUs after it had completed, until something ended it"),
        number("startup_s", "s", "from the first timestamp of its log to that of its first step", minimum=0),
        integer("first_failed_rank", "id", "rank that failed first, as the launcher reports"),
        text("first_failed_host", "host of the rank that failed first, as the launcher reports"),
    ),
)

STEPS = Table(
    name="steps",
    description="Training steps exactly as logged, warm-up included.",
    grain="one row per run attempt and logged step",
    primary_key=("run_id", "step"),
    rules=(within("mem_allocated_bytes", "mem_reserved_bytes", absolute=PRINTED_BYTES),),
    columns=columns(
        "run_id",
        integer("step", "steps", "optimizer step as the framework counts it, or what `runs.step_basis` names"),
        "ts",
        number("loss", "nats", "training loss as logged; NaN or infinite where training diverged", finite=False),
        "step_time_s tokens_per_s tokens_per_s_per_gpu tflops_per_gpu_logged mfu_logged",
        integer("mem_allocated_bytes", "bytes", "allocator bytes in use, as logged at this step"),
        integer("mem_reserved_bytes", "bytes", "allocator bytes reserved, as logged at this step"),
        number("grad_norm", "1", "gradient norm as logged; NaN or infinite where gradients overflowed", finite=False),
        number("learning_rate", "1", "learning rate as logged"),
        integer("consumed_tokens", "tokens", "tokens consumed so far, as logged"),
        "source_path line_no",
    ),
)

EVENTS = Table(
    name="events",
    description="Evidence: lines on how a run started, failed, ended or contradicts itself.",
    grain="one row per evidence line and kind",
    primary_key=("source_path", "line_no", "kind", "text"),
    nullable_key=("line_no",),
    columns=columns(
        "run_id source_path line_no ts", text("kind", "what the line reports", vocab.EVENT_KIND), "rank host text"
    ),
)

ARGUMENTS = Table(
    name="arguments",
    description="What a run was launched with, under the names that its framework has for it: printed arguments, "
    "command lines and configuration files. `settings` has those that fill columns of `runs`, under names of ours.",
    grain="one row per run attempt and argument",
    primary_key=("run_id", "name"),
    nullable_key=("line_no",),
    redefines=("name", "value", "setting_source"),
    columns=columns(
        "run_id",
        text("name", "as it is spelled there; sections of a configuration with dots between"),
        text("value", "as it is printed, at most 2,000 characters; credentials are hidden"),
        text("setting_source", "where it is stated; of several places the one that counts most", vocab.SETTING_SOURCE),
        flag("is_option", "it may change how steps run: no path, name, seed, schedule of learning, logging or saving"),
        "source_path line_no",
    ),
)

SETTINGS = Table(
    name="settings",
    description="Where each configuration value of a run comes from; every source has a row, conflicting ones too.",
    grain="one row per run attempt, setting and source",
    primary_key=("run_id", "name", "setting_source"),
    nullable_key=("line_no",),
    columns=columns(
        "run_id",
        text("name", "setting, named as the column of `runs` it fills, or as the framework spells it"),
        text("value", "value as text"),
        text("setting_source", "where the value comes from", vocab.SETTING_SOURCE),
        flag("is_used", "`runs` has this value"),
        "source_path line_no",
        text("stated_in", "file that states it, where the user does and no log: a sweepscope.toml, or the home's"),
    ),
)
