"""Beliefs move towards what neighbours took, and expected improvement is the mean that it says it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.estimate.advice.acquisition import SCATTER, Belief, believe, improvement


def belief(centre: float, spread: float, size: int = 1) -> Belief:
    return Belief(np.full(size, centre), np.full(size, spread))


def test_without_measurements_nothing_moves() -> None:
    prior = belief(2.0, 0.3, 2)
    assert believe(prior, np.zeros((2, 3)), belief(1.0, 0.1, 0), np.zeros((0, 3)), np.zeros(0)) is prior


def test_one_neighbour_moves_by_its_reliability() -> None:
    # Same place, residual ln 2: the posterior mean is k / (k + noise) of it, k = spread squared.
    prior = belief(1.0, 0.3)
    after = believe(prior, np.zeros((1, 2)), prior, np.zeros((1, 2)), np.array([2.0]))
    weight = 0.3**2 / (0.3**2 + SCATTER**2)
    assert after.centre_s[0] == pytest.approx(2.0**weight)
    assert after.spread[0] == pytest.approx(0.3 * np.sqrt(1 - weight))


def test_a_far_layout_is_not_moved() -> None:
    prior = belief(1.0, 0.3)
    after = believe(prior, np.full((1, 2), 20.0), prior, np.zeros((1, 2)), np.array([2.0]))
    assert (after.centre_s[0], after.spread[0]) == pytest.approx((1.0, 0.3))


@pytest.mark.slow
@given(centre=st.floats(0.5, 2.0), spread=st.floats(0.05, 0.8), best=st.floats(0.5, 2.0), least=st.floats(0.1, 3.0))
def test_improvement_is_the_mean_of_what_is_drawn(centre: float, spread: float, best: float, least: float) -> None:
    quantiles = (np.arange(20_000) + 0.5) / 20_000
    drawn = centre * np.exp(spread * _normal_quantiles(quantiles))
    gain, chance = improvement(belief(centre, spread), best, np.array([least]))
    expected = np.maximum(best / np.maximum(drawn, least) - 1.0, 0.0).mean()
    assert gain[0] == pytest.approx(expected, abs=2e-3 * max(1.0, expected))
    assert chance[0] == pytest.approx((drawn < best).mean() if least < best else 0.0, abs=1e-3)


def _normal_quantiles(quantiles: np.ndarray) -> np.ndarray:
    from statistics import NormalDist

    return np.array([NormalDist().inv_cdf(value) for value in quantiles])
