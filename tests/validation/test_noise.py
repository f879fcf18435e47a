"""What noise leaves of a ranking, on cases whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.validation.noise import apart, ceiling


def test_runs_of_one_layout_are_compared_pair_by_pair() -> None:
    found = apart(["a", "b", "a", "a", "c"], np.array([1.0, 5.0, 2.0, 4.0, 7.0]))
    assert sorted(found) == pytest.approx(np.log([2.0, 2.0, 4.0]))


def test_without_noise_a_perfect_estimate_ranks_perfectly() -> None:
    times = np.repeat(np.arange(1.0, 9.0), 2)
    layouts = np.repeat(np.arange(8), 2).tolist()
    found = ceiling(["cell"] * 16, layouts, ["8"] * 16, times)
    assert (found.cells, found.pairs, found.apart) == (1, 8, 0.0)
    assert found.spearman == pytest.approx(1.0)
    assert found.regret == 0.0


def test_noise_costs_more_where_layouts_lie_closer() -> None:
    noise = np.tile([1.0, 1.2], 10)
    layouts = np.repeat(np.arange(10), 2).tolist()
    near, far = (
        ceiling(["cell"] * 20, layouts, ["8"] * 20, noise * np.repeat(spread ** np.arange(10), 2))
        for spread in (1.02, 1.5)
    )
    assert near.pairs == far.pairs == 10
    assert (near.apart, far.apart) == pytest.approx((0.2, 0.2))
    assert 0 < near.spearman < far.spearman < 1
    assert near.regret > 0


def test_noise_of_one_size_of_cluster_is_its_own_where_it_has_enough_pairs() -> None:
    still, noisy = np.repeat(np.arange(1.0, 9.0), 2), np.repeat(np.arange(1.0, 9.0), 2) * np.tile([1.0, 3.0], 8)
    layouts = [(size, layout) for size in "ab" for layout in np.repeat(np.arange(8), 2).tolist()]
    sizes = ["a"] * 16 + ["b"] * 16
    found = ceiling(sizes, layouts, sizes, np.concatenate([still, noisy]))
    alone = ceiling(["b"] * 16, layouts[16:], ["b"] * 16, noisy)
    assert found.spearman == pytest.approx((1.0 + alone.spearman) / 2, abs=0.05)


def test_a_table_without_repeats_has_no_ceiling() -> None:
    found = ceiling(["cell"] * 8, list(range(8)), ["8"] * 8, np.arange(1.0, 9.0))
    assert found.cells == found.pairs == 0
    assert np.isnan(found.spearman)
