"""What mends a run that ran out of memory: the smallest change after which it is expected to fit, and its cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import polars as pl

from sweepscope.pipeline.estimate.physics.layouts import RECOMPUTE_MODES
from sweepscope.pipeline.estimate.planning.plan import Refuse
from sweepscope.pipeline.estimate.search.enumerate import Request, divisors
from sweepscope.pipeline.estimate.search.layout_table import layout_table, room_bytes
from sweepscope.pipeline.estimate.search.search import search
from sweepscope.pipeline.estimate.search.whatif import Choice, layouts_for, nearest_launchable
from sweepscope.pipeline.reference.layout_text import full_layout_text

EXPANDABLE = "expandable_segments:True"
"""Of PYTORCH_CUDA_ALLOC_CONF: segments grow, so that what lies free between blocks can be used."""
SPARE = 0.03
"""Share of memory by which a layout has to need less than one that ran out: less is within what runs differ by."""
_NAMES = {"mbs": "micro-batch", "zero_stage": "ZeRO", "recompute": "recomputation"}
_MOST = 400


@dataclass(frozen=True)
class Shortage:
    """The figures of PyTorch's out-of-memory line, in bytes: what it asked for, and had allocated and reserved.

    `free` is what the device had left then.
    """

    requested: int
    free: int
    allocated: int
    reserved: int

    @property
    def between_blocks_suffices(self) -> bool:
        """Whether what is reserved and not allocated would have served, had it lain in one piece with what is free."""
        return self.reserved - self.allocated + self.free >= self.requested

    @property
    def need(self) -> int:
        """The least that would have had to be allocated: later steps, or other ranks, may need more."""
        return self.allocated + self.requested

    @property
    def room(self) -> int:
        """What the allocator could have reserved at most, beside all else on the device."""
        return self.reserved + self.free


@dataclass(frozen=True)
class Mend:
    """A layout (a row of a search), what changes, its cost as a share of the estimated step time, the allocator's
    setting, and why it is expected to fit."""

    row: dict[str, Any]
    change: str
    cost: float
    allocator_conf: str | None
    why: str


def mend(
    request: Request,
    failed: Choice,
    refuse: Refuse,
    *,
    has_expandable: bool = False,
    like_failed: bool = False,
    shortage: Shortage | None = None,
) -> Mend | None:
    """The smallest change to `failed`, which ran out of memory: fewest knobs, then least cost; None where nothing fits.

    The estimate is scaled so that `failed` needs what its own line says that it needed, at least all that there is:
    what the estimate misses there, it misses elsewhere, too.

    Args:
        request: the cell's question.
        failed: layout that ran out of memory.
        refuse: why the framework that runs it cannot run a layout.
        has_expandable: whether it ran with expandable segments.
        like_failed: whether a run that needs no more memory ran out of it with them (`fails_with_expandable`).
        shortage: the figures of its out-of-memory line, where that has them.
    """
    before = layout_table(request, layouts_for(request, [failed])).row(0, named=True)
    room = room_bytes(request)
    scale = max(room / before["est_mem_reserved_bytes"], 1.0)
    if shortage is not None:
        room = min(room, shortage.room)
        scale = max(scale, shortage.need / before["est_mem_bytes"])
    limit = (1.0 - SPARE) * room
    if not (has_expandable or like_failed) and (why := _between_blocks(before, shortage, scale=scale, limit=limit)):
        return Mend(before, "expandable segments", 0.0, EXPANDABLE, why)
    conf = EXPANDABLE if has_expandable else None
    table = _table(request, failed)
    for rows, is_same_mesh in ((table, True), (search(request, top=_MOST, margin=SPARE).layouts, False)):
        fitting = rows.filter(scale * pl.col("est_mem_reserved_bytes") <= limit)
        kept = [row for row in fitting.iter_rows(named=True) if refuse({**row, "num_gpus": request.num_gpus}) is None]
        if kept:
            best = min(kept, key=lambda row: (_changes(failed, row) if is_same_mesh else 0, row["est_step_time_s"]))
            change = _change(failed, best) if is_same_mesh else f"another mesh: {full_layout_text(best)}"
            cost = best["est_step_time_s"] / before["est_step_time_s"] - 1.0
            why = _why(scale * best["est_mem_reserved_bytes"], limit, scale, shortage)
            return Mend(best, change, cost, conf, why)
    return None


_QUESTION = ("model", "accelerator", "num_gpus", "seq_len", "gbs", "precision", "framework")


def fails_with_expandable(planned: Mapping[str, Any], ran_out: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a run of the same question ran out of memory with expandable segments and needs no more than `planned`.

    `ran_out` are rows of `planned_runs` whose runs ran out of memory; need is by the estimate they were planned with.
    """
    return any(
        other["allocator_conf"] == EXPANDABLE
        and all(other[name] == planned[name] for name in _QUESTION)
        and other["est_mem_bytes"] is not None
        and planned["est_mem_bytes"] is not None
        and other["est_mem_bytes"] <= planned["est_mem_bytes"]
        for other in ran_out
    )


def _between_blocks(before: dict[str, Any], shortage: Shortage | None, *, scale: float, limit: float) -> str:
    """Why another allocator is enough: by the line where there is one, else by the estimate; "" where it is not."""
    if shortage is not None:
        if not shortage.between_blocks_suffices:
            return ""
        return (
            f"It asked for {_gib(shortage.requested)} with {_gib(shortage.free)} left on the device and "
            f"{_gib(shortage.reserved - shortage.allocated)} free between blocks, which can be used then."
        )
    if scale * before["est_mem_bytes"] > limit:
        return ""
    saved = before["est_mem_reserved_bytes"] - before["est_mem_bytes"]
    return f"What lies free between blocks, {scale * saved / 2**30:.1f} GiB by the estimate, can be used then."


def _table(request: Request, failed: Choice) -> pl.DataFrame:
    """Layouts on the same mesh with less of what takes memory: smaller micro-batches, more ZeRO, recomputation."""
    batches = [size for size in divisors(failed.mbs) if size <= failed.mbs]
    stages = [stage for stage in request.zero_stages if stage >= failed.zero_stage]
    modes = RECOMPUTE_MODES[RECOMPUTE_MODES.index(failed.recompute) :]
    tried = [
        Choice.of({**vars(failed), "mbs": size, "zero_stage": stage, "recompute": mode})
        for size, stage, mode in product(batches, stages, (mode for mode in modes if mode in request.recompute))
    ]
    fitting = [choice for choice in tried if choice != failed and nearest_launchable(request, choice) == choice]
    return layout_table(request, layouts_for(request, fitting or [failed]))


def _changes(failed: Choice, row: dict[str, Any]) -> int:
    return sum(row[name] != getattr(failed, name) for name in _NAMES)


def _change(failed: Choice, row: dict[str, Any]) -> str:
    return ", ".join(
        f"{what} {getattr(failed, name)} to {row[name]}"
        for name, what in _NAMES.items()
        if row[name] != getattr(failed, name)
    )


def _why(need: float, limit: float, scale: float, shortage: Shortage | None) -> str:
    asked = (
        f" What ran out asked for {_gib(shortage.requested)} beside {_gib(shortage.allocated)} allocated, with "
        f"{_gib(shortage.free)} left on the device."
        if shortage is not None
        else ""
    )
    corrected = f", the estimate times {scale:.2f}, for what ran out" if scale > 1.0 else ""
    return f"It is expected to need {need / 2**30:.1f} GiB of {limit / 2**30:.1f}{corrected}.{asked}"


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
