"""The best layouts of a question out of all of them, and why the others are not.

Ranked among those that fit with a margin: by what physics allows, or by what the framework's runs are expected to reach
(physics times the learned penalty). The Pareto front trades throughput for memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.learned.expected import EXPECTED, expect, slowdown
from sweepscope.pipeline.estimate.learned.placement_patterns import PATTERNS, has_unseen, pattern_codes
from sweepscope.pipeline.estimate.learned.record_file import find_record
from sweepscope.pipeline.estimate.physics.estimate import Estimate, estimate
from sweepscope.pipeline.estimate.physics.layouts import RECOMPUTE_MODES, SCHEDULES, Array, Layouts
from sweepscope.pipeline.estimate.physics.memory import Memory
from sweepscope.pipeline.estimate.physics.ratio_columns import ratio_columns
from sweepscope.pipeline.estimate.physics.stages import place_layers
from sweepscope.pipeline.estimate.physics.step_time import StepTime
from sweepscope.pipeline.estimate.search.enumerate import REASONS_OF_GRID, Request, blocks

OUT_OF_MEMORY = "predicted to run out of memory"
MARGIN = 0.05
"""Share of the accelerator's memory to leave free by default."""
UNSEEN = "no measured run of this framework made such a choice (rank by physics to see them)"
PHYSICS, EXPECTATION, AUTO = "physics", "expected", "auto"
SHORTLIST = 200
"""Layouts of each pattern, fastest by physics first, that get a penalty: comparing each layout with every measured run
is too slow for all of them, and within a pattern penalties differ little."""

_SHOWN = ("dp", "tp", "pp", "cp", "ep", "vpp", "gas", "mbs", "zero_stage", "dp_replicate")


@dataclass(frozen=True)
class Found:
    """`layouts`: the best first, with the breakdown. `front`: best throughput for each memory. `pruned`: reason, cells.

    `leanest_bytes` is the least that any launchable layout needs; NaN when none can be launched. `ranked_by` is PHYSICS
    or EXPECTATION: what "fastest" means in both tables; by EXPECTATION, layouts with choices that no run
    of the framework made are pruned. `speeds` are the tokens/s/GPU that physics allows every layout that fits, in
    ascending order, for `rank`.
    """

    layouts: pl.DataFrame
    front: pl.DataFrame
    examined: int
    launchable: int
    fitting: int
    pruned: dict[str, int]
    leanest_bytes: float
    speeds: Array
    ranked_by: str = PHYSICS

    def rank(self, tokens_per_s_per_gpu: float) -> int:
        """Rank by physics of a throughput among the layouts that fit: 1 is the fastest; equals share the better one."""
        # Throughputs of one layout that went through arrays of another shape may differ in the last digit.
        above = np.searchsorted(self.speeds, tokens_per_s_per_gpu * (1 + 1e-9), side="right")
        return int(self.speeds.size - above) + 1


@dataclass(frozen=True)
class _Pool:
    """Candidates of the blocks so far: layouts, throughput, bytes needed."""

    at: list[Layouts]
    speed: list[Array]
    need: list[Array]


def search(request: Request, *, top: int = 10, margin: float = MARGIN, by: str = AUTO) -> Found:
    """Estimate every layout of `request` and keep the best `top` and the Pareto front.

    `margin` is the share of memory that must stay free. `by`: PHYSICS, EXPECTATION, or AUTO, which expects where the
        profile has a learned penalty and is within its reach. An answer without layouts is possible: see `pruned`.
    """
    asked = request.asked
    record = find_record(asked.profile)
    is_penalised = (
        by != PHYSICS
        and record is not None
        and record.penalty is not None
        and record.penalty.reaches(params=asked.shape.params, num_gpus=request.num_gpus)
    )
    room = (1.0 - margin) * asked.cluster.memory_bytes - asked.profile.outside_bytes
    pruned: Counter[str] = Counter()
    pool = _Pool([], [], [])
    examined = launchable = fitting = 0
    leanest = np.inf
    speeds: list[Array] = []
    for block in blocks(request):
        shape = block.codes.shape
        examined += block.codes.size
        for code, count in enumerate(np.bincount(block.codes.ravel(), minlength=len(REASONS_OF_GRID))):
            if code and count:
                pruned[REASONS_OF_GRID[code]] += int(count)
        can = block.codes == 0
        if not can.any():
            continue
        predicted = estimate(asked, block.at)
        need = np.broadcast_to(predicted.stages.reserved, shape)
        speed = np.broadcast_to(predicted.tokens_per_s_per_gpu, shape)
        fits = can & (need <= room)
        launchable += int(can.sum())
        fitting += int(fits.sum())
        leanest = min(leanest, float(need[can].min()))
        speeds.append(speed[fits])
        if is_penalised and record is not None:
            unseen = fits & has_unseen(block.at, record.choices)
            pruned[UNSEEN] += int(unseen.sum())
            fits &= ~unseen
        keep = _worth_keeping(fits, speed, need, top)
        if is_penalised and record is not None:
            keep |= _shortlist(fits, speed, pattern_codes(block.at, asked.cluster.gpus_per_domain))
        pool.at.append(block.at[keep])
        pool.speed.append(speed[keep])
        pool.need.append(need[keep])
    if is_penalised and by == AUTO and not sum(part.size for part in pool.speed):
        return search(request, top=top, margin=margin, by=PHYSICS)
    if launchable > fitting:
        pruned[OUT_OF_MEMORY] = launchable - fitting
    best, front = _rank(request, pool, top, is_penalised=is_penalised)
    return Found(
        layouts=layout_table(request, best),
        front=layout_table(request, front),
        examined=examined,
        launchable=launchable,
        fitting=fitting,
        pruned={reason: count for reason, count in pruned.most_common() if count},
        leanest_bytes=leanest if launchable else float("nan"),
        speeds=np.sort(np.concatenate(speeds)) if speeds else np.zeros(0),
        ranked_by=EXPECTATION if is_penalised else PHYSICS,
    )


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


