"""The best layouts of a question out of all of them, and why the others are not.

Ranked among those that fit with a margin: by what physics allows, or by what the framework's runs are expected to reach
(physics times the learned penalty). The Pareto front trades throughput for memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.learned.expected import slowdown
from sweepscope.pipeline.estimate.learned.placement_patterns import PATTERNS, has_unseen, pattern_codes
from sweepscope.pipeline.estimate.learned.record_file import find_record
from sweepscope.pipeline.estimate.learned.track_record import TrackRecord
from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts
from sweepscope.pipeline.estimate.search.enumerate import REASONS_OF_GRID, Block, Request, blocks
from sweepscope.pipeline.estimate.search.layout_table import NO_LAYOUTS, layout_table

OUT_OF_MEMORY = "predicted to run out of memory"
MARGIN = 0.05
"""Share of the accelerator's memory to leave free by default."""
UNSEEN = "no measured run of this framework made such a choice (rank by physics to see them)"
PHYSICS, EXPECTATION, AUTO = "physics", "expected", "auto"
SHORTLIST = 200
"""Layouts of each pattern, fastest by physics first, that get a penalty: comparing each layout with every measured run
is too slow for all of them, and within a pattern penalties differ little."""


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        layouts: the best first, with the breakdown, as `layout_table` has them.
        front_layouts: the Pareto front, fastest first: nothing that fits is both faster and leaner.
        request: the question.
        examined: cells of the grid; each is one of `fitting` or is counted in `pruned`, those of UNSEEN in both.
        launchable: cells that a framework would start.
        fitting: those of them that leave the margin of memory free.
        pruned: cells by the reason why they are no answer, most frequent first.
        leanest_bytes: the least that any launchable layout needs; NaN when none can be launched.
        speeds: tokens/s/GPU that physics allows every layout that fits, in ascending order, for `rank`.
        ranked_by: PHYSICS or EXPECTATION: what "fastest" means in both tables. By EXPECTATION, layouts with choices
            that no run of the framework made are pruned.
    """

    layouts: pl.DataFrame
    front_layouts: Layouts
    request: Request
    examined: int
    launchable: int
    fitting: int
    pruned: dict[str, int]
    leanest_bytes: float
    speeds: Array
    ranked_by: str = PHYSICS

    @cached_property
    def front(self) -> pl.DataFrame:
        """The Pareto front as `layout_table` has it: built when it is asked for, which most callers never do."""
        return layout_table(self.request, self.front_layouts)

    def rank(self, tokens_per_s_per_gpu: float) -> int:
        """Rank by physics of a throughput among the layouts that fit: 1 is the fastest; equals share the better one."""
        # Throughputs of one layout that went through arrays of another shape may differ in the last digit.
        above = np.searchsorted(self.speeds, tokens_per_s_per_gpu * (1 + 1e-9), side="right")
        return int(self.speeds.size - above) + 1


@dataclass(frozen=True)
class _Candidates:
    """A list of layouts that may be among the answers, their tokens/s/GPU, and the bytes that they need."""

    at: Layouts
    speed: Array
    need: Array

    @classmethod
    def concat(cls, parts: Sequence[_Candidates]) -> _Candidates:
        """Those of all parts, of which there is at least one."""
        columns = {
            column.name: np.concatenate([getattr(part.at, column.name) for part in parts]) for column in fields(Layouts)
        }
        return cls(
            at=Layouts(**columns),
            speed=np.concatenate([part.speed for part in parts]),
            need=np.concatenate([part.need for part in parts]),
        )


@dataclass
class _Survey:
    """What the blocks of the grid held so far; see Found. `room` are the bytes that a layout may need."""

    request: Request
    room: float
    top: int
    record: TrackRecord | None
    examined: int = 0
    launchable: int = 0
    fitting: int = 0
    leanest: float = np.inf
    pruned: Counter[str] = field(default_factory=Counter)
    speeds: list[Array] = field(default_factory=list)
    candidates: list[_Candidates] = field(default_factory=list)

    def add(self, block: Block) -> None:
        """Count the cells of one block and keep those that can be among the answers."""
        self.examined += block.codes.size
        for code, count in enumerate(np.bincount(block.codes.ravel(), minlength=len(REASONS_OF_GRID))):
            if code and count:
                self.pruned[REASONS_OF_GRID[code]] += int(count)
        can = block.codes == 0
        if not can.any():
            return
        predicted = estimate(self.request.asked, block.at)
        need = np.broadcast_to(predicted.stages.reserved, block.codes.shape)
        speed = np.broadcast_to(predicted.tokens_per_s_per_gpu, block.codes.shape)
        fits = can & (need <= self.room)
        self.launchable += int(can.sum())
        self.fitting += int(fits.sum())
        self.leanest = min(self.leanest, float(need[can].min()))
        self.speeds.append(speed[fits])
        if self.record is not None:
            unseen = fits & has_unseen(block.at, self.record.choices)
            self.pruned[UNSEEN] += int(unseen.sum())
            fits &= ~unseen
        keep = _worth_keeping(fits, speed, need, self.top)
        if self.record is not None:
            keep |= _shortlist(fits, speed, pattern_codes(block.at, self.request.asked.cluster.gpus_per_domain))
        self.candidates.append(_Candidates(block.at[keep], speed[keep], need[keep]))


def search(request: Request, *, top: int = 10, margin: float = MARGIN, by: str = AUTO) -> Found:
    """The best layouts of `request`, the Pareto front, and counts of all others; none at all is a possible answer.

    Args:
        request: the question, and the choices to try.
        top: number of layouts to return.
        margin: share of the accelerator's memory that must stay free.
        by: PHYSICS, EXPECTATION, or AUTO, which expects where the profile has a learned penalty and the question is
            within its reach, unless no layout that fits is made of choices that were measured.
    """
    asked = request.asked
    record = _record_within_reach(request) if by != PHYSICS else None
    room = (1.0 - margin) * asked.cluster.memory_bytes - asked.profile.outside_bytes
    survey = _Survey(request, room, top, record)
    for block in blocks(request):
        survey.add(block)
    has_candidates = any(part.speed.size for part in survey.candidates)
    if record is not None and by == AUTO and not has_candidates:
        return search(request, top=top, margin=margin, by=PHYSICS)
    if survey.launchable > survey.fitting:
        survey.pruned[OUT_OF_MEMORY] = survey.launchable - survey.fitting
    best = front = NO_LAYOUTS
    if has_candidates:
        candidates = _Candidates.concat(survey.candidates)
        if record is not None:
            candidates = _slowed(request, candidates, top, record)
        # Equal throughput: the leaner layout first.
        best = candidates.at[np.lexsort((candidates.need, -candidates.speed))[:top]]
        front = candidates.at[_front(candidates.speed, candidates.need)]
    return Found(
        layouts=layout_table(request, best),
        front_layouts=front,
        request=request,
        examined=survey.examined,
        launchable=survey.launchable,
        fitting=survey.fitting,
        pruned={reason: count for reason, count in survey.pruned.most_common() if count},
        leanest_bytes=survey.leanest if survey.launchable else float("nan"),
        speeds=np.sort(np.concatenate(survey.speeds)) if survey.speeds else np.zeros(0),
        ranked_by=PHYSICS if record is None else EXPECTATION,
    )


def _record_within_reach(request: Request) -> TrackRecord | None:
    """The profile's record, if it has a learned penalty that reaches the size of this question."""
    record = find_record(request.asked.profile)
    if record is None or record.penalty is None:
        return None
    is_near = record.penalty.reaches(params=request.asked.shape.params, num_gpus=request.num_gpus)
    return record if is_near else None


