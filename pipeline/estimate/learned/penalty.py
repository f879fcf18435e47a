"""What an implementation costs on top of the physics, learned from measured runs by pattern.

Runs of a real sweep can be many times slower than the hardware allows, and not at random. In the playbook's sweep what
is lost is a time per micro-batch that hardly depends on how much there is to compute (half a second for each pipeline
boundary that stalls), so that is what is learned: a Gaussian process over the layout with an exponential kernel
(Rasmussen and Williams, 2006, equations 2.25 and 4.18), of prior mean zero. Far from what was measured it adds nothing
to the physics. Whether a loss or a factor fits a sweep better is chosen on its runs (`Settings`).

Always shown apart from the physics, and never carried to another framework: it knows the code that made its rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.estimate import Estimate
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts
from sweepscope.pipeline.estimate.physics.question import Question

FEATURES: Final = (
    *("log2_gpus", "log2_tp", "log2_pp", "log2_mbs", "zero_stage", "log2_params"),
    *("log2_slots", "log2_step_s"),
)
"""Columns of a feature row. Layouts are alike by the first six; slots are the turns of a pipeline, gas + pp - 1."""

_ALIKE: Final = 6
LOSS, FACTOR = "loss", "factor"
REACHES: Final = (
    (0.7, 0.7, 0.7, 6.0, 0.5, 15.0),
    (1.0, 1.0, 1.0, 6.0, 0.5, 9.0),
    (1.0, 1.5, 1.5, 4.0, 0.7, 9.0),
    (2.0, 2.0, 2.0, 4.0, 1.0, 6.0),
)
"""Distances, in doublings (or ZeRO stages), over which runs stop being alike, by feature."""
NOISES: Final = (0.1, 0.3)
MOST_POINTS = 3_000
"""Rows that a penalty is learned on at most, drawn evenly: its cost grows with their third power."""
_BLOCK = 1_000


@dataclass(frozen=True)
class Settings:
    """How alike runs are: `reach` by feature, `noise` (variance over the process') of single runs, and
    whether seconds per slot (LOSS) or a factor (FACTOR) carry over."""

    reach: tuple[float, ...] = REACHES[0]
    noise: float = NOISES[0]
    kind: str = LOSS


GRID: Final = tuple(Settings(*choice) for choice in product(REACHES, NOISES, (LOSS, FACTOR)))
FACTORS: Final = tuple(settings for settings in GRID if settings.kind == FACTOR)
"""For what is no loss of time and may lie on either side of the estimate, as memory."""


def penalty_features(asked: Question, at: Layouts, predicted: Estimate) -> Array:
    """One row per layout, one column per entry of FEATURES."""
    total = predicted.step_time_s
    columns = (
        np.log2(at.num_gpus),
        np.log2(at.tp),
        np.log2(at.pp),
        np.log2(at.mbs),
        at.zero_stage,
        np.log2(float(asked.shape.params)),
        np.log2(at.gas + at.pp - 1.0),
        np.log2(total),
    )
    return np.stack([np.broadcast_to(column, total.shape).astype(np.float64) for column in columns], axis=1)


def _kernel(rows: Array, others: Array, reach: tuple[float, ...]) -> Array:
    """exp(-sum of |differences| / reach) of the rows' first features."""
    distance = np.zeros((len(rows), len(others)))
    for index, scale in enumerate(reach):
        distance += np.abs(rows[:, None, index] - others[None, :, index]) / scale
    kernel: Array = np.exp(-distance)
    return kernel


def _target(rows: Array, slowdown: Array, kind: str) -> Array:
    """What is learned. The root of the seconds lost per slot: losses are none or large; the root tames the large."""
    if kind == FACTOR:
        return np.log(slowdown)
    lost = np.maximum(slowdown - 1.0, 0.0) * 2.0 ** (rows[:, 7] - rows[:, 6])
    return np.sqrt(lost)


def _slowdown(rows: Array, learned: Array, kind: str) -> Array:
    """The inverse of `_target`."""
    if kind == FACTOR:
        return np.maximum(np.exp(learned), 0.5)
    slowdown: Array = 1.0 + np.maximum(learned, 0.0) ** 2 * 2.0 ** (rows[:, 6] - rows[:, 7])
    return slowdown


@dataclass(frozen=True)
class Penalty:
    """A fitted process: layouts that were measured, and the weight of each."""

    settings: Settings
    points: Array
    weights: Array

    def slowdown(self, rows: Array) -> Array:
        """Measured over estimated step time that such layouts had: at least 1 for a loss, 0.5 for a factor."""
        # Many rows are alike by the features that the kernel compares: each kind is compared once.
        kinds, kind_of = np.unique(rows[:, :_ALIKE], axis=0, return_inverse=True)
        learned = np.zeros(len(kinds))
        for start in range(0, len(kinds), _BLOCK):
            block = slice(start, start + _BLOCK)
            learned[block] = _kernel(kinds[block], self.points, self.settings.reach) @ self.weights
        return _slowdown(rows, learned[kind_of.ravel()], self.settings.kind)


def _inverse(rows: Array, settings: Settings) -> Array:
    noisy = _kernel(rows, rows, settings.reach) + settings.noise * np.eye(len(rows))
    return np.asarray(np.linalg.inv(noisy), np.float64)


def _left_out(inverse: Array, target: Array, outside: NDArray[np.intp]) -> Array:
    """Predictions of the rows `outside` from the others without a new solve (Rasmussen and Williams, section 5.4.2)."""
    solved = inverse[outside] @ target
    missed: Array = target[outside] - np.linalg.solve(inverse[np.ix_(outside, outside)], solved)
    return missed


def _score(slowdown: Array, predicted: Array) -> float:
    """Mean absolute logarithm of predicted over measured step time."""
    return float(np.mean(np.abs(np.log(predicted / slowdown))))


def unseen_slowdown(
    rows: Array, slowdown: Array, cells: NDArray[np.int64], grid: tuple[Settings, ...] = GRID
) -> tuple[Array, list[Settings]]:
    """(slowdown of each row predicted from all other cells, the settings that each cell was predicted with).

    Nested: a cell's settings are those of `grid` that predict the other cells best, each of them without its own runs
    and without the left-out cell's.
    """
    groups = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]
    best = np.full(len(groups), np.inf)
    found, chosen = np.ones(len(rows)), [grid[0]] * len(groups)
    for settings in grid:
        inverse, target = _inverse(rows, settings), _target(rows, slowdown, settings.kind)
        inner = np.full((len(groups), len(groups)), np.nan)
        for cell, left in enumerate(groups):
            for other in range(cell):
                both = np.concatenate([left, groups[other]])
                predicted = _slowdown(rows[both], _left_out(inverse, target, both), settings.kind)
                cut = len(left)
                inner[other, cell] = _score(slowdown[left], predicted[:cut]) * cut
                inner[cell, other] = _score(slowdown[groups[other]], predicted[cut:]) * len(groups[other])
        scores = np.nansum(inner, axis=1)
        for index, left in enumerate(groups):
            if scores[index] < best[index]:
                best[index], chosen[index] = scores[index], settings
                found[left] = _slowdown(rows[left], _left_out(inverse, target, left), settings.kind)
    return found, chosen


