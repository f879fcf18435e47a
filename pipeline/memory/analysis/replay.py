"""Replay of a trace: bytes allocated, active and reserved after every event, and the lifetime of every block.

A trace is a ring buffer, so it begins in the middle; the segments are the state after its last event, from which levels
are computed backwards. Levels are in requested bytes (events carry no rounded sizes): `active` is requested_bytes of
torch.cuda.memory_stats, `allocated` excludes blocks that the program has freed while another stream still uses them.
Allocator: c10/cuda/CUDACachingAllocator.cpp in PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sweepscope.pipeline.memory.snapshot import trace
from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError
from sweepscope.pipeline.memory.snapshot.segments import ALLOCATED, INACTIVE, PENDING
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
class Replay:
    """Levels after 0 to n events, in bytes, and counts of contradictions by name."""

    allocated: Ints
    active: Ints
    reserved: Ints
    lifetimes: Lifetimes
    violations: dict[str, int]
    notes: list[str]

    @property
    def is_cut(self) -> bool:
        """Whether memory was in use before the first event, so that the true peak may be before the window."""
        return len(self.active) == 1 or bool(self.active[0] > 0 or self.reserved[0] > 0)


def replay(device: Device) -> Replay:
    """Replay one device.

    Raises:
        RefusedError: an address is allocated twice without a free between, or the sizes cannot be added up.
    """
    events, blocks = device.events, device.blocks
    action, size = events.action, events.size
    total = float(size.sum(dtype=np.float64)) + float(device.segments.size.sum(dtype=np.float64))
    if total + float(blocks.requested.sum(dtype=np.float64)) > 2.0**62:
        raise RefusedError("sizes that add up beyond any device")
    requested = np.where(blocks.state != INACTIVE, blocks.requested, 0)
    notes: list[str] = []
    kinds = np.bincount(action, minlength=trace.UNKNOWN + 1)
    ends_active, ends_allocated = _freeing_actions(kinds, has_pending=bool((blocks.state == PENDING).any()))
    if ends_active != trace.FREE_COMPLETED:
        notes.append("no free_completed events were recorded; free_requested stands for both")
    if ends_allocated != trace.FREE_REQUESTED:
        notes.append("no free_requested events were recorded; free_completed stands for both")
    is_alloc = action == trace.ALLOC
    active = _levels(int(requested.sum()), size, is_alloc, action == ends_active)
    allocated = _levels(int(requested[blocks.state == ALLOCATED].sum()), size, is_alloc, action == ends_allocated)
    grows = (action == trace.SEGMENT_ALLOC) | (action == trace.SEGMENT_MAP)
    shrinks = (action == trace.SEGMENT_FREE) | (action == trace.SEGMENT_UNMAP)
    reserved = _levels(int(device.segments.size.sum()), size, grows, shrinks)
    lifetimes, violations = _lifetimes(device, ends_active)
    violations |= {
        "negative levels": int(sum((level < 0).sum() for level in (active, allocated, reserved))),
        "active above reserved": int((active > reserved).sum()),
        "times going backwards": _backwards(events.time_us),
    }
    return Replay(allocated, active, reserved, lifetimes, {k: n for k, n in violations.items() if n}, notes)


def _freeing_actions(kinds: npt.NDArray[np.intp], *, has_pending: bool) -> tuple[int, int]:
    """Actions that end "active" and "allocated". One of the two may not have been recorded (skip_actions).

    Requested frees that are still pending at the end do not indicate that, nor does a single completed one: the window
    may begin between the two.
    """
    requested, completed = bool(kinds[trace.FREE_REQUESTED]), kinds[trace.FREE_COMPLETED] > 1
    ends_active = trace.FREE_REQUESTED if requested and not completed and not has_pending else trace.FREE_COMPLETED
    ends_allocated = trace.FREE_COMPLETED if completed and not requested else trace.FREE_REQUESTED
    return ends_active, ends_allocated


def _levels(at_end: int, size: Ints, rises: npt.NDArray[np.bool_], falls: npt.NDArray[np.bool_]) -> Ints:
    levels = np.zeros(len(size) + 1, np.int64)
    np.cumsum(size * (rises.astype(np.int8) - falls.astype(np.int8)), out=levels[1:])
    levels += at_end - levels[-1]
    return levels


def _backwards(time_us: Ints) -> int:
    known = time_us[time_us != trace.NO_TIME]
    return int((np.diff(known) < 0).sum())


def _lifetimes(device: Device, ends_active: int) -> tuple[Lifetimes, dict[str, int]]:
    """Lifetimes, from allocations paired with frees by address and with the blocks at the end; counts of violations."""
    events, blocks = device.events, device.blocks
    count = len(events)
    index = np.flatnonzero((events.action == trace.ALLOC) | (events.action == ends_active))
    index = index[np.argsort(events.addr[index], kind="stable")]
    addr, size = events.addr[index], events.size[index]
    is_alloc = events.action[index] == trace.ALLOC
    same = addr[1:] == addr[:-1]
    follows = np.concatenate(([False], same)) if len(addr) else np.zeros(0, np.bool_)
    precedes = np.concatenate((same, [False])) if len(addr) else np.zeros(0, np.bool_)
    twice = np.flatnonzero(same & is_alloc[1:] & is_alloc[:-1])
    if len(twice):
        raise RefusedError(f"0x{int(addr[twice[0]]):x} is allocated twice without a free between ({len(twice)} times)")
    allocs = np.flatnonzero(is_alloc)
    freed = allocs[precedes[allocs]]  # the next event of the address is its free
    kept = allocs[~precedes[allocs]]
    initial = np.flatnonzero(~is_alloc & ~follows)
    again = int((same & ~is_alloc[1:] & ~is_alloc[:-1]).sum())
    live = np.flatnonzero(blocks.state != INACTIVE)
    live = live[np.argsort(blocks.address[live], kind="stable")]
    at = np.searchsorted(blocks.address[live], addr[kept])
    at = np.minimum(at, max(len(live) - 1, 0))
    is_there = blocks.address[live][at] == addr[kept] if len(live) else np.zeros(len(kept), np.bool_)
    untouched = live[~np.isin(blocks.address[live], addr)]
    last_is_free = np.unique(addr[~is_alloc & ~precedes])
    violations = {
        "addresses that do not match": again
        + int((~is_there).sum())
        + int(np.isin(blocks.address[live], last_is_free).sum())
        + _freed_but_allocated(device, ends_active),
        "sizes that do not match": int((size[freed] != size[freed + 1]).sum())
        + int((size[kept][is_there] != blocks.requested[live][at][is_there]).sum() if len(live) else 0),
    }
    streams = device.segments.stream[blocks.segment[untouched]] if len(untouched) else np.empty(0, np.int64)
    with_frames = blocks.stack[untouched] >= 0
    rows = [
        (size[freed], index[freed], index[freed + 1], index[freed], RECORDED),
        (size[kept], index[kept], np.full(len(kept), count), index[kept], RECORDED),
        (size[initial], np.full(len(initial), BEFORE), index[initial], index[initial], FROM_FREE),
    ]
    sizes, begins, ends, stack_event, _ = (list(column) for column in zip(*rows, strict=True))
    origins = [np.full(len(row[0]), row[4], np.uint8) for row in rows]
    return (
        Lifetimes(
            size=np.concatenate([*sizes, blocks.requested[untouched]]),
            begin=np.concatenate([*begins, np.full(len(untouched), BEFORE)]),
            end=np.concatenate([*ends, np.full(len(untouched), count)]),
            stack=np.concatenate([*(events.stack[i] for i in stack_event), blocks.stack[untouched]]),
            stream=np.concatenate([*(events.stream[i] for i in stack_event), streams]),
            label=np.concatenate([*(events.label[i] for i in stack_event), np.zeros(len(untouched), np.int32)]),
            origin=np.concatenate([*origins, np.where(with_frames, FROM_BLOCK, NO_RECORD).astype(np.uint8)]),
        ),
        violations,
    )


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
