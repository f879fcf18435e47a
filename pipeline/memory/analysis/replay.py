"""Replay of a trace: bytes allocated, active and reserved after every event; `lifetimes` has those of the blocks.

A trace is a ring buffer, so it begins in the middle; the segments are the state after its last event, from which levels
are computed backwards. Levels are in requested bytes (events carry no rounded sizes): `active` is requested_bytes of
torch.cuda.memory_stats, `allocated` excludes blocks that the program has freed while another stream still uses them.
Allocator: c10/cuda/CUDACachingAllocator.cpp in PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sweepscope.pipeline.memory.analysis.lifetimes import Lifetimes, lifetimes, mismatches, pair
from sweepscope.pipeline.memory.snapshot import trace
from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError
from sweepscope.pipeline.memory.snapshot.segments import ALLOCATED, INACTIVE, PENDING
from sweepscope.pipeline.memory.snapshot.snapshot import Device
from sweepscope.pipeline.memory.snapshot.trace import Ints


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
    pairs = pair(events, ends_active)
    violations = mismatches(device, pairs, ends_active) | {
        "negative levels": int(sum((level < 0).sum() for level in (active, allocated, reserved))),
        "active above reserved": int((active > reserved).sum()),
        "times going backwards": _backwards(events.time_us),
    }
    return Replay(
        allocated=allocated,
        active=active,
        reserved=reserved,
        lifetimes=lifetimes(device, pairs),
        violations={name: count for name, count in violations.items() if count},
        notes=notes,
    )


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