def choose_settings(
    rows: Array, slowdown: Array, cells: NDArray[np.int64], grid: tuple[Settings, ...] = GRID
) -> Settings:
    """The settings of `grid` that predict unseen cells best."""
    groups = [np.flatnonzero(cells == cell) for cell in np.unique(cells)]

    def score(settings: Settings) -> float:
        inverse, target = _inverse(rows, settings), _target(rows, slowdown, settings.kind)
        predicted = np.ones(len(rows))
        for left in groups:
            predicted[left] = _slowdown(rows[left], _left_out(inverse, target, left), settings.kind)
        return _score(slowdown, predicted)

    return min(grid, key=score)


def fit_penalty(
    rows: Array,
    slowdown: Array,
    *,
    cells: NDArray[np.int64] | None = None,
    settings: Settings | None = None,
    grid: tuple[Settings, ...] = GRID,
) -> Penalty:
    """Learn `slowdown` (measured over estimated) from feature rows.

    `settings` are chosen from `grid` on `cells` (the cell of each row) where none are
    given.
    """
    if len(rows) > MOST_POINTS:
        drawn = np.linspace(0, len(rows) - 1, MOST_POINTS).astype(np.intp)
        rows, slowdown, cells = rows[drawn], slowdown[drawn], None if cells is None else cells[drawn]
    if settings is None:
        settings = Settings() if cells is None else choose_settings(rows, slowdown, cells, grid)
    weights = _inverse(rows, settings) @ _target(rows, slowdown, settings.kind)
    return Penalty(settings, rows[:, :_ALIKE], weights)
