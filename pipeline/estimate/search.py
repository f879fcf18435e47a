"""The best layouts of a question out of all of them, and why the others are not.

Ranked by predicted throughput among those that fit with a margin; the Pareto front trades throughput for memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.estimate.enumerate import REASONS_OF_GRID, Request, blocks
from pipeline.estimate.estimate import Estimate, estimate
from pipeline.estimate.layouts import RECOMPUTE_MODES, Array, Layouts
from pipeline.estimate.memory import Memory
from pipeline.estimate.step_time import StepTime

OUT_OF_MEMORY = "predicted to run out of memory"
MARGIN = 0.05
"""Share of the accelerator's memory to leave free by default."""

_SHOWN = ("dp", "tp", "pp", "cp", "ep", "vpp", "gas", "mbs", "zero_stage")


@dataclass(frozen=True)
class Found:
    """`layouts`: the best first, with the breakdown. `front`: best throughput for each memory. `pruned`: reason, cells.

    `leanest_bytes` is the least that any launchable layout needs; NaN when none can be launched.
    """

    layouts: pl.DataFrame
    front: pl.DataFrame
    examined: int
    launchable: int
    fitting: int
    pruned: dict[str, int]
    leanest_bytes: float


@dataclass(frozen=True)
class _Pool:
    """Candidates of the blocks so far: layouts, throughput, bytes needed."""

    at: list[Layouts]
    speed: list[Array]
    need: list[Array]


def search(request: Request, *, top: int = 10, margin: float = MARGIN) -> Found:
    """Estimate every layout of `request` and keep the best `top` and the Pareto front.

    `margin` is the share of memory that must stay free. An answer without layouts is possible: see `pruned`.
    """
    asked = request.asked
    room = (1.0 - margin) * asked.cluster.memory_bytes - asked.profile.outside_bytes
    pruned: Counter[str] = Counter()
    pool = _Pool([], [], [])
    examined = launchable = fitting = 0
    leanest = np.inf
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
        keep = _worth_keeping(fits, speed, need, top)
        pool.at.append(block.at[keep])
        pool.speed.append(speed[keep])
        pool.need.append(need[keep])
    if launchable > fitting:
        pruned[OUT_OF_MEMORY] = launchable - fitting
    best, front = _rank(pool, top)
    return Found(
        layouts=_table(request, best),
        front=_table(request, front),
        examined=examined,
        launchable=launchable,
        fitting=fitting,
        pruned=dict(pruned.most_common()),
        leanest_bytes=leanest if launchable else float("nan"),
    )


def _front(speed: Array, need: Array) -> NDArray[np.intp]:
    """Places of the Pareto front: nothing else is both faster and leaner. Fastest first."""
    order = np.lexsort((need, -speed))
    least = np.minimum.accumulate(need[order])
    is_front = np.ones(order.size, np.bool_)
    is_front[1:] = need[order][1:] < least[:-1]
    front: NDArray[np.intp] = order[is_front]
    return front


def _worth_keeping(fits: NDArray[np.bool_], speed: Array, need: Array, top: int) -> NDArray[np.bool_]:
    """Mask of a block's cells that can be among the best or on the front."""
    keep = np.zeros(fits.shape, np.bool_)
    places = np.flatnonzero(fits)
    if not places.size:
        return keep
    fast, lean = speed.ravel()[places], need.ravel()[places]
    chosen = np.argpartition(-fast, min(top, places.size - 1))[:top]
    keep.ravel()[places[chosen]] = True
    keep.ravel()[places[_front(fast, lean)]] = True
    return keep


def _rank(pool: _Pool, top: int) -> tuple[Layouts | None, Layouts | None]:
    if not pool.at or not sum(part.size for part in pool.speed):
        return None, None
    speed, need = np.concatenate(pool.speed), np.concatenate(pool.need)
    columns = {field.name: np.concatenate([getattr(part, field.name) for part in pool.at]) for field in fields(Layouts)}
    everything = Layouts(**columns)
    # Equal throughput: the leaner layout first.
    order = np.lexsort((need, -speed))[:top]
    return everything[order], everything[_front(speed, need)]


def _table(request: Request, at: Layouts | None) -> pl.DataFrame:
    """Layouts with their prediction and its breakdown, in the names of the `estimate` verb."""
    chosen = at if at is not None else Layouts.of()[np.zeros(0, np.intp)]
    predicted: Estimate = estimate(request.asked, chosen)
    size, worst = chosen.shape[0], predicted.memory

    def column(values: Array) -> Array:
        return np.broadcast_to(values, (size,))

    return pl.DataFrame(
        {
            **{name: column(getattr(chosen, name)).astype(np.int64) for name in _SHOWN},
            "recompute": [RECOMPUTE_MODES[int(code)] for code in column(chosen.recompute)],
            "est_mfu": column(predicted.mfu),
            "est_tokens_per_s_per_gpu": column(predicted.tokens_per_s_per_gpu),
            "est_step_time_s": column(predicted.step_time_s),
            "est_mem_bytes": column(predicted.mem_bytes),
            "est_mem_reserved_bytes": column(predicted.stages.reserved),
            **{f"est_mem_{part.name}_bytes": column(getattr(worst, part.name)) for part in fields(Memory)},
            **{f"est_time_{part.name}_s": column(getattr(predicted.time, part.name)) for part in fields(StepTime)},
        }
    )
