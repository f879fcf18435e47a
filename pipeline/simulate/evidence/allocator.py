"""A caching allocator that records what it does, by the rules of PyTorch's (c10/cuda/CUDACachingAllocator.cpp).

Sizes are rounded to 512 bytes; a segment is 2 MiB for small blocks, 20 MiB or a multiple of 2 MiB for large ones; the
smallest free block that fits is taken and split; free neighbours are merged. When the card is full, whole free segments
are given back before it gives up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

MIB = 2**20
Frames = list[dict[str, Any]]


class FullError(Exception):
    """The card has no room for an allocation, which the trace has as its last event."""


@dataclass
class Block:
    """A piece of a segment."""

    address: int
    size: int
    requested: int = 0
    is_used: bool = False
    frames: Frames = field(default_factory=list)


@dataclass
class Segment:
    """One piece of the card's memory and its blocks, in order of address."""

    address: int
    size: int
    is_small: bool
    frames: Frames
    blocks: list[Block]


@dataclass
class Allocator:
    """A card of so many bytes. `time_us` advances with each event."""

    capacity: int
    time_us: int
    segments: list[Segment] = field(default_factory=list)
    trace: list[dict[str, Any]] = field(default_factory=list)
    next_address: int = 0x7F0000000000

    @property
    def reserved(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    def allocate(self, size: int, frames: Frames) -> Block:
        """A block. Raises FullError."""
        rounded = max(512, -(-size // 512) * 512)
        is_small = rounded <= MIB
        found = self._free_block(rounded, is_small) or self._new_segment(rounded, is_small, frames)
        if found is None:
            self._give_back(frames)
            found = self._new_segment(rounded, is_small, frames)
        if found is None:
            self._event("oom", None, rounded, frames)
            raise FullError(size)
        segment, block = found
        left = block.size - rounded
        if left >= 512 if is_small else left > MIB:
            at = segment.blocks.index(block)
            segment.blocks.insert(at + 1, Block(block.address + rounded, left))
            block.size = rounded
        block.requested, block.is_used, block.frames = size, True, frames
        self._event("alloc", block.address, size, frames)
        return block

    def free(self, block: Block, frames: Frames) -> None:
        """Give a block back to its segment."""
        self._event("free_requested", block.address, block.requested, frames)
        self._event("free_completed", block.address, block.requested, frames)
        block.is_used, block.frames = False, []
        segment = next(one for one in self.segments if one.address <= block.address < one.address + one.size)
        merged: list[Block] = []
        for one in segment.blocks:
            if merged and not one.is_used and not merged[-1].is_used:
                merged[-1].size += one.size
            else:
                merged.append(one)
        segment.blocks = merged

    def snapshot(self, settings: str) -> dict[str, Any]:
        """What `torch.cuda.memory._snapshot()` returns, keys as in torch 2.5."""
        return {
            "segments": [_segment(one) for one in sorted(self.segments, key=lambda one: one.address)],
            "device_traces": [self.trace],
            "allocator_settings": {
                "PYTORCH_CUDA_ALLOC_CONF": settings,
                "max_split_size": -1,
                "garbage_collection_threshold": 0.0,
                "expandable_segments": False,
                "pinned_num_register_threads": 1,
                "release_lock_on_cudamalloc": False,
                "pinned_use_cuda_host_register": False,
                "roundup_power2_divisions": {},
            },
            "external_annotations": [],
        }

    def _free_block(self, size: int, is_small: bool) -> tuple[Segment, Block] | None:
        fitting = (
            (block.size, block.address, segment, block)
            for segment in self.segments
            if segment.is_small == is_small
            for block in segment.blocks
            if not block.is_used and block.size >= size
        )
        best = min(fitting, key=lambda one: one[:2], default=None)
        return (best[2], best[3]) if best else None

    def _new_segment(self, size: int, is_small: bool, frames: Frames) -> tuple[Segment, Block] | None:
        length = 2 * MIB if is_small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        if self.reserved + length > self.capacity:
            return None
        block = Block(self.next_address, length)
        segment = Segment(self.next_address, length, is_small, frames, [block])
        self.next_address += length
        self.segments.append(segment)
        self._event("segment_alloc", segment.address, length, frames)
        return segment, block

    def _give_back(self, frames: Frames) -> None:
        for segment in [one for one in self.segments if not any(block.is_used for block in one.blocks)]:
            self.segments.remove(segment)
            self._event("segment_free", segment.address, segment.size, frames)

    def _event(self, action: str, address: int | None, size: int, frames: Frames) -> None:
        self.time_us += 1_900
        where = {"device_free": self.capacity - self.reserved} if address is None else {"addr": address}
        self.trace.append(
            {"action": action, **where, "size": size, "stream": 0, "time_us": self.time_us, "frames": frames}
        )


def _segment(segment: Segment) -> dict[str, Any]:
    used = [block for block in segment.blocks if block.is_used]
    allocated = sum(block.size for block in used)
    return {
        "device": 0,
        "address": segment.address,
        "total_size": segment.size,
        "allocated_size": allocated,
        "active_size": allocated,
        "requested_size": sum(block.requested for block in used),
        "stream": 0,
        "segment_type": "small" if segment.is_small else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": segment.frames,
        "blocks": [
            {
                "address": block.address,
                "size": block.size,
                "requested_size": block.requested,
                "state": "active_allocated" if block.is_used else "inactive",
                "frames": block.frames,
            }
            for block in segment.blocks
        ],
    }
