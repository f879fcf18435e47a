"""What measurements of similar layouts imply for a layout, and what testing it is expected to gain. Arrays in and out.

Step times are log-normal around what is expected of them; what one run took beyond that moves the layouts near it, the
less the more they differ (a Gaussian process on the residuals; Rasmussen and Williams, 2006, equations 2.23 and 2.24).
Expected improvement is that of Jones, Schonlau and Welch (1998), of a log-normal variable.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, sqrt

import numpy as np

from sweepscope.pipeline.estimate.physics.layouts import Array

NEAR = 1.0
"""Distance over which residuals are alike: one doubling of one degree, or one ZeRO stage."""
SCATTER = 0.3
"""Scatter (log) of a layout's residual that similar layouts do not share. With less, single odd runs
mislead: with 0.03 proposals needed twice as many tests on the playbook's cells; `make validate` prints how many."""


@dataclass(frozen=True)
class Belief:
    """Log-normal beliefs on step times: `centre_s` and `spread` (standard deviation of the logarithm)."""

    centre_s: Array
    spread: Array


def _alike(rows: Array, others: Array) -> Array:
    distance = ((rows[:, None, :] - others[None, :, :]) ** 2).sum(axis=2)
    alike: Array = np.exp(-0.5 * distance / NEAR**2)
    return alike


def believe(prior: Belief, features: Array, measured_prior: Belief, measured: Array, measured_s: Array) -> Belief:
    """Beliefs on layouts (rows of `features`) after the step times `measured_s` of the layouts `measured` (rows alike).

    `prior` and `measured_prior` are what was expected of both before. Without measurements the prior stays. Repeats of
    a layout are one measurement of their mean with that much less scatter, which comes to the same: a cell may have
    thousands of runs, and equations cost their number cubed.
    """
    if not len(measured_s):
        return prior
    points, place, repeats = np.unique(
        np.column_stack([measured, measured_prior.spread]), axis=0, return_inverse=True, return_counts=True
    )
    residual = np.bincount(place, np.log(measured_s / measured_prior.centre_s)) / repeats
    measured, seen_spread = points[:, :-1], points[:, -1]
    between = seen_spread[:, None] * _alike(measured, measured) * seen_spread[None, :]
    across = prior.spread[:, None] * _alike(features, measured) * seen_spread[None, :]
    solved = np.linalg.solve(between + np.diag(SCATTER**2 / repeats), np.column_stack([residual, across.T]))
    moved, explained = across @ solved[:, 0], (across * solved[:, 1:].T).sum(axis=1)
    spread = np.sqrt(np.maximum(prior.spread**2 - explained, 0.0))
    return Belief(prior.centre_s * np.exp(moved), spread)


_normal = np.vectorize(lambda z: 0.5 * (1.0 + erf(z / sqrt(2.0))), otypes=[np.float64])


def _above(mu: Array, s: Array, floor: Array | float) -> Array:
    """E[(e^u - floor)+] for u ~ N(mu, s)."""
    z = (mu - np.log(floor)) / s
    value: Array = np.exp(mu + 0.5 * s**2) * _normal(z + s) - floor * _normal(z)
    return np.maximum(value, 0.0)


def improvement(belief: Belief, best_s: float, least_s: Array) -> tuple[Array, Array]:
    """(expected gain, chance): mean of best / time - 1 where that is positive, a share of throughput; and how likely.

    Nothing is faster than `least_s`, what physics allows: with u = log(best / time) and G = best / least, the gain is
    E[(e^u - 1)+] - E[(e^u - G)+], and none where G <= 1.
    """
    mu, s = np.log(best_s / belief.centre_s), np.maximum(belief.spread, 1e-9)
    most = np.maximum(best_s / least_s, 1.0)
    gain: Array = np.maximum(_above(mu, s, 1.0) - _above(mu, s, most), 0.0)
    return gain, np.where(most > 1.0, _normal(mu / s), 0.0)