def _rank(request: Request, pool: _Pool, top: int, *, is_penalised: bool) -> tuple[Layouts | None, Layouts | None]:
    """(the best, the front) of what the blocks kept."""
    if not pool.at or not sum(part.size for part in pool.speed):
        return None, None
    speed, need = np.concatenate(pool.speed), np.concatenate(pool.need)
    columns = {field.name: np.concatenate([getattr(part, field.name) for part in pool.at]) for field in fields(Layouts)}
    everything = Layouts(**columns)
    if is_penalised:
        every = np.ones(speed.shape, np.bool_)
        codes = pattern_codes(everything, request.asked.cluster.gpus_per_domain)
        chosen = np.flatnonzero(_worth_keeping(every, speed, need, top) | _shortlist(every, speed, codes))
        everything, need = everything[chosen], need[chosen]
        record = find_record(request.asked.profile)
        speed = speed[chosen] / slowdown(request.asked, everything, estimate(request.asked, everything), record)
    # Equal throughput: the leaner layout first.
    order = np.lexsort((need, -speed))[:top]
    return everything[order], everything[_front(speed, need)]


def layout_table(request: Request, at: Layouts | None) -> pl.DataFrame:
    """Layouts with their prediction and its breakdown, in the names of the `estimate` verb."""
    chosen = at if at is not None else Layouts.of()[np.zeros(0, np.intp)]
    predicted: Estimate = estimate(request.asked, chosen)
    size, worst = chosen.shape[0], predicted.memory

    def column(values: Array) -> Array:
        return np.broadcast_to(values, (size,))

    return pl.DataFrame(
        {
            **{name: column(getattr(chosen, name)).astype(np.int64) for name in _SHOWN},
            "recompute": pl.Series([RECOMPUTE_MODES[int(code)] for code in column(chosen.recompute)], dtype=pl.String),
            "pipeline_schedule": pl.Series([SCHEDULES[int(code)] for code in column(chosen.schedule)], dtype=pl.String),
            "stage_layers": pl.Series(_stage_layers(request, column(chosen.pp)), dtype=pl.String),
            "est_mfu": column(predicted.mfu),
            "est_tokens_per_s_per_gpu": column(predicted.tokens_per_s_per_gpu),
            "est_step_time_s": column(predicted.step_time_s),
            "est_mem_bytes": column(predicted.mem_bytes),
            "est_mem_reserved_bytes": column(predicted.stages.reserved),
            "est_mem_free_bytes": room_bytes(request) - column(predicted.stages.reserved),
            **{f"est_mem_{part.name}_bytes": column(getattr(worst, part.name)) for part in fields(Memory)},
            **{f"est_time_{part.name}_s": column(getattr(predicted.time, part.name)) for part in fields(StepTime)},
            **{
                name: pl.Series(values, dtype=pl.Float64).fill_nan(None)
                for name, values in ratio_columns(request.asked, chosen, predicted).items()
            },
        }
    ).with_columns(
        pl.Series(name, values, EXPECTED[name], strict=False)
        for name, values in expect(request.asked, chosen, predicted).items()
    )


def _stage_layers(request: Request, pp: Array) -> list[str]:
    """Layers on each pipeline stage, as in "11-11-10": uneven where they do not divide or the head counts as layers."""
    asked = request.asked
    placed = {
        degree: place_layers(asked.shape, int(degree), placement=asked.profile.placement) for degree in np.unique(pp)
    }
    text_by_degree = {degree: "-".join(str(count) for count in counts) for degree, counts in placed.items()}
    return [text_by_degree[degree] for degree in pp]


def room_bytes(request: Request) -> float:
    """Bytes of one accelerator that an estimate may fill: its memory less what lies outside the allocator."""
    return request.asked.cluster.memory_bytes - request.asked.profile.outside_bytes
