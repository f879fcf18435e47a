"""Annotations open at an event: optimizer steps, profiler steps, ranges that the user named."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from sweepscope.pipeline.memory.snapshot.snapshot import Annotation
from sweepscope.pipeline.memory.snapshot.trace import Ints

_NOISE = re.compile(r"\(dynamo_timed\)$")
_OPTIMIZER = re.compile(r"^Optimizer\.step")


class Phases:
    """Ranges of annotations over the events of one device.

    Annotations may nest, overlap, and lack their other end: one without an end reaches to the next start of its name
    or to the end of the record, an end without a start begins with the record.
    """

    def __init__(self, annotations: Sequence[Annotation], device: int, time_us: Ints) -> None:
        self._count = len(time_us)
        mine = [a for a in annotations if a.device in (None, device) and not _NOISE.search(a.name)]
        if not self._count or not mine or int(time_us[0]) < 0:
            mine = []
        times = np.array([a.time_us for a in mine], np.int64)
        # An event at the time of a start or an end belongs to that range.
        starts = np.searchsorted(time_us, times, side="left") if mine else np.empty(0, np.intp)
        ends = np.searchsorted(time_us, times, side="right") if mine else np.empty(0, np.intp)
        self.ranges = _ranges(mine, starts.tolist(), ends.tolist(), self._count)
        self.optimizer = [(begin, end) for begin, end, name in self.ranges if _OPTIMIZER.match(name)]
        self._names = _innermost(self.ranges, self._count)

    def at(self, point: int) -> str | None:
        """Name of the innermost range that holds the last event before `point`."""
        cuts, names = self._names
        return names[int(np.searchsorted(cuts, point - 1, side="right")) - 1] if point > 0 and names else None

    def optimizer_ends(self, events: Ints) -> Ints:
        """Index behind the last event of the optimizer step around each event; -1 outside of any step."""
        ends = np.full(len(events), -1, np.int64)
        if self.optimizer:
            order = np.argsort(events, kind="stable")
            cuts = np.searchsorted(events[order], np.array(self.optimizer, np.int64))
            for (low, high), (_, end) in zip(cuts[::-1].tolist(), reversed(self.optimizer), strict=True):
                ends[order[low:high]] = end  # where two overlap, the one that ended first counts
        return ends


def _ranges(found: list[Annotation], starts: list[int], ends: list[int], count: int) -> list[tuple[int, int, str]]:
    """(first event, event behind the last, name) of every range, in order of their ends."""
    opened: dict[str, list[int]] = {}
    ranges: list[tuple[int, int, str]] = []
    for annotation, start, end in zip(found, starts, ends, strict=True):
        if annotation.is_start:
            opened.setdefault(annotation.name, []).append(start)
        else:
            begins = opened.get(annotation.name)
            ranges.append((begins.pop() if begins else 0, end, annotation.name))
    ranges += [(begin, count, name) for name, begins in opened.items() for begin in begins]
    return [(begin, end, name) for begin, end, name in ranges if begin < end]


def _innermost(ranges: list[tuple[int, int, str]], count: int) -> tuple[list[int], list[str | None]]:
    """Boundaries of the record and the name that applies from each; the shortest range is the innermost."""
    if not ranges:
        return [0], []
    cuts = sorted({0, count, *(b for b, _, _ in ranges), *(e for _, e, _ in ranges)})
    names: list[str | None] = [None] * len(cuts)
    at = {cut: index for index, cut in enumerate(cuts)}
    for begin, end, name in sorted(ranges, key=lambda r: r[0] - r[1]):  # the longest first
        names[at[begin] : at[end]] = [name] * (at[end] - at[begin])
    return cuts, names
