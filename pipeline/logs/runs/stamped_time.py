"""Time of a step from the time stamps of its lines, where a log states neither it nor a throughput.

Also where an unknown trainer states a throughput only: its batch may be one of tokens, or hold sentences of any length,
so that batch and length of a sequence do not tell what a step takes.
"""

from __future__ import annotations

import math

import polars as pl

from sweepscope.pipeline.logs.facts import INFERRED
from sweepscope.pipeline.logs.steady_state import warmup_steps

BASIS = "time_stamps"
_COUNTS_STEPS = ("step", "epoch")
"""Words of vocab.STEP_BASIS by which two numbers differ by the steps between them."""
_STAMPED = {"run_id": pl.String, "step_time_s": pl.Float64, "step_time_basis": pl.String}
_LEAST = 5
"""Distances that a median needs."""
_RESOLUTIONS = 10
"""A distance is measured over so many lines that it is this many times the resolution of the stamps."""
_SECOND, _MILLISECOND = 1_000_000, 1_000
_PAUSE = 5
"""Times the usual distance, and the resolution: a longer one holds an evaluation or a checkpoint."""
_SOME = 0.25
"""Of the distances, which may be pauses: more of them are how the trainer steps."""
_BURST = 0.02
"""Of the mean: a smaller median is that of lines which were printed together, long after their steps."""


def stamped_times(steps: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `step_time_s`, `step_time_basis` of runs whose lines tell by when they were printed.

    The median of the steady distances between lines: evaluations and checkpoints between a few of them do not count.

    Args:
        steps: STEP_FACTS rows with `run_id`.
        runs: rows of `runs` with their figures so far.
    """
    has_rate = pl.any_horizontal(pl.col("tokens_per_s", "tokens_per_s_per_gpu").is_not_null())
    has_speed = pl.col("step_time_s").is_not_null() | (has_rate & (pl.col("dialect") != INFERRED))
    wanted = runs.filter(~has_speed & (pl.col("steps_logged") > _LEAST) & pl.col("step_basis").is_in(_COUNTS_STEPS))
    if wanted.is_empty():
        return pl.DataFrame(schema=_STAMPED)
    mine = pl.col("run_id").is_in(wanted["run_id"].implode()) & pl.col("ts").is_not_null()
    stamped = steps.filter(mine).select("run_id", "step", "ts")
    each = ((rows["run_id"][0], _time_s(rows)) for rows in stamped.partition_by("run_id", maintain_order=True))
    return pl.DataFrame([(name, time_s, BASIS) for name, time_s in each if time_s], schema=_STAMPED, orient="row")


def _time_s(rows: pl.DataFrame) -> float | None:
    """Seconds of a step of one run; None where its stamps do not tell."""
    rows = rows.sort("step").unique("step", keep="first", maintain_order=True)
    rows = rows.slice(rows.select(warmup_steps(pl.len())).item())
    count = rows.height - 1
    if count < _LEAST:
        return None
    micros = rows["ts"].dt.timestamp("us")
    total = micros[-1] - micros[0]
    resolution = _SECOND if (micros % _SECOND == 0).all() else _MILLISECOND
    if total < _RESOLUTIONS * resolution or (micros.diff() < 0).any():
        return None
    usual = micros.diff().drop_nulls().filter(micros.diff().drop_nulls() > 0).median()
    lines = max(1, math.ceil(_RESOLUTIONS * resolution / usual)) if isinstance(usual, float) else count
    spans, passed = (micros - micros.shift(lines)).drop_nulls(), (rows["step"] - rows["step"].shift(lines)).drop_nulls()
    if spans.len() < _LEAST:
        return None
    middle = _without_pauses(rows["step"], micros, lines, resolution) or (spans / passed).median()
    mean = total / (rows["step"][-1] - rows["step"][0])
    if not isinstance(middle, float) or middle < _BURST * mean:
        return None
    return middle / 1e6


def _without_pauses(steps: pl.Series, micros: pl.Series, lines: int, resolution: int) -> float | None:
    """Microseconds of a step over stretches of so many lines without a pause: the median, or the mean of few.

    None where a single line is long enough, whose median needs no help, and where pauses are none or many.
    """
    spans, passed = micros.diff().drop_nulls(), steps.diff().drop_nulls()
    usual = (spans / passed).filter(spans > 0).median()
    if lines == 1 or not isinstance(usual, float):
        return None
    is_pause = (spans / passed > _PAUSE * usual) & (spans > _PAUSE * resolution)
    if not 0 < is_pause.sum() <= _SOME * is_pause.len():
        return None
    is_clear = is_pause.cast(pl.Int64).rolling_sum(lines).drop_nulls() == 0
    clear = (spans.rolling_sum(lines).drop_nulls() / passed.rolling_sum(lines).drop_nulls()).filter(is_clear)
    if clear.len() >= _LEAST:
        median = clear.median()
        return median if isinstance(median, float) else None
    kept = int(spans.filter(~is_pause).sum())
    return kept / int(passed.filter(~is_pause).sum()) if kept >= _RESOLUTIONS * resolution else None
