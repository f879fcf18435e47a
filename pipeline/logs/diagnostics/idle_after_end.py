"""Runs that completed and then held their GPUs until something ended the job.

A run ends with its last logged step or the trainer's message that it finished, whichever is later. A later line shows
what ended the job: the scheduler, the user, a signal or a collective's watchdog. The GPUs were held for the time in
between. A watchdog's line often has no date, but gives the time for which the collective waited.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.diagnostics.finding import FINDING, finding
from sweepscope.pipeline.logs.figures import first, most, of_runs
from sweepscope.pipeline.logs.steady_state import in_runs
from sweepscope.schemas.thresholds import HELD_ENDED_S, HELD_STOPPED_S, ZONE_TOLERANCE_S

_ENDED_BY = {
    "timeout": "the scheduler's time limit",
    "cancelled": "a cancellation",
    "preempted": "a preemption",
    "node_fail": "a failed node",
    "sigkill": "SIGKILL",
    "sigterm": "SIGTERM",
    "interrupted": "Ctrl-C",
    "hang": "a collective's watchdog",
    "nccl_error": "an NCCL error",
}
_STOPPED = ("timeout", "deadline", "cancelled", "preempted", "requeued", "node_fail", "out_of_memory")


HELD = pl.Schema({"run_id": pl.String, "held_after_end_s": pl.Float64})
"""Seconds for which runs held their GPUs after they had completed; one row per run that did."""


def held_after_end(runs: pl.DataFrame, steps: pl.DataFrame, events: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """FINDING rows of kind `held_after_end`, at most one per run, and their HELD rows.

    Args:
        runs: `run_id`, `status`, `num_gpus`.
        steps: `run_id`, `step`, `ts`, `line_no`, one row per run and step.
        events: FINDING columns and `is_secondary` (from another file than the steps).
    """
    done = runs.filter(pl.col("status") == "completed").select("run_id", "num_gpus")
    stops = events.filter(pl.col("kind").is_in(list(_ENDED_BY))).join(done, on="run_id", maintain_order="left")
    if stops.is_empty():
        return _NOTHING
    last = of_runs(
        in_runs(steps),
        run_id=first(pl.col("run_id")),
        last_step=most(pl.col("step")),
        last_ts=most(pl.col("ts")),
        last_line=most(pl.col("line_no")),
    )
    finished = events.filter((pl.col("kind") == "training_end") & ~pl.col("is_secondary"))
    finished = finished.group_by("run_id").agg(finished_ts=pl.col("ts").max(), finished_line=pl.col("line_no").max())
    stops = stops.join(last, on="run_id", how="left").join(finished, on="run_id", how="left")
    stops = stops.with_columns(
        end_ts=pl.max_horizontal("last_ts", "finished_ts"), end_line=pl.max_horizontal("last_line", "finished_line")
    )
    stops = stops.filter(pl.col("is_secondary") | (pl.col("line_no") > pl.col("end_line")))
    if stops.is_empty():
        return _NOTHING
    text = pl.col("text")
    waited_s = text.str.extract(r"ran for (\d+) milliseconds").cast(pl.Float64, strict=False) / 1000
    since_s = (pl.coalesce("ts", _glog_time()) - pl.col("end_ts")).dt.total_seconds().cast(pl.Float64)
    waits = stops.with_columns(held_s=pl.max_horizontal(waited_s, since_s), is_waited=since_s.is_null())
    waits = waits.filter(pl.col("held_s") >= HELD_STOPPED_S)
    longest = waits.sort("held_s", "line_no", descending=[True, False]).unique(
        "run_id", keep="first", maintain_order=True
    )
    where = pl.when(pl.col("last_step").is_not_null()).then(pl.format("after the last step {}", "last_step"))
    longest = longest.with_columns(
        until=pl.col("kind").replace_strict(_ENDED_BY, default=None, return_dtype=pl.String),
        where=where.otherwise(pl.lit("after the end")),
    )
    return _found(longest)


def held_by_job(joined: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """FINDING rows (at the job's row) and HELD rows of completed runs whose job went on long after the log's last line.

    `joined`: runs with the facts of their job: `run_id`, `status`, `ended_at`, `num_gpus`, `is_last`, `job_state`,
    `ended_at_job`, `source_path_job`, `line_no_job`.
    """
    held_s = (pl.col("ended_at_job") - pl.col("ended_at")).dt.total_seconds().cast(pl.Float64)
    least_s = pl.when(pl.col("job_state").is_in(_STOPPED)).then(HELD_STOPPED_S).otherwise(HELD_ENDED_S)
    waits = joined.filter((pl.col("status") == "completed") & pl.col("is_last") & (held_s >= least_s))
    if waits.is_empty():
        return _NOTHING
    until = pl.concat_str(pl.lit("the end of the job, whose state is "), "job_state")
    waits = waits.with_columns(
        held_s=held_s, is_waited=pl.lit(value=False), until=until, where=pl.lit("after the log's last line")
    )
    job_row = {"source_path": "source_path_job", "line_no": "line_no_job", "ts": "ended_at_job"}
    waits = waits.select("run_id", "num_gpus", "held_s", "is_waited", "until", "where", **job_row)
    return _found(waits)


def _found(waits: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    held = waits.select("run_id", held_after_end_s="held_s")
    return finding(waits.with_columns(text=_text()), "held_after_end"), held


_NOTHING = pl.DataFrame(schema=FINDING), pl.DataFrame(schema=HELD)


def _glog_time() -> pl.Expr:
    """Time of a line in glog's form (`[E1014 12:00:00.123`), in the year of the run's end."""
    pattern = r"\[?[IWEF](\d{2})(\d{2}) (\d{2}:\d{2}:\d{2})"
    parts = [pl.col("text").str.extract(pattern, i) for i in (1, 2, 3)]
    stamp = pl.format("{}-{}-{} {}", pl.col("end_ts").dt.year(), *parts)
    return stamp.str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False, time_unit="us")


def _text() -> pl.Expr:
    hours = pl.col("held_s") / 3600
    gpus = pl.col("num_gpus").cast(pl.Float64, strict=False)
    nearest = hours.round(0)
    is_whole = (nearest >= 1) & ((hours - nearest).abs() * 3600 <= ZONE_TOLERANCE_S) & ~pl.col("is_waited")
    return pl.concat_str(
        pl.lit("GPUs were held for "),
        pl.when("is_waited").then(pl.lit("at least ")),
        (pl.col("held_s") / 60).round(1),
        pl.lit(" min "),
        "where",
        pl.format(" ({} GPU-hours on {} GPUs)", (hours * gpus).round(1), "num_gpus"),
        pl.lit(", until "),
        "until",
        pl.when(is_whole).then(pl.lit("; a whole number of hours may be the difference of two time zones")),
        ignore_nulls=True,
    )
