"""Runs that went silent: no step for many times the usual time between two logged steps.

A silence lasts from the last logged step to a later line of the log (the process lived and made no step), or to now
where the file is known to be written live. It must be longer than SILENCE_S, SILENCE_USUAL_PAUSES times the median time
between two logged steps, and SILENCE_LONGEST_PAUSES times the longest pause that the run survived before. Only steps
with timestamps count.

Clocks: a log has no time zone and a modification time is UTC. A file was written live if its last timestamp and its
modification time differ by whole half hours; a copied file almost never does. A silence of whole hours, give or take
ZONE_TOLERANCE_S, may be the difference of two clocks in one file (the scheduler's and a container's): it is reported
with that doubt and is no sign of a hang. A pause of whole hours between two steps may be a clock change (daylight
saving) and is not reported.
"""

from __future__ import annotations

from datetime import datetime

import polars as pl

from sweepscope.pipeline.logs.diagnostics.finding import FINDING, finding
from sweepscope.pipeline.logs.figures import Figure, before, drawn, first, last, most, of_runs, total
from sweepscope.pipeline.logs.steady_state import in_runs
from sweepscope.schemas.thresholds import (
    CLOCK_TOLERANCE_S,
    SILENCE_LONGEST_PAUSES,
    SILENCE_MAX_AGE_S,
    SILENCE_MIN_STEPS,
    SILENCE_S,
    SILENCE_USUAL_PAUSES,
    ZONE_TOLERANCE_S,
)

SILENCE = pl.Schema({"run_id": pl.String, "longest_pause_s": pl.Float64, "silence": pl.String, "is_hang": pl.Boolean})
"""One row per run with timed steps: its longest pause between two logged steps, a sentence on the silence at its end
(NULL for none), and whether that is a sign of a hang where nothing else explains the end."""


def pauses(steps: pl.DataFrame) -> pl.DataFrame:
    """Per run with timed steps: `usual_s` and `longest_s` between logged steps, and line and time of the last one."""
    timed = _timed(steps)
    found = of_runs(
        timed,
        run_id=first(pl.col("run_id")),
        n=total(pl.col("ts").is_not_null()),
        usual_s=drawn(_PAUSE_S, pl.Expr.median),
        longest_s=most(_PAUSE_S),
        last_step=last(pl.col("step")),
        last_ts=last(pl.col("ts")),
        source_path=last(pl.col("source_path")),
        line_no=last(pl.col("line_no")),
    )
    return found.filter((pl.col("n") >= SILENCE_MIN_STEPS) & (pl.col("usual_s") >= 0)).drop("run")


def silences(steps: pl.DataFrame, runs: pl.DataFrame, *, now: datetime) -> pl.DataFrame:
    """SILENCE rows with `source_path`, `line_no` and `ts` of the last step.

    Args:
        steps: `run_id`, `step`, `ts`, `source_path`, `line_no`.
        runs: `run_id`, `ended_at` (last timestamp of the log or of a line that ended it) and `modified_at` (of the
            newest of its files, UTC; NULL for an attempt that others follow).
        now: the moment of reading, UTC.
    """
    rows = pauses(steps).join(runs.select("run_id", "ended_at", "modified_at"), on="run_id", maintain_order="left")
    limit_s = _limit_s("longest_s")
    last_line = pl.max_horizontal("last_ts", "ended_at")
    in_log_s, unwritten_s = _seconds(last_line - pl.col("last_ts")), _seconds(pl.lit(now) - pl.col("modified_at"))
    zone_s = _seconds(pl.col("modified_at") - last_line)
    is_live = (_from_whole(zone_s, 1800) <= CLOCK_TOLERANCE_S) & (zone_s.abs() <= 14 * 3600)
    is_silent_log = in_log_s >= limit_s
    is_silent_file = (
        is_live & (in_log_s + unwritten_s >= limit_s) & unwritten_s.is_between(SILENCE_S, SILENCE_MAX_AGE_S)
    )
    silent_s = pl.when(is_silent_log).then(in_log_s).when(is_silent_file).then(in_log_s + unwritten_s)
    rows = rows.with_columns(
        silent_s=silent_s, is_doubtful=is_silent_log & (_from_whole(in_log_s, 3600) <= ZONE_TOLERANCE_S)
    )
    return rows.select(
        "run_id",
        "source_path",
        "line_no",
        ts="last_ts",
        longest_pause_s="longest_s",
        silence=pl.when(pl.col("silent_s").is_not_null()).then(_text()),
        is_hang=pl.col("silent_s").is_not_null() & ~pl.col("is_doubtful"),
    )


