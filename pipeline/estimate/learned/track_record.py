"""How runs of one framework on one kind of card came out beside their estimates: what intervals and penalties rest on.

A record is a file `<profile>.json` beside the profile `<profile>.toml`, written by `sweepscope calibrate`: residuals of
rows that the fit had not seen, by pattern, and the learned penalty as plain arrays. It is data; nothing in it is
executed. A profile without a record has no intervals and no penalty: they are NULL, not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.learned.penalty import FEATURES, Penalty
from sweepscope.pipeline.estimate.learned.placement_patterns import PATTERNS, placement_of
from sweepscope.pipeline.estimate.physics.layouts import Array

COVERAGE = 0.8
"""Share of comparable runs within an interval."""
ENOUGH = 20
"""Comparable runs that a pattern needs; with fewer, all patterns of the same placement count, then all runs."""
FEWEST = 9
"""Below this an 80 % interval does not exist: its ends would lie beyond the extremes of what was seen."""
REACH = 1.0
"""A penalty holds up to twice (in log2: 1) beyond the sizes and accelerator counts that it was learned on."""
_RANGED = ("log2_params", "log2_gpus")


@dataclass(frozen=True)
class Interval:
    """Factors on an estimate between which `coverage` of `runs` comparable runs lie; `basis` names those."""

    low: float
    middle: float
    high: float
    runs: int
    basis: str


FASTEST = 0.02
"""Share of comparable runs that may be faster than what an interval reaches to."""


def conformal_interval(ratios: Array, basis: str, coverage: float = COVERAGE) -> Interval | None:
    """The split-conformal interval of log ratios: order statistics with the correction for a finite sample.

    None when there are too few of them for that coverage (Vovk; Lei et al. 2018, 1604.04173, section 2).
    """
    ordered = np.sort(ratios)
    tail, count = (1.0 - coverage) / 2.0, len(ordered)
    # Rounded first: (9 + 1) x 0.1 is a whole number on paper only.
    first = int(np.floor(round((count + 1) * tail, 9)))
    if first < 1:
        return None
    low, middle, high = np.exp([ordered[first - 1], np.median(ordered), ordered[count - first]])
    return Interval(float(low), float(middle), float(high), count, basis)


@dataclass(frozen=True)
class Residuals:
    """Log of measured over predicted by pattern, of rows that were not seen."""

    by_pattern: Mapping[str, Array]

    def comparable(self, pattern: str) -> tuple[Array, str]:
        """The narrowest group of at least ENOUGH runs that holds the pattern, and what it is; all runs otherwise."""
        ratios = self.by_pattern.get(pattern, np.zeros(0))
        if ratios.size >= ENOUGH:
            return ratios, pattern
        placement = placement_of(pattern)
        same = [values for name, values in self.by_pattern.items() if placement_of(name) == placement]
        if same and sum(values.size for values in same) >= ENOUGH:
            return np.concatenate(same), placement
        everything = np.concatenate([np.zeros(0), *self.by_pattern.values()])
        return everything, "all layouts"

    def interval(self, pattern: str, framework: str) -> Interval | None:
        """The interval of a pattern, or None when too few runs are comparable."""
        ratios, group = self.comparable(pattern)
        basis = f"{COVERAGE:.0%} of {ratios.size:,} runs of {framework}, {group}"
        return conformal_interval(ratios, basis)

    def fastest(self, pattern: str) -> float:
        """Measured over predicted that all but FASTEST of the comparable runs exceed; NaN without any.

        Not the least: a run whose shape is wrong is faster than anything.
        """
        ratios, _ = self.comparable(pattern)
        return float(np.exp(np.quantile(ratios, FASTEST, method="lower"))) if ratios.size else float("nan")

    @property
    def size(self) -> int:
        """Runs."""
        return sum(values.size for values in self.by_pattern.values())


@dataclass(frozen=True)
class LearnedPenalty:
    """A penalty with where it was learned. `lowest` and `highest` bound slowdowns to those that were seen."""

    model: Penalty
    lowest: float
    highest: float
    ranges: Mapping[str, tuple[float, float]]

    def reaches(self, *, params: float, num_gpus: float) -> bool:
        """Whether a model of that size on that many accelerators is near enough to what was measured."""
        asked = dict(zip(_RANGED, (np.log2(params), np.log2(num_gpus)), strict=True))
        return all(low - REACH <= asked[name] <= high + REACH for name, (low, high) in self.ranges.items())

    def slowdown(self, rows: Array) -> Array:
        """Measured over estimated step time for feature rows; NaN beyond what it was learned on."""
        if not len(rows):
            return np.zeros(0)
        found: Array = np.clip(self.model.slowdown(rows), self.lowest, self.highest)
        for name, (low, high) in self.ranges.items():
            values = rows[:, FEATURES.index(name)]
            found = np.where((values < low - REACH) | (values > high + REACH), np.nan, found)
        return found


@dataclass(frozen=True)
class TrackRecord:
    """What is known of a profile's runs. `time` and `memory` are residuals of the physics, `penalised` of the physics
    times the penalty; `penalty` is None where learning one did not help. `needed` and `memory_factor` are the same for
    peak memory: what comparable runs needed beside the estimate, because of settings that no layout states. Layouts
    that make other `choices` (of `placement_patterns.CHOICES`) are not comparable to any run.
    """

    profile: str
    about: dict[str, Any] = field(default_factory=dict)
    time: Residuals = field(default_factory=lambda: Residuals({}))
    memory: Residuals = field(default_factory=lambda: Residuals({}))
    penalised: Residuals = field(default_factory=lambda: Residuals({}))
    needed: Residuals = field(default_factory=lambda: Residuals({}))
    choices: frozenset[str] = frozenset()
    penalty: LearnedPenalty | None = None
    memory_factor: LearnedPenalty | None = None


def residuals_by_pattern(codes: NDArray[np.int64], ratios: Array) -> Residuals:
    """Residuals from pattern codes and log ratios; rows without a ratio (NaN) are left out."""
    known = np.isfinite(ratios)
    groups = {PATTERNS[int(code)]: np.sort(ratios[known & (codes == code)]) for code in np.unique(codes[known])}
    return Residuals(groups)


def learned_penalty(model: Penalty, rows: Array) -> LearnedPenalty:
    """A fitted penalty with the bounds of the rows it was fitted on."""
    seen = model.slowdown(rows)
    columns = {name: rows[:, FEATURES.index(name)] for name in _RANGED}
    ranges = {name: (float(values.min()), float(values.max())) for name, values in columns.items()}
    return LearnedPenalty(model, float(seen.min()), float(seen.max()), ranges)


def residual_map(residuals: Residuals) -> list[dict[str, Any]]:
    """One row per pattern: its runs, and the 10th, 50th and 90th percentile of measured over predicted; slowest first.

    Read "PP over nodes · ZeRO-0: 5 times slower than the hardware allows, 212 runs".
    """
    quantiles = {"p10": 0.1, "median": 0.5, "p90": 0.9}
    rows = [
        {
            "pattern": name,
            "runs": values.size,
            **{part: float(np.exp(np.quantile(values, at))) for part, at in quantiles.items()},
        }
        for name, values in residuals.by_pattern.items()
    ]
    return sorted(rows, key=lambda row: (-float(str(row["median"])), str(row["pattern"])))
