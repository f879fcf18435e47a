"""What an implementation costs on top of the physics, learned from measured runs by pattern.

Two thirds of a real sweep's runs can be several times slower than the hardware allows, and not at random: pipelines
over nodes, tensor parallelism over nodes. A small ensemble of shallow trees learns the logarithm of measured over
estimated from the layout and from where the estimate says its time goes. Always shown apart from the physics, and
never carried to another framework: it knows the code that made its rows, nothing else.

Stochastic gradient boosting as in Friedman (2002), with least squares on binned features and a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.estimate.estimate import Estimate
from pipeline.estimate.layouts import Array, Layouts
from pipeline.estimate.question import Question

BINS = 24
DRAWN = 0.6
"""Share of the rows that each tree sees."""
_PARTS = ("tp", "dp", "pp", "bubble", "elementwise", "linear")

FEATURES = (
    "log2_params", "log2_gpus", "log2_dp", "log2_tp", "log2_pp", "log2_mbs", "log2_gas", "zero_stage", "tp_over_nodes",
    "pp_over_nodes", "micro_batches_per_stage", "log2_step_s", "log2_model_parallel", "log2_micro_batch_s",
    "log2_memory", *(f"share_{part}" for part in _PARTS),
)  # fmt: skip
"""Columns of a feature row."""


def penalty_features(asked: Question, at: Layouts, predicted: Estimate) -> Array:
    """One row per layout, one column per entry of FEATURES."""
    total = predicted.step_time_s
    per_node = asked.cluster.gpus_per_node
    columns = (
        np.log2(float(asked.shape.params)), np.log2(at.num_gpus), np.log2(at.dp), np.log2(at.tp), np.log2(at.pp),
        np.log2(at.mbs), np.log2(at.gas), at.zero_stage, at.tp > per_node, (at.pp > 1) & (at.num_gpus > per_node),
        np.log2(at.gas / at.pp), np.log2(total), np.log2(at.tp * at.pp), np.log2(total / at.gas),
        np.log2(predicted.mem_bytes), *(getattr(predicted.time, part) / total for part in _PARTS),
    )  # fmt: skip
    return np.stack([np.broadcast_to(column, total.shape).astype(np.float64) for column in columns], axis=1)


@dataclass(frozen=True)
class Tree:
    """One regression tree as arrays over nodes: children of node i are 2i + 1 and 2i + 2; feature -1 is a leaf."""

    feature: NDArray[np.int64]
    threshold: Array
    value: Array

    def predict(self, rows: Array) -> Array:
        """Value of the leaf of each row."""
        node = np.zeros(len(rows), np.int64)
        for _ in range(self.feature.size.bit_length()):
            feature = self.feature[node]
            inner = feature >= 0
            goes_right = rows[np.arange(len(rows)), np.maximum(feature, 0)] > self.threshold[node]
            node = np.where(inner, 2 * node + 1 + goes_right, node)
        return self.value[node]


@dataclass(frozen=True)
class Penalty:
    """A fitted ensemble: log(measured / estimated) = base + rate x sum of trees."""

    base: float
    rate: float
    trees: tuple[Tree, ...]

    def slowdown(self, rows: Array) -> Array:
        """Measured over estimated step time that these patterns had, at least 0.5."""
        total = np.full(len(rows), self.base)
        for tree in self.trees:
            total += self.rate * tree.predict(rows)
        slowdown: Array = np.exp(np.maximum(total, np.log(0.5)))
        return slowdown


def _best_split(codes: NDArray[np.int64], errors: Array, leaf: int) -> tuple[float, int, int]:
    """(gain, feature, bin) of the split that lowers squared error most; gain 0 when none keeps `leaf` rows a side."""
    best = (0.0, -1, -1)
    count, total = len(errors), float(errors.sum())
    for feature in range(codes.shape[1]):
        sizes = np.cumsum(np.bincount(codes[:, feature], minlength=BINS))
        sums = np.cumsum(np.bincount(codes[:, feature], weights=errors, minlength=BINS))
        left, right = sizes[:-1], count - sizes[:-1]
        allowed = (left >= leaf) & (right >= leaf)
        if not allowed.any():
            continue
        gains = sums[:-1] ** 2 / np.maximum(left, 1) + (total - sums[:-1]) ** 2 / np.maximum(right, 1)
        gains = np.where(allowed, gains - total**2 / count, 0.0)
        place = int(np.argmax(gains))
        if gains[place] > best[0]:
            best = (float(gains[place]), feature, place)
    return best


def _grow(codes: NDArray[np.int64], edges: list[Array], errors: Array, depth: int, leaf: int) -> Tree:
    size = 2 ** (depth + 1) - 1
    feature, threshold, value = np.full(size, -1), np.zeros(size), np.zeros(size)
    members: dict[int, NDArray[np.int64]] = {0: np.arange(len(errors))}
    for node in range(size):
        rows = members.pop(node, None)
        if rows is None:
            continue
        # A little shrinkage, so that a leaf of few rows does not follow each of them.
        value[node] = errors[rows].sum() / (len(rows) + 2.0)
        if 2 * node + 2 >= size:
            continue
        gain, chosen, place = _best_split(codes[rows], errors[rows], leaf)
        if gain <= 0:
            continue
        feature[node], threshold[node] = chosen, edges[chosen][place]
        right = codes[rows, chosen] > place
        members[2 * node + 1], members[2 * node + 2] = rows[~right], rows[right]
    return Tree(feature, threshold, value)


def fit_penalty(
    rows: Array, slowdown: Array, *, trees: int = 200, depth: int = 5, rate: float = 0.08, leaf: int = 4
) -> Penalty:
    """Learn `slowdown` (measured over estimated) from feature rows. Errors beyond a factor of 2 count less (Huber)."""
    target = np.log(slowdown)
    edges = [np.unique(np.quantile(column, np.linspace(0, 1, BINS)[1:-1])) for column in rows.T]
    edges = [np.pad(edge, (0, BINS - edge.size), constant_values=np.inf) for edge in edges]
    codes = np.stack([np.searchsorted(edge, column) for edge, column in zip(edges, rows.T, strict=True)], axis=1)
    codes = codes.astype(np.int64)
    base = float(np.median(target))
    fitted = np.full(len(target), base)
    grown = []
    chance = np.random.default_rng(0)
    for _ in range(trees):
        errors = np.clip(target - fitted, -np.log(2), np.log(2))
        drawn = np.flatnonzero(chance.random(len(target)) < DRAWN)
        tree = _grow(codes[drawn], edges, errors[drawn], depth, leaf)
        fitted = fitted + rate * tree.predict(rows)
        grown.append(tree)
    return Penalty(base, rate, tuple(grown))
