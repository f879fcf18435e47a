"""The learned penalty finds patterns, keeps to what it saw, and is the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.estimate.cluster import find_cluster
from pipeline.estimate.estimate import estimate
from pipeline.estimate.layouts import Layouts
from pipeline.estimate.models import LLAMA_2_7B
from pipeline.estimate.penalty import FEATURES, fit_penalty, penalty_features
from pipeline.estimate.profile import load_profiles
from pipeline.estimate.question import Question


def patterned(seed: int, size: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Rows in which one feature makes runs five times slower, unless a second one is small."""
    chance = np.random.default_rng(seed)
    rows = chance.random((size, 4))
    slowdown = np.where((rows[:, 0] > 0.5) & (rows[:, 1] > 0.3), 5.0, 1.0) * np.exp(chance.normal(0, 0.05, size))
    return rows, slowdown


def test_learns_a_pattern_and_predicts_unseen_rows() -> None:
    rows, slowdown = patterned(1)
    unseen, truth = patterned(2)
    predicted = fit_penalty(rows, slowdown, trees=80).slowdown(unseen)
    assert np.median(np.abs(predicted / truth - 1)) < 0.08


def test_is_the_same_every_time() -> None:
    rows, slowdown = patterned(1, 120)
    one, two = (fit_penalty(rows, slowdown, trees=10).slowdown(rows) for _ in range(2))
    assert one.tolist() == two.tolist()


def test_without_a_pattern_there_is_no_penalty() -> None:
    rows, _ = patterned(1, 120)
    assert fit_penalty(rows, np.ones(120), trees=10).slowdown(rows) == pytest.approx(np.ones(120))


def test_an_outlier_moves_its_neighbours_little() -> None:
    rows, slowdown = patterned(1)
    spoilt = slowdown.copy()
    spoilt[0] *= 1e4
    clean, moved = (fit_penalty(rows, values, trees=60).slowdown(rows[1:]) for values in (slowdown, spoilt))
    assert np.median(np.abs(moved / clean - 1)) < 0.05


def test_features_are_one_row_per_layout_in_the_named_order() -> None:
    card = find_cluster("H100 SXM")
    assert card is not None
    asked = Question(LLAMA_2_7B, card, load_profiles()["default"], 4096)
    at = Layouts.of(dp=np.array([2.0, 4.0]), tp=np.array([8.0, 1.0]), pp=np.array([1.0, 4.0]), gas=8)
    rows = penalty_features(asked, at, estimate(asked, at))
    assert rows.shape == (2, len(FEATURES))
    named = dict(zip(FEATURES, rows.T, strict=True))
    assert named["log2_tp"].tolist() == [3, 0]
    assert named["pp_over_nodes"].tolist() == [0, 1]
    assert named["micro_batches_per_stage"].tolist() == [3, 1]
    shares = sum(named[name] for name in FEATURES if name.startswith("share_"))
    assert (shares <= 1 + 1e-9).all()
