"""Facts of a log compared with what was read: right, wrong or missing; a wrong value is worse than none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

NO_ENDING = ("truncated", "running", "unknown")
"""Statuses of a run of which nothing tells how it ended."""


@dataclass
class Score:
    """Counts of right, wrong and missing facts, and every fact that is not right."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, verdict: str, what: str) -> None:
        """One fact; `what` describes it."""
        self.counts[verdict] += 1
        if verdict != "right":
            self.failures.append(f"{verdict:8s}{what}")

    def __add__(self, other: Score) -> Score:
        return Score(self.counts + other.counts, self.failures + other.failures)

    @property
    def total(self) -> int:
        """Number of facts."""
        return self.counts.total()

    def share(self, verdict: str) -> float:
        """The share of facts with a verdict; 0 of none."""
        return self.counts[verdict] / self.total if self.total else 0.0

    def row(self, name: str) -> str:
        """The line of a table."""
        right, wrong, missing = (self.counts[verdict] for verdict in ("right", "wrong", "missing"))
        return (
            f"{name:24s}{self.total:6d}{right:7d}{wrong:7d}{missing:9d}"
            f"{100 * self.share('right'):8.1f}%{100 * self.share('wrong'):7.1f}%"
        )


HEAD = f"{'':24s}{'facts':>6s}{'right':>7s}{'wrong':>7s}{'missing':>9s}{'right':>9s}{'wrong':>8s}"


def verdict(wanted: float, found: Iterable[object], tolerance: float = 0.0) -> str:
    """Whether one of the values found is the wanted one: right, wrong, or missing where there is none."""
    values = [float(value) for value in found if isinstance(value, int | float) and not isinstance(value, bool)]
    if not values:
        return "missing"
    near = (abs(value - wanted) <= tolerance * max(abs(value), abs(wanted), 1e-12) for value in values)
    both_nan = (math.isnan(value) and math.isnan(wanted) for value in values)
    return "right" if any(near) or any(both_nan) else "wrong"


def status_verdict(wanted: set[str], found: str | None) -> str:
    """Whether a status is one of the wanted ones; one that tells nothing is missing."""
    if found in wanted:
        return "right"
    return "missing" if found is None or found in NO_ENDING else "wrong"


def number(row: Mapping[str, Any], name: str) -> float | None:
    """A number in a row of a manifest; None where it states none."""
    try:
        return float(row[name])
    except (KeyError, TypeError, ValueError):
        return None
