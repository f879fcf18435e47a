"""How runs of one framework on one kind of card came out beside their estimates: what intervals and penalties rest on.

A record is a file `<profile>.json` beside the profile `<profile>.toml`, written by `sweepscope calibrate`: residuals of
rows that the fit had not seen, by pattern, and the learned penalty as plain arrays. It is data; nothing in it is
executed. A profile without a record has no intervals and no penalty: they are NULL, not guessed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.estimate.learned.penalty import FEATURES, Penalty, Settings
from sweepscope.pipeline.estimate.learned.placement_patterns import PATTERNS, placement_of
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import Profile, constants_digest

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


def _learned_value(learned: LearnedPenalty) -> dict[str, Any]:
    return {
        "features": list(FEATURES),
        **asdict(learned.model.settings),
        "lowest": learned.lowest,
        "highest": learned.highest,
        "ranges": {name: list(ends) for name, ends in learned.ranges.items()},
        "points": np.round(learned.model.points, 4).tolist(),
        "weights": [float(f"{weight:.5g}") for weight in learned.model.weights],
    }


def _read_learned(stated: dict[str, Any] | None, path: Path, remedy: str) -> LearnedPenalty | None:
    if stated is None:
        return None
    if tuple(stated["features"]) != FEATURES:
        raise InputError(f"{path} was learned on other features than this version has. {remedy}")
    settings = Settings(tuple(stated["reach"]), float(stated["noise"]), str(stated["kind"]))
    model = Penalty(settings, np.array(stated["points"], np.float64), np.array(stated["weights"], np.float64))
    ranges = {name: (float(low), float(high)) for name, (low, high) in stated["ranges"].items()}
    return LearnedPenalty(model, float(stated["lowest"]), float(stated["highest"]), ranges)


def render_record(record: TrackRecord) -> str:
    """Text of a record's file."""

    def lists(residuals: Residuals) -> dict[str, list[float]]:
        return {name: [round(float(value), 4) for value in values] for name, values in residuals.by_pattern.items()}

    value: dict[str, Any] = {
        "about": record.about,
        "time": lists(record.time),
        "memory": lists(record.memory),
        "penalised": lists(record.penalised),
        "needed": lists(record.needed),
        "choices": sorted(record.choices),
    }
    for name, learned in (("penalty", record.penalty), ("memory_factor", record.memory_factor)):
        if learned is not None:
            value[name] = _learned_value(learned)
    entries = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(part, separators=(',', ':'))}" for name, part in value.items()
    )
    return "{\n" + entries + "\n}\n"


def read_record(path: Path) -> TrackRecord:
    """A record's file. Raises InputError, with the remedy, for one that is damaged or of another version."""
    remedy = "Fit it again: sweepscope calibrate."
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        penalty = _read_learned(value.get("penalty"), path, remedy)
        factor = _read_learned(value.get("memory_factor"), path, remedy)
        parts = {
            name: Residuals({pattern: np.array(values, np.float64) for pattern, values in entries.items()})
            for name, entries in (
                ("time", value["time"]),
                ("memory", value["memory"]),
                ("penalised", value["penalised"]),
                ("needed", value.get("needed", {})),
            )
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is no track record ({error}). {remedy}") from error
    choices = frozenset(value["choices"])
    return TrackRecord(path.stem, value["about"], **parts, choices=choices, penalty=penalty, memory_factor=factor)


@lru_cache(maxsize=64)
def _read_once(path: Path, _changed_ns: tuple[int, int]) -> TrackRecord | None:
    record = read_record(path)
    return record if record.about.get("constants") == constants_digest(path.with_suffix(".toml")) else None


def find_record(profile: Profile) -> TrackRecord | None:
    """The record beside a profile's file; None where there is none, or one that was learned with other constants."""
    if profile.folder is None:
        return None
    path = profile.folder / f"{profile.name}.json"
    try:
        changed = path.stat().st_mtime_ns, path.with_suffix(".toml").stat().st_mtime_ns
    except OSError:
        return None
    return _read_once(path, changed)


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
