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


@given(repeats=st.lists(st.integers(1, 4), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_repeats_are_worth_what_each_of_them_is_alone(repeats: list[int], seed: int) -> None:
    draw = np.random.default_rng(seed)
    places = np.repeat(np.arange(len(repeats)), repeats)
    seen, spread = draw.normal(size=(len(repeats), 2))[places], draw.uniform(0.1, 0.5, len(repeats))[places]
    expected, took = np.full(len(places), 2.0), draw.uniform(1.0, 3.0, len(places))
    asked, prior = draw.normal(size=(3, 2)), belief(1.5, 0.3, 3)

    def alike(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * ((rows[:, None] - others[None]) ** 2).sum(axis=2))

    # Rasmussen and Williams, equations 2.23 and 2.24, with a row for each run
    between = np.outer(spread, spread) * alike(seen, seen) + SCATTER**2 * np.eye(len(places))
    across = np.outer(prior.spread, spread) * alike(asked, seen)
    moved = across @ np.linalg.solve(between, np.log(took / expected))
    left = prior.spread**2 - (across * np.linalg.solve(between, across.T).T).sum(axis=1)
    after = believe(prior, asked, Belief(expected, spread), seen, took)
    assert after.centre_s == pytest.approx(prior.centre_s * np.exp(moved))
    assert after.spread == pytest.approx(np.sqrt(left))


def test_thousands_of_repeats_are_few_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    solve = np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda a, b: sizes.append(len(a)) or solve(a, b))
    prior = belief(1.0, 0.3)
    after = believe(prior, np.zeros((1, 2)), belief(1.0, 0.3, 20_000), np.zeros((20_000, 2)), np.full(20_000, 2.0))
    assert sizes == [1]
    assert after.centre_s[0] == pytest.approx(2.0, rel=1e-3)


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