def silent_pauses(steps: pl.DataFrame) -> pl.DataFrame:
    """FINDING rows, at most one per run: the pause that stands out among those that it survived."""
    widest = of_runs(
        _timed(steps),
        run_id=first(pl.col("run_id")),
        n=total(_PAUSE_S.is_not_null()),
        usual_s=drawn(_PAUSE_S, pl.Expr.median),
        pause_s=most(_PAUSE_S),
        next_s=Figure(_PAUSE_S.top_k(2), _second_largest),
        step=_at_longest(pl.col("step")),
        before=_at_longest(before("step")),
        source_path=_at_longest(pl.col("source_path")),
        ts=_at_longest(pl.col("ts")),
        line_no=_at_longest(pl.col("line_no")),
    )
    is_clock = _from_whole(pl.col("pause_s"), 3600) <= ZONE_TOLERANCE_S
    is_long = pl.col("pause_s") >= _limit_s("next_s")
    is_long &= pl.col("pause_s") >= SILENCE_S
    found = widest.filter((pl.col("n") >= SILENCE_MIN_STEPS) & is_long & ~is_clock)
    text = pl.format(
        "no step for {} min between step {} and step {}, {} times the usual {} s; then it went on",
        (pl.col("pause_s") / 60).round(1),
        "before",
        "step",
        _times("pause_s", "usual_s"),
        pl.col("usual_s").round(2),
    )
    return finding(found.with_columns(text=text), "silence")


def _second_largest(parts: pl.Expr) -> pl.Expr:
    return parts.explode().drop_nulls().sort(descending=True).get(1, null_on_oob=True)  # top_k is in no order


def _at_longest(values: pl.Expr) -> Figure:
    """The value of the step behind the longest pause."""
    return Figure(values.get(_PAUSE_S.arg_max()), lambda parts: parts.get(pl.col("pause_s").arg_max()))


def _timed(steps: pl.DataFrame) -> pl.DataFrame:
    """Steps with a time: `run`, `run_id`, `source_path`, `line_no`, `ts`, `step`."""
    numbered = in_runs(steps)["run", "run_id", "source_path", "line_no", "ts", "step"]
    return numbered.drop_nulls("ts") if numbered["ts"].null_count() else numbered


def at_end(silences: pl.DataFrame, status: pl.DataFrame) -> pl.DataFrame:
    """FINDING rows for the silence at the end of every run that did not complete and is not still running.

    `status`: `run_id`, `status`.
    """
    silent = silences.drop_nulls("silence").join(status, on="run_id", maintain_order="left")
    silent = silent.filter(~pl.col("status").is_in(["completed", "running"]))
    if silent.is_empty():
        return pl.DataFrame(schema=FINDING)
    return finding(silent.with_columns(text=pl.col("silence")), "silence")


def _limit_s(longest_s: str) -> pl.Expr:
    """Seconds from which a pause is a silence, given the column with the longest other pause."""
    usual_s = SILENCE_USUAL_PAUSES * pl.col("usual_s")
    return pl.max_horizontal(pl.lit(SILENCE_S), usual_s, SILENCE_LONGEST_PAUSES * pl.col(longest_s))


def _text() -> pl.Expr:
    counted = pl.format(
        "no step for {} min after step {}: {} times the usual {} s between logged steps, "
        "{} times the longest pause before",
        (pl.col("silent_s") / 60).round(1),
        "last_step",
        _times("silent_s", "usual_s"),
        pl.col("usual_s").round(2),
        _times("silent_s", "longest_s"),
    )
    doubt = pl.lit("; a whole number of hours may be the difference of two clocks in one file")
    return pl.concat_str(counted, pl.when("is_doubtful").then(doubt).otherwise(pl.lit("")))


def _times(long: str, short: str) -> pl.Expr:
    """How many times `short` fits into `long`; "many" where it is below the clock's resolution."""
    count = (pl.col(long) / pl.col(short)).round(0)
    return pl.when(count.is_finite()).then(count.cast(pl.Int64, strict=False).cast(pl.String)).otherwise(pl.lit("many"))


def _seconds(duration: pl.Expr) -> pl.Expr:
    return duration.dt.total_microseconds() / 1e6


def _from_whole(seconds: pl.Expr, unit_s: int) -> pl.Expr:
    """Distance to the nearest multiple of `unit_s` (for one hour: of at least one)."""
    nearest = (seconds / unit_s).round(0)
    distance = (seconds - nearest * unit_s).abs()
    return distance if unit_s < 3600 else pl.when(nearest >= 1).then(distance).otherwise(pl.lit(float(unit_s)))


_PAUSE_S = _seconds(pl.col("ts") - before("ts"))
