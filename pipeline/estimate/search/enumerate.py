"""Every layout of a question: the grid of degrees, micro-batches, sharding, recomputation and pipeline schedules.

The grid has five axes: topology (tp, cp, pp, ep and what follows for dp), micro-batch, sharding (ZeRO stage and the
group it shards over), recomputation, schedule with its chunks. Cells that cannot be launched keep the reason; nothing
is left out silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.feasible import REASONS, reason_codes
from sweepscope.pipeline.estimate.physics.layouts import RECOMPUTE_MODES, SCHEDULES, Array, Layouts
from sweepscope.pipeline.estimate.physics.profile import Profile, drops_selectively
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.physics.schedule import AFAB, INTERLEAVED, ONE_F_ONE_B, V_SHAPED, ZB_H1
from sweepscope.schemas.thresholds import CP_TOKENS

BLOCK = 60_000
"""Cells per block of the grid: few enough for the processor's cache, enough to drown the cost of a call."""

ALL, NODE = "all", "node"
BATCH = "the global batch is no multiple of dp x micro-batch"
USELESS = "same as another layout (sharding, its groups or a schedule over one rank)"
REASONS_OF_GRID = (*REASONS, BATCH, USELESS)


@dataclass(frozen=True)
class Request:
    """What to lay out: `num_gpus` accelerators, `gbs` sequences per step, and the choices to try.

    `schedules` are words of SCHEDULES. `shard_groups` are the ranks of dp x cp that share one copy of the sharded
    states: ALL of them, those in one NODE, or a number (HSDP). Degrees go up to their `max_`, and without one as far as
    heads, layers and experts do; context parallelism only to one rank per CP_TOKENS: physics allows it below, as fast
    as a larger micro-batch, but trainers need code for it. 1 is for a framework that does not have the dimension.
    """

    asked: Question
    num_gpus: int
    gbs: int
    max_mbs: int = 64
    zero_stages: tuple[int, ...] = (0, 1, 2, 3)
    recompute: tuple[str, ...] = RECOMPUTE_MODES
    max_vpp: int = 8
    max_cp: int | None = None
    max_tp: int | None = None
    max_pp: int | None = None
    max_ep: int | None = None
    schedules: tuple[str, ...] = ("1f1b", "interleaved")
    shard_groups: tuple[str | int, ...] = ("all",)

    @property
    def cp_limit(self) -> int:
        """The largest degree of context parallelism that a search tries."""
        return self.max_cp or max(self.asked.seq_len // CP_TOKENS, 1)


def divisors(number: int, limit: int | None = None) -> list[int]:
    """Divisors in ascending order, up to `limit`.

    >>> divisors(12, 6)
    [1, 2, 3, 4, 6]
    """
    top = number if limit is None else min(limit, number)
    return [candidate for candidate in range(1, top + 1) if number % candidate == 0]


def _topologies(request: Request) -> Array:
    """Rows (tp, cp, pp, ep) whose product with some dp is the accelerator count. Heads and layers are judged later."""
    shape, gpus = request.asked.shape, request.num_gpus
    tps = [d for d in divisors(gpus, request.max_tp) if d <= shape.num_heads]
    cps = divisors(gpus, request.cp_limit)
    pps = [d for d in divisors(gpus, request.max_pp) if d <= 2 * shape.num_layers]
    eps = divisors(shape.num_experts, request.max_ep) if shape.num_experts else [1]
    mesh = np.stack(np.meshgrid(tps, cps, pps, eps, indexing="ij"), axis=-1).reshape(-1, 4).astype(np.float64)
    kept: Array = mesh[gpus % (mesh[:, 0] * mesh[:, 1] * mesh[:, 2]) == 0]
    return kept


def chunk_counts(request: Request) -> list[int]:
    """Chunks on each stage to try, 1 among them: those that divide the layers, alone or with embedding and head."""
    layers = request.asked.shape.num_layers
    return sorted({*divisors(layers, request.max_vpp), *divisors(layers + 2, request.max_vpp)})


def _schedules(request: Request) -> list[tuple[int, int]]:
    """(code, chunks on each stage) of every schedule to try; V forms have two chunks, only interleaving a choice."""
    chunks = chunk_counts(request)
    tried = [SCHEDULES.index(word) for word in request.schedules]
    found = []
    for code in tried:
        counts = chunks[1:] if code == INTERLEAVED else [2] if SCHEDULES[code] in V_SHAPED else [1]
        found += [(code, count) for count in counts]
    return found


def _shardings(request: Request) -> list[tuple[int, str | int]]:
    """(ZeRO stage, group) of every sharding to try; without ZeRO there is nothing to group."""
    return [(stage, group) for stage in request.zero_stages for group in (request.shard_groups if stage else (ALL,))]


def replicas_of(request: Request, group: str | int, *, tp: Array, cp: Array, pp: Array) -> Array:
    """Copies of the sharded states that a group leaves: below 1 where it has more ranks than there are."""
    ranks = request.num_gpus / (tp * pp)
    if group == ALL:
        return np.ones_like(ranks * cp)
    inside = np.maximum(request.asked.cluster.gpus_per_node / tp, 1.0) if group == NODE else float(group)
    return ranks / inside * np.ones_like(cp)


def _recompute_codes(profile: Profile, modes: tuple[str, ...]) -> list[int]:
    """Codes of the modes to try, without selective recomputation where it has nothing to drop."""
    return [RECOMPUTE_MODES.index(mode) for mode in modes if mode != "selective" or drops_selectively(profile)]


@dataclass(frozen=True)
class Block:
    """Some topologies with all choices: layouts as a grid, and the reason code of each cell (0: can be launched)."""

    at: Layouts
    codes: NDArray[np.int8]


def blocks(request: Request) -> Iterator[Block]:
    """The grid in blocks of about BLOCK cells."""
    topologies = _topologies(request)
    axes = (
        divisors(request.gbs, request.max_mbs),
        range(len(shardings := _shardings(request))),
        _recompute_codes(request.asked.profile, request.recompute),
        range(len(schedules := _schedules(request))),
    )
    cells = int(np.prod([len(axis) for axis in axes]))
    step = max(BLOCK // cells, 1)
    mbs, sharding, recompute, pipeline = (
        np.array(axis, np.float64).reshape((1, *(-1 if other == index else 1 for other in range(4))))
        for index, axis in enumerate(axes)
    )
    zero = np.array([stage for stage, _ in shardings], np.float64).reshape(sharding.shape)
    schedule, vpp = (np.array(column, np.float64).reshape(pipeline.shape) for column in zip(*schedules, strict=True))
    for start in range(0, len(topologies), step):
        tp, cp, pp, ep = (column.reshape(-1, 1, 1, 1, 1) for column in topologies[start : start + step].T)
        copies = np.concatenate(
            [replicas_of(request, group, tp=tp, cp=cp, pp=pp) for _, group in shardings], axis=sharding.ndim - 3
        )
        at = lay_out(
            request,
            tp=tp,
            cp=cp,
            pp=pp,
            ep=ep,
            mbs=mbs,
            zero_stage=zero,
            recompute=recompute,
            vpp=vpp,
            schedule=schedule,
            dp_replicate=np.maximum(copies, 1.0),
        )
        codes = launch_codes(request, at)
        yield Block(at, np.where(_again(shardings, at) & (codes == 0), np.int8(REASONS_OF_GRID.index(USELESS)), codes))


def _again(shardings: list[tuple[int, str | int]], at: Layouts) -> NDArray[np.bool_]:
    """Whether each group comes to what an earlier one of the same ZeRO stage came to: larger than all ranks, or equal.

    A group of another number is a number of copies that is not whole.
    """
    again = np.zeros(at.dp_replicate.shape, np.bool_)
    for later, (stage, _) in enumerate(shardings):
        for earlier, (other, _) in enumerate(shardings[:later]):
            if other == stage:
                again[:, :, later] |= at.dp_replicate[:, :, later] == at.dp_replicate[:, :, earlier]
    return again


def lay_out(
    request: Request,
    *,
    tp: Array,
    cp: Array,
    pp: Array,
    ep: Array,
    mbs: Array,
    zero_stage: Array,
    recompute: Array,
    vpp: Array,
    schedule: Array | None = None,
    dp_replicate: Array | float = 1.0,
) -> Layouts:
    """The layouts that follow from these choices, which broadcast: dp takes the rest of the accelerators, gas the rest
    of the batch. `recompute` and `schedule` index RECOMPUTE_MODES and SCHEDULES; without a schedule it is
    1F1B, interleaved where there are chunks. `launch_codes` refuses what does not divide.
    """
    dp = request.num_gpus / (tp * cp * pp)
    return Layouts.of(
        dp=dp,
        tp=tp,
        pp=pp,
        cp=cp,
        ep=ep,
        etp=np.where(dp * cp % ep == 0, tp, 1.0),
        mbs=mbs,
        gas=np.maximum(np.floor(request.gbs / (dp * mbs)), 1.0),
        zero_stage=zero_stage,
        recompute=recompute,
        vpp=vpp,
        sequence_parallel=np.where(tp > 1, float(request.asked.profile.is_sequence_parallel), 0.0),
        schedule=np.where(vpp > 1, float(INTERLEAVED), float(ONE_F_ONE_B)) if schedule is None else schedule,
        dp_replicate=dp_replicate,
    )


def launch_codes(request: Request, at: Layouts) -> NDArray[np.int8]:
    """Index in REASONS_OF_GRID of why each layout cannot be launched for `request`; 0 where it can."""
    codes = reason_codes(request.asked.shape, at, request.asked.seq_len, even_stages=False)
    batch = request.gbs % (at.dp * at.mbs) != 0
    alone = (at.zero_stage > 0) & (at.zero_shards == 1)
    alone = alone | ((at.schedule >= ZB_H1) | (at.schedule == AFAB)) & (at.pp == 1)
    codes = np.where((codes == 0) & batch, REASONS_OF_GRID.index(BATCH), codes)
    return np.where((codes == 0) & alone, REASONS_OF_GRID.index(USELESS), codes).astype(np.int8)
