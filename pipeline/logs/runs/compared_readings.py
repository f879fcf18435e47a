"""How two readings of steps compare: what of the one is in the other, and whether that agrees. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import polars as pl

_MIN_MICRO_BATCHES = 4
"""So many losses of a file must be found among a log's micro-batches: fewer agree by chance at some ratio."""


@dataclass(frozen=True)
class Compared:
    """How readings compare: by their steps, by their order, and as micro-batches of the other's steps.

    `uncounted` are readings whose numbers are not those of steps, `attempts` the names of those that a launcher has
    started anew.
    """

    by_step: dict[tuple[int, int], tuple[int, int]]
    by_order: dict[tuple[int, int], tuple[int, int]]
    by_ratio: dict[tuple[int, int], tuple[int, int, int, int]]
    reach: dict[int, tuple[int, int, int]]
    uncounted: Collection[int]
    attempts: Mapping[int, str]

    def are_same(self, one: int, other: int) -> bool:
        """Whether at least half of the losses in common agree."""
        common, agreeing = self.by_step.get(_pair(one, other), (0, 0))
        return 0 < common <= 2 * agreeing and (agreeing > 1 or common == 1)

    def are_copies(self, one: int, other: int) -> bool:
        """Whether two logs agree, and one has all of the other: a launch that resumes another goes on behind it.

        A launcher's second attempt may repeat the first one's losses to the last digit.
        """
        if (first := self.attempts.get(one)) and (second := self.attempts.get(other)) and first != second:
            return False
        return self.are_same(one, other) and _has_all(self.reach[one], self.reach[other])

    def are_same_in_order(self, one: int, other: int) -> bool:
        """Whether nearly all losses agree, taken in turn."""
        common, agreeing = self.by_order.get(_pair(one, other), (0, 0))
        return common > 2 and agreeing >= 0.9 * common

    def ratio(self, file: int, launch: int) -> tuple[int, int] | None:
        """Ratio and offset, if nearly all losses of a file are those of micro-batches of a launch."""
        ratio, offset, common, agreeing = self.by_ratio.get((file, launch), (0, 0, 0, 0))
        return (ratio, offset) if agreeing >= max(_MIN_MICRO_BATCHES, 0.9 * common) else None

    def differing(self, one: int, other: int) -> int:
        """Number of losses in common that differ."""
        common, agreeing = self.by_step.get(_pair(one, other), (0, 0))
        return common - agreeing

    def end_alike(self, one: int, other: int) -> bool:
        """Whether they end at the same step, as far as both log it."""
        first, second = self.reach[one], self.reach[other]
        return abs(first[1] - second[1]) < max(first[2], second[2], 1)

    def contradict(self, one: int, other: int) -> bool:
        """Whether losses are in common that differ.

        Numbers of batches and of steps do not tell what is in common. They do if there were enough of them to be found
        among the micro-batches of each other, and they were not.
        """
        if (one in self.uncounted) != (other in self.uncounted):
            found = [self.by_ratio.get(pair, (0, 0, 0, 0)) for pair in ((one, other), (other, one))]
            if max(common for _, _, common, _ in found) < _MIN_MICRO_BATCHES:
                return False
        return _pair(one, other) in self.by_step and not self.are_same(one, other)


def by_pair(pairs: pl.DataFrame) -> dict[tuple[int, int], tuple[int, int]]:
    """How many losses two readings have in common and how many of them agree, by both of them (agreement.PAIRS)."""
    return {(first, second): (common, agreeing) for first, second, common, agreeing in pairs.iter_rows()}


def _pair(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def _has_all(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """Whether one stretch of steps lies within the other, but for a gap at each end."""
    gap = max(one[2], other[2])
    inner, outer = sorted((one, other), key=lambda stretch: stretch[1] - stretch[0])
    return outer[0] - gap <= inner[0] and inner[1] <= outer[1] + gap
