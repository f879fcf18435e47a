"""Attempts of a log of very many steps, from some of them: memory does not hold all at once.

Where one process prints, steps rise but for a few places. What shows a restart, an epoch or a copy are the steps there,
and what a step was the other times that it was logged: these are kept, and of all others those of some steps, the same
each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sweepscope.pipeline.io.spill import SLICE_ROWS

ENOUGH = 1 << 17
"""Rows that show how a training goes."""

_NEAR = 64
"""Rows in front of a place and behind it that are kept."""
_MOST_PLACES = 512
_SPREAD = 2_654_435_761
"""Knuth's multiplicative hash: neighbours go far apart."""
_HASHES = 1 << 32


@dataclass(frozen=True)
class Excerpt:
    """Rows of a log, and their numbers among all of its rows."""

    rows: pl.DataFrame
    numbers: np.ndarray

    def begins(self, numbered: pl.DataFrame) -> np.ndarray | None:
        """Numbers of the rows with which runs begin, but for the first; None where other rows may be of another run.

        Args:
            numbered: `line_no`, `step` and `run` of attempts, as they were found in the excerpt.
        """
        if not numbered.select("line_no", "step").equals(self.rows.select("line_no", "step")):
            return None  # lines were joined or left out, or steps are counted on over epochs
        at = np.flatnonzero(np.diff(numbered["run"].to_numpy()) != 0) + 1
        is_exact = (self.numbers[at - 1] + 1 == self.numbers[at]).all()
        return self.numbers[at] if is_exact else None


def excerpt(rows: pl.DataFrame, lines: Iterable[pl.DataFrame]) -> Excerpt | None:
    """The rows of a log that show its attempts; None where it takes all of them.

    Args:
        rows: `line_no`, `step` and `rank` among others, of one source, in order.
        lines: frames with `line_no` of its launches, ends and headings.
    """
    places = _falls(rows)
    if places is None:
        return None
    marked = pl.concat(frame.select("line_no") for frame in lines)["line_no"].unique()
    inner = marked.filter(marked.is_between(rows["line_no"][0], rows["line_no"][-1]))
    if len(places) + inner.len() > _MOST_PLACES:
        return None
    places += [int(rows["line_no"].search_sorted(line, side="left")) for line in inner]
    if not places:
        return Excerpt(pl.concat([rows[:1], rows[-1:]]), np.array([0, rows.height - 1]))
    is_kept = _of_some_steps(rows)
    for place in (0, *places, rows.height):
        is_kept[max(place - _NEAR, 0) : place + _NEAR] = True
    numbers = np.flatnonzero(is_kept)
    return Excerpt(rows[numbers], numbers)


def _falls(rows: pl.DataFrame) -> list[int] | None:
    """Numbers of the rows with a smaller step than the one before; None of several ranks, or of many such rows.

    None, too, where a step follows itself: its lines are parts of one.
    """
    found: list[int] = []
    step, rank = pl.col("step"), pl.col("rank")
    first = rows["rank"][0]
    for begin in range(0, rows.height, SLICE_ROWS):
        part = rows["step", "rank"][begin : begin + SLICE_ROWS + 1]
        is_one, is_distinct = part.select(
            one=rank.eq_missing(pl.lit(first, rows.schema["rank"])).all(),
            distinct=(step.diff().fill_null(1) != 0).all() & step.is_not_null().all(),
        ).row(0)
        if not (is_one and is_distinct):
            return None
        found += (part.select((step.diff() < 0).arg_true()).to_series() + begin).to_list()
        if len(found) > _MOST_PLACES:
            return None
    return found


def _of_some_steps(rows: pl.DataFrame) -> np.ndarray:
    """Of each row, whether its step is one of those that are looked at, about ENOUGH of all rows."""
    most = _HASHES * min(ENOUGH / rows.height, 1.0)
    parts: Sequence[pl.Series] = [rows["step"][at : at + SLICE_ROWS] for at in range(0, rows.height, SLICE_ROWS)]
    return np.concatenate([(part.to_numpy() * _SPREAD % _HASHES) < most for part in parts])
