"""One row per run from its facts: peak memory, lines and planned number of its steps, first and last timestamp."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from sweepscope.pipeline.io.spill import SLICE_ROWS, release
from sweepscope.pipeline.logs.figures import first, first_known, last, last_known, last_of, most, of_runs
from sweepscope.pipeline.logs.steady_state import in_runs

_PEAKS = ("mem_peak_allocated_bytes", "mem_peak_reserved_bytes")
_ROUNDING = 1.01  # step lines print memory in three digits


def reported_peaks(observed: pl.DataFrame) -> pl.DataFrame:
    """`run_id` and the largest reported value of each kind of peak, as `<name>_reported`.

    `observed`: facts of peak memory (`name`, `value`) with `run_id`.
    """
    values = observed["run_id", "name", "value"]
    slices = values.iter_slices(SLICE_ROWS)  # every step may report some
    largest = pl.concat([values.clear(), *(rows.group_by("run_id", "name").agg(pl.max("value")) for rows in slices)])
    return largest.group_by("run_id").agg(
        pl.col("value").filter(pl.col("name") == name).max().cast(pl.Int64, strict=False).alias(f"{name}_reported")
        for name in _PEAKS
    )


def without_current_memory(summary: pl.DataFrame, runs: pl.DataFrame, dialects: Iterable[str]) -> pl.DataFrame:
    """`summary` without a peak for runs of `dialects`, whose step lines print the memory in use after the step only."""
    of_dialects = runs.filter(pl.col("dialect").is_in(list(dialects))).select("run_id")
    is_current = pl.col("run_id").is_in(of_dialects["run_id"].implode())
    return summary.with_columns(mem_peak_allocated_bytes=pl.when(~is_current).then("mem_peak_allocated_bytes"))


def merge_peaks(summary: pl.DataFrame) -> pl.DataFrame:
    """`summary` with one value per peak: the reported one, unless a step shows more than it by more than rounding."""

    def merged(name: str) -> pl.Expr:
        reported, shown = pl.col(f"{name}_reported"), pl.col(name)
        return pl.when(shown <= reported * _ROUNDING).then(reported).otherwise(pl.max_horizontal(shown, reported))

    return summary.with_columns(merged(name).alias(name) for name in _PEAKS).drop(f"{name}_reported" for name in _PEAKS)


def step_lines(steps: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `source_path`, `steps_planned` (the largest printed), and the lines of the run's steps.

    These are `first_line`, `last_line` and `line_before`, that of the last step but one; NULL where no step has a line.
    `first_ts` and `last_step_ts` are the times of first and last step, NULL where they have none.
    """
    line = pl.col("line_no")
    of_run = of_runs(
        in_runs(steps),
        run_id=first(pl.col("run_id")),
        source_path=first(pl.col("source_path")),
        steps_planned=most(pl.col("steps_planned")),
        first_line=first_known(line),
        last_line=last_known(line),
        line_before=last_of(line, 2, lambda lines: lines.get(-2, null_on_oob=True)),
        first_ts=first(pl.col("ts")),
        last_step_ts=last(pl.col("ts")),
    )
    return of_run.drop("run")


def begin_and_end(spans: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `started_at`, `ended_at`: first and last timestamp in the order of the lines.

    The earliest and latest would be wrong: dates in the text (of a build, of a licence) lie in between.
    """
    parts = []
    for rows in spans["run_id", "ts"].iter_slices(SLICE_ROWS):
        of_run = rows.group_by("run_id", maintain_order=True)
        parts.append(of_run.agg(started_at=pl.col("ts").first(), ended_at=pl.col("ts").last()))
        release()
    nothing = pl.DataFrame(schema={"run_id": pl.String, "started_at": pl.Datetime("us"), "ended_at": pl.Datetime("us")})
    of_run = pl.concat([nothing, *parts]).group_by("run_id")
    both = of_run.agg(pl.col("started_at").first(), pl.col("ended_at").last())
    return both.with_columns(ended_at=pl.when(pl.col("ended_at") >= pl.col("started_at")).then("ended_at"))


def startup(lines: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `startup_s`: seconds from the first timestamp of a run's log to that of its first step.

    Only of runs of which the very first step is logged, with a time.

    Args:
        lines: rows of `step_lines`.
        runs: `run_id`, `dialect`, `first_step`, `started_at`.
    """
    begun = runs.filter((pl.col("first_step") <= 1) & (pl.col("dialect").fill_null("") != _TWO_CLOCKS))
    waits = lines.select("run_id", "first_ts").join(begun.select("run_id", "started_at"), on="run_id")
    startup_s = (pl.col("first_ts") - pl.col("started_at")).dt.total_milliseconds() * 1e-3
    return waits.select("run_id", startup_s=startup_s).filter(pl.col("startup_s") > 0)


_TWO_CLOCKS = "mlperf"
"""MLPerf's own lines print UTC, the lines around them local time."""
