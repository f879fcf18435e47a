"""What the facts of a run come to: peaks, planned steps, begin and end."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from sweepscope.pipeline.logs.steady_state import in_runs

_RATES = ("tokens_per_s", "tokens_per_s_per_gpu", "tflops_per_gpu_logged", "mfu_logged")


def measured(steps: pl.DataFrame) -> pl.DataFrame:
    """`steps` without times and rates that measure nothing.

    A time that was rounded to 0 is unknown, and so is the rate that a trainer makes of it (`inf`, `nan`). Kept as they
    are, one of them would have the whole run refused (`validate`), or its means infinite.
    """
    time = pl.col("step_time_s")
    return steps.with_columns(
        pl.when(time.is_finite() & (time > 0)).then(time).alias("step_time_s"),
        *(pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in _RATES),
    )


def gauges(gauges: pl.DataFrame) -> pl.DataFrame:
    """Largest observation per run, one column per gauge, suffixed so that it can be merged with the steps' own."""
    names = ("mem_peak_allocated_bytes", "mem_peak_reserved_bytes")
    return gauges.group_by("run_id").agg(
        pl.col("value").filter(pl.col("name") == name).max().cast(pl.Int64, strict=False).alias(f"{name}_gauge")
        for name in names
    )


def without_current_memory(summary: pl.DataFrame, runs: pl.DataFrame, dialects: Iterable[str]) -> pl.DataFrame:
    """`summary` without a peak where the steps only show what was in use after them: runs that `dialects` read."""
    mine = runs.filter(pl.col("dialect").is_in(list(dialects))).select("run_id")
    is_current = pl.col("run_id").is_in(mine["run_id"].implode())
    return summary.with_columns(mem_peak_allocated_bytes=pl.when(~is_current).then("mem_peak_allocated_bytes"))


_ROUNDING = 1.01  # step lines print memory in three digits


def merge_peaks(summary: pl.DataFrame) -> pl.DataFrame:
    """A reported peak, unless a step shows more than it by more than rounding."""

    def merged(name: str) -> pl.Expr:
        reported, shown = pl.col(f"{name}_gauge"), pl.col(name)
        return pl.when(shown <= reported * _ROUNDING).then(reported).otherwise(pl.max_horizontal(shown, reported))

    names = ("mem_peak_allocated_bytes", "mem_peak_reserved_bytes")
    return summary.with_columns(merged(name).alias(name) for name in names).drop(f"{name}_gauge" for name in names)


def stretched(steps: pl.DataFrame) -> pl.DataFrame:
    """Where the steps of each run stand (`source_path`, `first_line`, `last_line`, and `line_before` that), and the
    most steps that it says it will take."""
    line = pl.col("line_no")
    of_run = (
        in_runs(steps)
        .group_by("run", maintain_order=True)
        .agg(
            pl.col("run_id", "source_path").first(),
            pl.col("steps_planned").max(),
            first_line=line.first(),
            last_line=line.last(),
            line_before=line.get(-2, null_on_oob=True),
        )
    )
    return of_run.drop("run")


def begin_and_end(spans: pl.DataFrame) -> pl.DataFrame:
    """First and last timestamp in the order of the lines: dates in the text (of a build, of a licence) lie between."""
    both = spans.group_by("run_id").agg(started_at=pl.col("ts").first(), ended_at=pl.col("ts").last())
    return both.with_columns(ended_at=pl.when(pl.col("ended_at") >= pl.col("started_at")).then("ended_at"))