def _front(speed: Array, need: Array) -> NDArray[np.intp]:
    """Indices of the Pareto front, fastest first: nothing else is both faster and leaner."""
    order = np.lexsort((need, -speed))
    least = np.minimum.accumulate(need[order])
    is_front = np.ones(order.size, np.bool_)
    is_front[1:] = need[order][1:] < least[:-1]
    front: NDArray[np.intp] = order[is_front]
    return front


def _worth_keeping(fits: NDArray[np.bool_], speed: Array, need: Array, top: int) -> NDArray[np.bool_]:
    """Mask of a block's cells that can be among the best or on the front."""
    keep = np.zeros(fits.shape, np.bool_)
    cells = np.flatnonzero(fits)
    if not cells.size:
        return keep
    fast, lean = speed.ravel()[cells], need.ravel()[cells]
    chosen = np.argpartition(-fast, min(top, cells.size - 1))[:top]
    keep.ravel()[cells[chosen]] = True
    keep.ravel()[cells[_front(fast, lean)]] = True
    return keep


def _shortlist(fits: NDArray[np.bool_], speed: Array, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mask of the SHORTLIST fastest by physics of each pattern."""
    keep = np.zeros(fits.shape, np.bool_)
    cells = np.flatnonzero(fits)
    fast, patterns = speed.ravel()[cells], codes.ravel()[cells]
    for code in range(len(PATTERNS)):
        alike = np.flatnonzero(patterns == code)
        if alike.size > SHORTLIST:
            alike = alike[np.argpartition(-fast[alike], SHORTLIST)[:SHORTLIST]]
        keep.ravel()[cells[alike]] = True
    return keep


def _slowed(request: Request, candidates: _Candidates, top: int, record: TrackRecord) -> _Candidates:
    """The candidates that count over all blocks together, with the throughput that their learned penalty leaves."""
    asked, every = request.asked, np.ones(candidates.speed.shape, np.bool_)
    codes = pattern_codes(candidates.at, asked.cluster.gpus_per_domain)
    keep = _worth_keeping(every, candidates.speed, candidates.need, top) | _shortlist(every, candidates.speed, codes)
    at = candidates.at[keep]
    speed = candidates.speed[keep] / slowdown(asked, at, estimate(asked, at), record)
    return _Candidates(at, speed, candidates.need[keep])
