"""Segments of an allocator snapshot and the blocks in them, as arrays: the state at the end.

Keys and their history by PyTorch release: torch/csrc/cuda/memory_snapshot.cpp. What is refused: see `snapshot`.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError, count_of, integer_of, text_of
from sweepscope.pipeline.memory.snapshot.stream import SnapshotMachine
from sweepscope.pipeline.memory.snapshot.trace import Addresses, Ints

INACTIVE, ALLOCATED, PENDING = range(3)

# The docstring of torch.cuda.memory_snapshot has awaiting, the code has pending.
_STATES = {
    "inactive": INACTIVE,
    "active_allocated": ALLOCATED,
    "active_pending_free": PENDING,
    "active_awaiting_free": PENDING,
}


@dataclass(frozen=True)
class Segments:
    """One row per cudaMalloc, or per contiguous mapped range of an expandable segment; sizes in bytes."""

    address: Addresses
    size: Ints
    stream: Ints
    is_expandable: npt.NDArray[np.bool_]
    blocks: Ints


@dataclass(frozen=True)
class Blocks:
    """One row per block in address order of its segment. `requested`: bytes that the caller asked for.

    On an inactive block `requested` is a meaningless leftover. `stack` is -1 where none was recorded.
    """

    address: Addresses
    size: Ints
    requested: Ints
    state: npt.NDArray[np.uint8]
    stack: npt.NDArray[np.int32]
    segment: Ints


def read_segments(
    found: list[dict[str, Any]], machine: SnapshotMachine, warnings: list[str], *, number: int, budget: int
) -> tuple[Segments, Blocks]:
    """Segments and blocks of one device, both by address.

    Args:
        found: the segments of the snapshot.
        machine: knows their stacks.
        warnings: receives oddities that do not refuse the file.
        number: the device.
        budget: the most blocks that the file can have.

    Raises:
        RefusedError: values that no allocator writes.
    """
    rows = sorted(
        (
            (
                integer_of(segment.get("address", 0), "the address of a segment"),
                count_of(segment.get("total_size"), "the size of a segment"),
                segment,
            )
            for segment in found
        ),
        key=lambda row: row[:2],
    )
    for (address, size, _), (following, _, _) in itertools.pairwise(rows):
        if address + size > following:
            raise RefusedError(f"segments of device {number} overlap at 0x{following:x}")
    columns: list[tuple[int, int, int, int, int, int]] = []
    streams, expandable, counts = [], [], []
    loose = 0
    for at, (address, size, segment) in enumerate(rows):
        is_expandable = bool(segment.get("is_expandable", False))
        blocks = segment.get("blocks")
        if type(blocks) is not list:
            raise RefusedError("a segment has no list of blocks")
        if len(columns) + len(blocks) > budget:
            raise RefusedError("the same blocks are in several places")
        ends = _blocks(blocks, columns, machine, address=address, end=address + size, segment=at)
        if ends != address + size:
            if not is_expandable:
                raise RefusedError(f"the blocks of the segment at 0x{address:x} do not fill it")
            loose += 1
        streams.append(integer_of(segment.get("stream", 0), "the stream of a segment", bits=63))
        expandable.append(is_expandable)
        counts.append(len(blocks))
    if loose:
        warnings.append(f"device {number}: the blocks of {loose} expandable segments do not fill them")
    addresses, sizes, requested, state, stack, owner = zip(*columns, strict=True) if columns else ((),) * 6
    return (
        Segments(
            np.array([row[0] for row in rows], np.uint64),
            np.array([row[1] for row in rows], np.int64),
            np.array(streams, np.int64),
            np.array(expandable, np.bool_),
            np.array(counts, np.int64),
        ),
        Blocks(
            np.array(addresses, np.uint64),
            np.array(sizes, np.int64),
            np.array(requested, np.int64),
            np.array(state, np.uint8),
            np.array(stack, np.int32),
            np.array(owner, np.int64),
        ),
    )


def _blocks(
    blocks: list[Any],
    columns: list[tuple[int, int, int, int, int, int]],
    machine: SnapshotMachine,
    *,
    address: int,
    end: int,
    segment: int,
) -> int:
    """The address behind the last block of one segment, whose blocks are appended to `columns`."""
    here = address
    for block in blocks:
        if type(block) is not dict:
            raise RefusedError("a block is not a dict")
        size = count_of(block.get("size"), "the size of a block")
        at = block.get("address")
        at = here if at is None else integer_of(at, "the address of a block")
        if at < here or at + size > end:
            raise RefusedError(f"a block at 0x{at:x} leaves its segment or overlaps the one before")
        name = block.get("state")
        state = _STATES.get(name) if type(name) is str else None
        if state is None:
            raise RefusedError(f"a block in the state {text_of(name)[:40] or type(name).__name__}")
        history = _history(block)
        requested = block.get("requested_size", history.get("real_size", size))
        frames = block.get("frames", history.get("frames"))
        columns.append(
            (
                at,
                size,
                count_of(requested, "the requested size of a block"),
                state,
                machine.stack_index(frames),
                segment,
            )
        )
        here = at + size
    return here


def _history(block: dict[str, Any]) -> dict[str, Any]:
    """PyTorch before 2.1 kept the frames of a block in a list of its users, the newest first."""
    history = block.get("history")
    if type(history) is list and history and type(history[0]) is dict:
        return history[0]
    return {}
