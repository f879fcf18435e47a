"""Figures of each run from its steps, slice by slice: what they take of memory does not grow with a run's length.

A figure is computed of the rows that a run has in each slice, and then of these parts. First, last, least and largest
values, counts and sums are the same that way. Medians and quantiles are those of values that are drawn evenly where a
run has very many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from sweepscope.pipeline.io.spill import SLICE_ROWS, release, stretches
from sweepscope.pipeline.text.arrow_buffers import owned

DRAWN_STEPS = 100_000
"""Of the values of at most so many steps a median is exact. As many, drawn from a longer run, place it within a
fifth of a percent of the ranks."""

ROW, ROWS = "_row", "_rows"
"""Columns that expressions of parts find beside those of the steps: number of a row in its run, from 0, and of all."""

_EVERY = "_every"
_BEFORE = "_before"


@dataclass(frozen=True)
class Figure:
    """How one figure is computed.

    Attributes:
        part: of the rows that a run has in a slice.
        whole: of the column of these parts.
    """

    part: pl.Expr
    whole: Callable[[pl.Expr], pl.Expr]


def first(values: pl.Expr) -> Figure:
    """The value of the first step, NULL or not."""
    return Figure(values.first(), lambda parts: parts.first())


def last(values: pl.Expr) -> Figure:
    """The value of the last step, NULL or not."""
    return Figure(values.last(), lambda parts: parts.last())


def first_known(values: pl.Expr) -> Figure:
    """The first value that is not NULL."""
    return Figure(values.drop_nulls().first(), lambda parts: parts.drop_nulls().first())


def last_known(values: pl.Expr) -> Figure:
    """The last value that is not NULL."""
    return Figure(values.drop_nulls().last(), lambda parts: parts.drop_nulls().last())


def least(values: pl.Expr) -> Figure:
    """The least value."""
    return Figure(values.min(), lambda parts: parts.min())


def most(values: pl.Expr) -> Figure:
    """The largest value."""
    return Figure(values.max(), lambda parts: parts.max())


def total(values: pl.Expr) -> Figure:
    """The sum of the values."""
    return Figure(values.sum(), lambda parts: parts.sum())


def last_of(values: pl.Expr, number: int, figure: Callable[[pl.Expr], pl.Expr]) -> Figure:
    """A figure of the last so many values that are not NULL."""
    return Figure(values.drop_nulls().tail(number), lambda parts: figure(parts.explode().drop_nulls().tail(number)))


def drawn(values: pl.Expr, figure: Callable[[pl.Expr], pl.Expr]) -> Figure:
    """A median or quantile of the values that are not NULL, of very many of a sample."""
    known = values.drop_nulls()
    is_drawn = (pl.int_range(known.len()) % pl.col(_EVERY).first()) == 0
    return Figure(known.filter(is_drawn), lambda parts: figure(parts.explode().drop_nulls()))


def before(name: str) -> pl.Expr:
    """The value that a column has in the step before, NULL in the first of a run."""
    return pl.col(f"{name}{_BEFORE}")


def of_runs(steps: pl.DataFrame, **figures: Figure) -> pl.DataFrame:
    """A row per run, in their order: `run`, and the figures under their names.

    Args:
        steps: rows with the number `run`, by which they are sorted (`steady_state.in_runs`).
        figures: how each is computed.
    """
    wanted = dict.fromkeys(name for figure in figures.values() for name in figure.part.meta.root_names())
    shifted = [name.removesuffix(_BEFORE) for name in wanted if name.endswith(_BEFORE)]
    columns = dict.fromkeys(["run", *shifted, *(name for name in wanted if name in steps.columns)])
    read = steps[list(columns)]
    lengths = stretches(steps["run"])["len"].to_numpy().astype(np.int64)
    parts = []
    for begin in range(0, max(steps.height, 1), SLICE_ROWS):
        rows = _slice(read, begin, lengths, shifted)
        part = rows.group_by("run", maintain_order=True).agg(f.part.alias(name) for name, f in figures.items())
        parts.append(owned(part))  # lists that were filtered keep all values of the slice
        release()
    of_run = pl.concat(parts).group_by("run", maintain_order=True)
    return of_run.agg(figure.whole(pl.col(name)).alias(name) for name, figure in figures.items())


def _slice(steps: pl.DataFrame, begin: int, lengths: np.ndarray, shifted: list[str]) -> pl.DataFrame:
    """Some rows with their numbers in the run, and with the values before them.

    Args:
        steps: all of them.
        begin: the first of the rows.
        lengths: of all runs, in order.
        shifted: columns whose values before are wanted.
    """
    rows = steps[begin : begin + SLICE_ROWS]
    stops = np.cumsum(lengths)
    runs = np.searchsorted(stops, np.arange(begin, begin + rows.height), side="right")
    number = np.arange(begin, begin + rows.height) - (stops - lengths)[runs]
    known = {ROW: number, ROWS: lengths[runs], _EVERY: _every(lengths)[runs]}
    values = []
    for name in shifted:
        ahead = steps[name][max(begin - 1, 0) : begin + rows.height - 1]
        moved = ahead if begin else pl.concat([steps[name].clear(1), ahead])[: rows.height]
        values.append(moved.alias(f"{name}{_BEFORE}"))
    is_first = pl.col(ROW) == 0
    return rows.with_columns(*(pl.Series(name, column) for name, column in known.items()), *values).with_columns(
        pl.when(~is_first).then(value.name).alias(value.name) for value in values
    )


def _every(lengths: np.ndarray) -> np.ndarray:
    """Of how many values of each run one is drawn.

    A prime, but for 2 and 5: what happens every ten or hundred steps is drawn as often as it happens.
    """
    wanted = np.maximum(-(-lengths // DRAWN_STEPS), 1)
    return np.array([_prime_from(int(every)) for every in wanted.tolist()], dtype=np.int64)


def _prime_from(number: int) -> int:
    if number == 1:
        return 1
    candidate = number
    while candidate in (2, 5) or any(candidate % factor == 0 for factor in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate
