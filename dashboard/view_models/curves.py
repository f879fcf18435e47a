"""What a run's step curve shows: the measures there are, where its axis ends, and what lies beyond it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from sweepscope.dashboard.format import numbers

# A first step (compilation, allocator warm-up) can take 20 steady ones; drawn to scale it would flatten the rest.
BEYOND_MEDIANS = 2.5
# Warm-up steps are no result: they leave the axis as soon as they would stretch it.
WARMUP_BEYOND_MEDIANS = 1.2
# A browser computes with the squares of coordinates, which overflow; and no figure of a training is that large.
LARGEST_DRAWN = 1e100


@dataclass(frozen=True)
class Measure:
    """One curve: its column of `queries.run.steps`, words, and whether single values may lie beyond the axis."""

    key: str
    label: str
    title: str
    column: str
    text: Callable[[float], str]
    factor: float = 1.0
    has_median: bool = False
    clips: bool = False


MEASURES: dict[str, Measure] = {
    measure.key: measure
    for measure in (
        Measure("time", "Step time", "Step time, seconds", "step_time_s", numbers.seconds, has_median=True, clips=True),
        Measure("throughput", "Tokens/s/GPU", "Tokens/s/GPU", "tokens_per_s_per_gpu", numbers.number, has_median=True),
        Measure("loss", "Loss", "Training loss, nats", "loss", numbers.significant),
        Measure("memory", "Memory", "Reserved memory, GiB", "mem_reserved_bytes", numbers.gib, factor=1 / numbers.GIB),
    )
}


def offered(points: pl.DataFrame) -> list[Measure]:
    """Measures that at least two logged steps have."""
    return [measure for measure in MEASURES.values() if points[measure.column].count() >= 2]


@dataclass(frozen=True)
class Beyond:
    """A point that lies off the axis, or nowhere: NaN, an infinite value."""

    step: int
    value: float


@dataclass(frozen=True)
class Curve:
    """What to draw: points within the axis (in shown units), those beyond it, the axis and the warm-up's last step."""

    measure: Measure
    points: pl.DataFrame
    beyond: tuple[Beyond, ...]
    low: float
    high: float
    warmup_until: float | None
    median: float | None
    steps_per_point: int


def curve(points: pl.DataFrame, measure: Measure, *, warmup_steps: int, median: float | None) -> Curve:
    """The curve of one measure.

    Args:
        points: rows of `queries.run.steps`.
        measure: one of `offered(points)`.
        warmup_steps: leading logged steps that the run's medians leave out.
        median: the run's steady median in base units, drawn as a line; None draws none.
    """
    known = points.filter(pl.col(measure.column).is_not_null()).with_columns(
        value=pl.col(measure.column) * measure.factor, worst=_worst_per_point(measure) * measure.factor
    )
    is_steady = pl.col("place") > warmup_steps
    drawable = known.filter(pl.col("value").abs() <= LARGEST_DRAWN)  # which NaN is not
    steady = drawable.filter(is_steady)
    middle = float((steady if steady.height else drawable).select(pl.col("value").median()).item() or 0.0)
    limit = _limit(steady, middle, is_steady) if measure.clips else pl.lit(LARGEST_DRAWN)
    inside = drawable.filter(pl.col("value") <= limit)
    low, high = _axis((inside if inside.height else drawable)["value"], middle)
    is_over = (pl.col("worst") > limit) | ~(pl.col("worst").abs() <= LARGEST_DRAWN)
    over = known.filter(is_over)
    has_line = measure.has_median and abs(median or 0.0) <= LARGEST_DRAWN
    step = "slowest_step" if measure.clips else "step"
    return Curve(
        measure=measure,
        points=inside.select("step", "value", "steps_in_row"),
        beyond=tuple(Beyond(*row) for row in over.select(step, "worst").iter_rows()),
        low=low,
        high=high,
        warmup_until=_warmup_until(points, warmup_steps),
        median=None if median is None or not has_line else median * measure.factor,
        steps_per_point=int(points["steps_in_row"].max() or 1),  # type: ignore[arg-type] # a count
    )


def _worst_per_point(measure: Measure) -> pl.Expr:
    # A bucket's median hides its slowest step; that one still has to be named.
    return pl.col("step_time_max_s") if measure.clips else pl.col(measure.column)


def _limit(steady: pl.DataFrame, middle: float, is_steady: pl.Expr) -> pl.Expr:
    """Largest value that each point may have and still be drawn."""
    highest = middle * BEYOND_MEDIANS
    top = steady.filter(pl.col("value") <= highest)["value"].max()
    warmup = middle * WARMUP_BEYOND_MEDIANS if top is None else max(float(top), middle * WARMUP_BEYOND_MEDIANS)  # type: ignore[arg-type] # a number
    return pl.when(is_steady).then(highest).otherwise(warmup)


def _axis(drawn: pl.Series, middle: float) -> tuple[float, float]:
    """Ends of the axis: all that is drawn, and never so close that noise of a few per cent looks like a cliff."""
    low, high = float(drawn.min() or 0.0), float(drawn.max() or 0.0)  # type: ignore[arg-type] # numbers
    room = max((high - low) * 0.15, abs(middle) * 0.03, 1e-9)
    return (max(0.0, low - room) if low >= 0 else low - room), high + room


def _warmup_until(points: pl.DataFrame, warmup_steps: int) -> float | None:
    """Halfway between the last warm-up step and the next one; None when no step was left out."""
    inside = points.filter(pl.col("place") <= warmup_steps)
    after = points.filter(pl.col("place") > warmup_steps)
    if inside.is_empty():
        return None
    last = float(inside["step"].max())  # type: ignore[arg-type] # a number
    return last if after.is_empty() else (last + float(after["step"].min())) / 2  # type: ignore[arg-type] # a number


def beyond_in_words(shown: Curve) -> str:
    """What lies off the axis, or "" when nothing does.

    One or two steps are named one by one; more are counted, with the slowest of them, or the first of another measure.
    A point that covers many steps names only its slowest.
    """
    points = shown.beyond
    if not points:
        return ""
    if not shown.measure.clips:
        return _off_axis(shown)
    slowest = _named(shown, max(points, key=lambda point: point.value))
    if shown.steps_per_point > 1:
        return f"slowest {slowest}"
    if len(points) <= 2:
        return ", ".join(_named(shown, point) for point in points)
    return f"{numbers.count(len(points), 'step')} above the axis, slowest {slowest}"


def _off_axis(shown: Curve) -> str:
    if len(shown.beyond) <= 2:
        return ", ".join(_named(shown, point) for point in shown.beyond)
    return f"{numbers.count(len(shown.beyond), 'step')} off the axis, first {_named(shown, shown.beyond[0])}"


def _named(shown: Curve, point: Beyond) -> str:
    return f"step {numbers.number(point.step)}: {shown.measure.text(point.value / shown.measure.factor)}"
