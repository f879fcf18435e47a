"""In which order candidates of a pool are worth their GPU-hours. Pools in, picks out, best first.

After each pick its result is believed to be what is expected ("Kriging believer": Ginsbourger, Le Riche and Carraro,
2010, section 4.1), which makes layouts like it more certain and so less worth a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.advice.acquisition import Belief, believe, improvement
from sweepscope.pipeline.estimate.advice.near_equal import are_alike
from sweepscope.pipeline.estimate.planning.candidates import Pool
from sweepscope.schemas.thresholds import WORTHWHILE_GAIN

UNDECIDED = 0.05
"""Of 4 p (1 - p), which is 1 at even odds: a layout that surely fits, or does not, shows nothing about memory."""


@dataclass(frozen=True)
class Pick:
    """A row of a pool. `gain`: expected throughput above the best known before it; None for the first of a new cell."""

    pool: Pool
    row: int
    gain: float | None

    @property
    def hours(self) -> float:
        """Accelerator-hours that it is expected to take."""
        return float(self.pool.hours[self.row])


def by_gain(pool: Pool) -> Iterator[Pick]:
    """First what is expected to be fastest, then what promises most over the best so far per GPU-hour; each weighed by
    its chance to fit. Ends where nothing promises WORTHWHILE_GAIN."""
    left, chosen = np.ones(pool.rows.height, np.bool_), list[int]()
    best_s = pool.best["step_time_s"] if pool.best is not None else None
    fits = 1.0 - pool.oom
    while left.any():
        belief = _believing(pool, chosen)
        if best_s is None:
            gains, worth = None, fits / belief.centre_s
        else:
            gains = fits * improvement(belief, best_s, pool.least_s)[0]
            worth = gains / pool.hours
        row = _highest(worth, left)
        if gains is not None and gains[row] < WORTHWHILE_GAIN:
            return
        yield Pick(pool, row, None if gains is None else float(gains[row]))
        chosen.append(row)
        left &= ~are_alike(pool.points, belief.centre_s, row)
        left[row] = False
        centre = float(belief.centre_s[row])
        best_s = centre if best_s is None else min(best_s, centre)


def by_doubt(pool: Pool) -> Iterator[Pick]:
    """What shows most about memory per GPU-hour: even odds to fit, unlike what was picked before."""
    left, chosen = np.ones(pool.rows.height, np.bool_), list[int]()
    doubt = 4.0 * pool.oom * (1.0 - pool.oom)
    while left.any():
        distance = ((pool.points[:, None, :] - pool.points[chosen][None, :, :]) ** 2).sum(axis=2)
        news = doubt * (1.0 - np.exp(-0.5 * distance).max(axis=1, initial=0.0))
        row = _highest(news / pool.hours, left)
        if news[row] < UNDECIDED:
            return
        yield Pick(pool, row, None)
        chosen.append(row)
        left[row] = False


def as_listed(pool: Pool) -> Iterator[Pick]:
    """The rows of the pool in their order."""
    for row in range(pool.rows.height):
        yield Pick(pool, row, None)


def _believing(pool: Pool, chosen: list[int]) -> Belief:
    at = np.array(chosen, np.intp)
    seen = Belief(pool.belief.centre_s[at], pool.belief.spread[at])
    return believe(pool.belief, pool.points, seen, pool.points[at], seen.centre_s)


def _highest(worth: NDArray[np.float64], left: NDArray[np.bool_]) -> int:
    return int(np.argmax(np.where(left, worth, -np.inf)))
