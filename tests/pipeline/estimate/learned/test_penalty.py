"""The learned penalty finds patterns, keeps to what it saw, says nothing elsewhere, and is the same every time."""

from __future__ import annotations

import numpy as np
import pytest

from sweepscope.pipeline.estimate.learned.penalty import (
    FACTOR,
    FEATURES,
    GRID,
    LOSS,
    NOISES,
    REACHES,
    Settings,
    choose_settings,
    fit_penalty,
    penalty_features,
    unseen_slowdown,
)
from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.profile import load_profiles
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.reference.clusters import find_cluster
from sweepscope.pipeline.reference.models import LLAMA_2_7B


def sweep(seed: int, size: int = 240) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(feature rows, seconds lost per slot, cells) of a sweep in which pipelines of 64 accelerators stall for half a
    second per slot, whatever there is to compute. A cell is a model on a number of accelerators.
    """
    chance = np.random.default_rng(seed)
    gpus, tp, pp = (chance.integers(low, high, size).astype(float) for low, high in ((3, 8), (0, 4), (0, 4)))
    params, mbs = chance.integers(30, 37, size).astype(float), chance.integers(0, 4, size).astype(float)
    slots = np.log2(2.0 ** chance.integers(3, 8, size) + 2.0**pp - 1)
    step = np.log2(chance.uniform(1, 30, size))
    rows = np.stack([gpus, tp, pp, mbs, np.ones(size), params, slots, step], axis=1)
    lost = np.where((gpus >= 6) & (pp > 0), 0.5, 0.0)
    return rows, lost, (gpus * 100 + params).astype(np.int64)


def slowdown_of(rows: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Measured over estimated step time of runs that lose so many seconds per slot."""
    slowdown: np.ndarray = 1 + lost * 2 ** (rows[:, 6] - rows[:, 7])
    return slowdown


def test_learns_what_is_lost_per_slot_and_predicts_unseen_rows() -> None:
    rows, lost, _ = sweep(1)
    unseen, truth, _ = sweep(2)
    slowdowns = fit_penalty(rows, slowdown_of(rows, lost)).slowdown(unseen)
    wanted = slowdown_of(unseen, truth)
    assert np.median(np.abs(slowdowns[truth > 0] / wanted[truth > 0] - 1)) < 0.15
    assert np.median(slowdowns[truth == 0]) < 1.05


def test_a_row_that_was_measured_is_told_as_it_was() -> None:
    rows, lost, _ = sweep(1, 40)
    sure = Settings(noise=1e-6)
    slowdown = slowdown_of(rows, lost)
    assert fit_penalty(rows, slowdown, settings=sure).slowdown(rows) == pytest.approx(slowdown, rel=1e-3)


def test_far_from_every_run_the_physics_stays() -> None:
    rows, lost, _ = sweep(1)
    far = rows.copy()
    far[:, 1] += 40
    assert fit_penalty(rows, slowdown_of(rows, lost)).slowdown(far) == pytest.approx(np.ones(len(rows)), abs=1e-6)
    assert fit_penalty(rows, np.ones(len(rows))).slowdown(rows).tolist() == [1.0] * len(rows)


def test_is_the_same_every_time_and_for_any_number_of_rows() -> None:
    rows, lost, _ = sweep(1)
    penalty = fit_penalty(rows, slowdown_of(rows, lost))
    many = np.tile(rows, (9, 1))  # more than one block
    assert fit_penalty(rows, slowdown_of(rows, lost)).slowdown(rows).tolist() == penalty.slowdown(rows).tolist()
    assert penalty.slowdown(many) == pytest.approx(np.tile(penalty.slowdown(rows), 9))
    assert penalty.slowdown(rows[:0]).tolist() == []


@pytest.mark.slow
def test_cells_are_told_by_the_others_alone() -> None:
    rows, lost, cells = sweep(1, 160)
    slowdown = slowdown_of(rows, lost) * np.exp(np.random.default_rng(0).normal(0, 0.05, 160))
    slowdowns, chosen = unseen_slowdown(rows, slowdown, cells)
    for place, cell in enumerate(np.unique(cells)[:4]):
        others = cells != cell
        # The short cut through one inverse is the fit without the cell, with settings that the cell had no say in.
        assert chosen[place] == choose_settings(rows[others], slowdown[others], cells[others])
        direct = fit_penalty(rows[others], slowdown[others], settings=chosen[place]).slowdown(rows[~others])
        assert slowdowns[~others] == pytest.approx(direct)


@pytest.mark.slow
def test_a_cells_own_runs_do_not_choose_its_settings() -> None:
    rows, lost, cells = sweep(3, 120)
    slowdown = slowdown_of(rows, lost)
    spoilt = slowdown.copy()
    first = cells == np.unique(cells)[0]
    spoilt[first] = 50.0
    assert unseen_slowdown(rows, slowdown, cells)[1][0] == unseen_slowdown(rows, spoilt, cells)[1][0]
    assert unseen_slowdown(rows, slowdown, cells)[0][first] == pytest.approx(
        unseen_slowdown(rows, spoilt, cells)[0][first]
    )


@pytest.mark.slow
def test_runs_decide_whether_seconds_or_a_factor_carry_over() -> None:
    rows, lost, cells = sweep(1, 200)
    factor = np.where(lost > 0, 3.0, 1.0)
    assert choose_settings(rows, slowdown_of(rows, lost), cells).kind == LOSS
    assert choose_settings(rows, factor, cells).kind == FACTOR
    assert len(GRID) == 2 * len(REACHES) * len(NOISES)


def test_features_are_one_row_per_layout_in_the_named_order() -> None:
    card = find_cluster("H100 SXM")
    assert card is not None
    asked = Question(LLAMA_2_7B, card, load_profiles()["default"], 4096)
    at = Layouts.of(dp=np.array([2.0, 4.0]), tp=np.array([8.0, 1.0]), pp=np.array([1.0, 5.0]), gas=12, mbs=2)
    predicted = estimate(asked, at)
    rows = penalty_features(asked, at, predicted)
    assert rows.shape == (2, len(FEATURES))
    named = dict(zip(FEATURES, rows.T, strict=True))
    assert named["log2_tp"].tolist() == [3, 0]
    assert named["log2_gpus"] == pytest.approx(np.log2([16, 20]))
    assert named["log2_slots"] == pytest.approx(np.log2([12, 16]))
    assert named["log2_step_s"] == pytest.approx(np.log2(predicted.step_time_s))
