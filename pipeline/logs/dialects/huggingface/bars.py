"""Steps of a training of which only the progress bar was kept: nothing was logged, or another stream took the dicts.

tqdm's bar (std.py format_meter) counts optimizer steps, because the Trainer moves it once a step, and shows the whole
seconds since it was drawn first. The rate behind them is smoothed over the last few redraws and is no step's time; the
seconds between two redraws, over the steps between them, is. It is a second off at most, so redraws are taken at least
APART_S from each other: 3 % in a single value, and nothing in the median of many.

Until its first step the bar does not move, and a resumed one jumps to where the run was: the time before the first
redraw with a step means nothing.

The first process of every node draws a bar of its own, and all may end in one log: of one launch, the redraws count
that show more steps than any before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars as pl

from sweepscope.pipeline.text.quantities import each_once

APART_S = 30

_LAUNCH = ["source", "launch"]


def elapsed_s(clock: pl.Expr) -> pl.Expr:
    """Seconds of tqdm's `01:05` or `26:01:05`.

    >>> pl.select(elapsed_s(pl.lit("26:01:05"))).item(), pl.select(elapsed_s(pl.lit("01:05"))).item()
    (93665.0, 65.0)
    """
    return clock.map_batches(lambda text: each_once(text, _elapsed_s), return_dtype=pl.Float64, is_elementwise=True)


def _elapsed_s(clocks: pl.Series) -> pl.Series:
    parts = [
        clocks.str.extract(r"^(?:(\d+):)?(\d+):(\d+)$", group).cast(pl.Float64, strict=False) for group in (1, 2, 3)
    ]
    hours, minutes, seconds = parts
    return hours.fill_null(0) * 3600 + minutes * 60 + seconds


def steps_of(bars: pl.DataFrame) -> pl.DataFrame:
    """Some redraws of each launch as steps, with the mean time of the steps since the one before; the last one always.

    Args:
        bars: redraws in the order printed: `source`, `launch`, `step` (steps done) and `step_time_s` (seconds so far).
    """
    most = pl.col("step").cum_max().shift(fill_value=0).over(_LAUNCH)
    moved = bars.filter(pl.col("step") > most)
    if moved.is_empty():
        return moved
    parts = (_without_quick_redraws(part) for part in moved.partition_by(_LAUNCH, maintain_order=True))
    return pl.concat(parts)


def _without_quick_redraws(bar: pl.DataFrame) -> pl.DataFrame:
    indexes, times = zip(*_apart(bar["step"], bar["step_time_s"]), strict=True)
    return bar[list(indexes)].with_columns(pl.Series("step_time_s", times, dtype=pl.Float64))


def _apart(steps: Iterable[int], seconds: Iterable[float | None]) -> Iterator[tuple[int, float | None]]:
    """Index of each redraw that is kept, and the time of its steps."""
    known = [(index, step, at) for index, (step, at) in enumerate(zip(steps, seconds, strict=True)) if at is not None]
    if not known:
        return
    kept, step, at = known[0]
    yield kept, None
    for index, done, now in known[1:]:
        if now - at >= APART_S and done > step:
            yield index, (now - at) / (done - step)
            step, at, kept = done, now, index
    if known[-1][0] != kept:
        yield known[-1][0], None
