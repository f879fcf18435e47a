"""Lifetimes of blocks, from allocations paired with frees by address and from the blocks that are live at the end.

A trace begins in the middle, so a block may have been allocated before its first event; then the event that freed it,
or the block in the segments, is all that is known of it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from sweepscope.pipeline.memory.snapshot import trace
from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError
from sweepscope.pipeline.memory.snapshot.segments import ALLOCATED, INACTIVE
from sweepscope.pipeline.memory.snapshot.snapshot import Device
from sweepscope.pipeline.memory.snapshot.trace import Ints

BEFORE = -1
"""`begin` of a block that existed before the first event."""

RECORDED, FROM_BLOCK, FROM_FREE, NO_RECORD = range(4)
"""Origin of a block's stack: its allocation, the block at the end, the event that freed it, none."""


@dataclass(frozen=True)
class Lifetimes:
    """One row per block that was alive during the window: it is live after `i` events if begin < i <= end.

    `begin` is the index of its allocation or -1, `end` that of the event that ended it or the number of events.
    """

    size: Ints
    begin: Ints
    end: Ints
    stack: npt.NDArray[np.int32]
    stream: Ints
    label: npt.NDArray[np.int32]
    origin: npt.NDArray[np.uint8]

    def at(self, index: int) -> npt.NDArray[np.intp]:
        """Rows that are live after `index` events."""
        return np.flatnonzero((self.begin < index) & (self.end >= index))


@dataclass(frozen=True)
class Pairs:
    """Allocations and the events that end them, sorted by address and, at one address, in the order recorded.

    Attributes:
        index: of the event in the trace, by row.
        addr: of the block, by row.
        size: in bytes, by row.
        freed: rows of allocations whose next row ends them.
        kept: rows of allocations that nothing ends.
        initial: rows that end a block without an allocation: it existed before the first event.
        last_ends: rows that end a block at an address of which nothing more is recorded.
        repeated_ends: number of rows that end a block right after another such row of its address.
    """

    index: npt.NDArray[np.intp]
    addr: trace.Addresses
    size: Ints
    freed: npt.NDArray[np.intp]
    kept: npt.NDArray[np.intp]
    initial: npt.NDArray[np.intp]
    last_ends: npt.NDArray[np.intp]
    repeated_ends: int


def pair(events: trace.Events, ends_active: int) -> Pairs:
    """Allocations paired with the events that end them. Raises RefusedError for an address that is allocated twice."""
    index = np.flatnonzero((events.action == trace.ALLOC) | (events.action == ends_active))
    index = index[np.argsort(events.addr[index], kind="stable")]
    addr = events.addr[index]
    is_alloc = events.action[index] == trace.ALLOC
    same = addr[1:] == addr[:-1]
    follows = np.concatenate(([False], same)) if len(addr) else np.zeros(0, np.bool_)
    precedes = np.concatenate((same, [False])) if len(addr) else np.zeros(0, np.bool_)
    twice = np.flatnonzero(same & is_alloc[1:] & is_alloc[:-1])
    if len(twice):
        raise RefusedError(f"0x{int(addr[twice[0]]):x} is allocated twice without a free between ({len(twice)} times)")
    return Pairs(
        index=index,
        addr=addr,
        size=events.size[index],
        freed=np.flatnonzero(is_alloc & precedes),
        kept=np.flatnonzero(is_alloc & ~precedes),
        initial=np.flatnonzero(~is_alloc & ~follows),
        last_ends=np.flatnonzero(~is_alloc & ~precedes),
        repeated_ends=int((same & ~is_alloc[1:] & ~is_alloc[:-1]).sum()),
    )


def lifetimes(device: Device, pairs: Pairs) -> Lifetimes:
    """Lifetimes of blocks that events name, and of those that are live at the end and that no event names."""
    events, blocks = device.events, device.blocks
    index, size, end = pairs.index, pairs.size, len(events)
    freed, kept, initial = pairs.freed, pairs.kept, pairs.initial

    def recorded(rows: npt.NDArray[np.intp], begin: Ints, end: Ints, origin: int) -> Lifetimes:
        at = index[rows]
        return Lifetimes(
            size=size[rows],
            begin=begin,
            end=end,
            stack=events.stack[at],
            stream=events.stream[at],
            label=events.label[at],
            origin=np.full(len(rows), origin, np.uint8),
        )

    untouched = np.flatnonzero(blocks.state != INACTIVE)
    untouched = untouched[np.argsort(blocks.address[untouched], kind="stable")]
    untouched = untouched[~np.isin(blocks.address[untouched], pairs.addr)]
    streams = device.segments.stream[blocks.segment[untouched]] if len(untouched) else np.empty(0, np.int64)
    has_stack = blocks.stack[untouched] >= 0
    return _concat(
        recorded(freed, index[freed], index[freed + 1], RECORDED),
        recorded(kept, index[kept], np.full(len(kept), end), RECORDED),
        recorded(initial, np.full(len(initial), BEFORE), index[initial], FROM_FREE),
        Lifetimes(
            size=blocks.requested[untouched],
            begin=np.full(len(untouched), BEFORE),
            end=np.full(len(untouched), end),
            stack=blocks.stack[untouched],
            stream=streams,
            label=np.zeros(len(untouched), np.int32),
            origin=np.where(has_stack, FROM_BLOCK, NO_RECORD).astype(np.uint8),
        ),
    )


def _concat(*parts: Lifetimes) -> Lifetimes:
    columns = {
        column.name: np.concatenate([getattr(part, column.name) for part in parts]) for column in fields(Lifetimes)
    }
    return Lifetimes(**columns)


def mismatches(device: Device, pairs: Pairs, ends_active: int) -> dict[str, int]:
    """How often the events contradict each other, or the blocks at the end."""
    blocks, size = device.blocks, pairs.size
    live = np.flatnonzero(blocks.state != INACTIVE)
    live = live[np.argsort(blocks.address[live], kind="stable")]
    address = blocks.address[live]
    at = np.minimum(np.searchsorted(address, pairs.addr[pairs.kept]), max(len(live) - 1, 0))
    is_live = address[at] == pairs.addr[pairs.kept] if len(live) else np.zeros(len(pairs.kept), np.bool_)
    addresses = pairs.repeated_ends + int((~is_live).sum()) + int(np.isin(address, pairs.addr[pairs.last_ends]).sum())
    sizes = int((size[pairs.freed] != size[pairs.freed + 1]).sum())
    if len(live):
        sizes += int((size[pairs.kept][is_live] != blocks.requested[live][at][is_live]).sum())
    return {
        "addresses that do not match": addresses + _freed_but_allocated(device, ends_active),
        "sizes that do not match": sizes,
    }


def _freed_but_allocated(device: Device, ends_active: int) -> int:
    """Number of blocks that were freed after their last allocation but are allocated in the segments."""
    events, blocks = device.events, device.blocks
    if ends_active == trace.FREE_REQUESTED:
        return 0
    index = np.flatnonzero((events.action == trace.ALLOC) | (events.action == trace.FREE_REQUESTED))
    index = index[np.argsort(events.addr[index], kind="stable")]
    addr = events.addr[index]
    is_last = np.concatenate((addr[1:] != addr[:-1], [True])) if len(addr) else np.zeros(0, np.bool_)
    freed = addr[is_last & (events.action[index] == trace.FREE_REQUESTED)]
    return int(np.isin(blocks.address[blocks.state == ALLOCATED], freed).sum())
