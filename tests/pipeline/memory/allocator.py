"""A caching allocator without a GPU: what PyTorch's does with blocks and segments, and the snapshot it would dump.

Rules of c10/cuda/CUDACachingAllocator.cpp: sizes are rounded up to 512 bytes; requests up to 1 MiB come from 2 MiB
segments, below 10 MiB from 20 MiB ones, larger ones from segments rounded up to 2 MiB; the smallest free block of the
pool and stream that is large enough is taken, and split where at least 512 bytes (small pool) or more than 1 MiB (large
pool) remain; neighbours that are free are merged; when the device is full, free segments are given back, once.
Its own counters (`levels`) are the truth that a replay of its snapshot is held against.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

KIB, MIB = 1 << 10, 1 << 20
Frames = list[dict[str, Any]]


@dataclass(eq=False)
class Block:
    """A piece of a segment. `requested` is what its last user asked for."""

    address: int
    size: int
    segment: Segment
    requested: int = 0
    state: str = "inactive"
    frames: Frames = field(default_factory=list)


@dataclass(eq=False)
class Segment:
    """What one cudaMalloc returned."""

    address: int
    size: int
    stream: int
    is_small: bool
    frames: Frames
    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True)
class Level:
    """Bytes after an event."""

    allocated: int
    active: int
    reserved: int


class OutOfMemory(Exception):
    """The device cannot give what was asked for."""


class Allocator:
    """One device. `levels[i]` is the state after `i` events; `trace` the events as a snapshot holds them."""

    def __init__(self, *, capacity: int = 80 << 30, device: int = 0, base: int = 0x7F00_0000_0000) -> None:
        self.capacity, self.device, self._next = capacity, device, base
        self.segments: list[Segment] = []
        self.trace: list[dict[str, Any]] = []
        self.levels = [Level(0, 0, 0)]
        self._time_us = 1_700_000_000_000_000
        self._pending: list[tuple[Block, Frames]] = []

    def alloc(self, size: int, frames: Frames | None = None, stream: int = 0) -> Block:
        """Raises OutOfMemory after writing the event that says so."""
        frames = [] if frames is None else frames
        rounded = max(512, -(-size // 512) * 512)
        is_small = rounded <= MIB
        block = self._free_block(rounded, stream, is_small=is_small) or self._grow(rounded, stream, is_small, frames)
        if block is None:
            self.settle()
            self._give_back(frames)
            block = self._grow(rounded, stream, is_small, frames)
        if block is None:
            left = self.capacity - self.levels[-1].reserved
            self._event("oom", left, size, stream=stream, frames=frames, place="device_free")
            raise OutOfMemory(size)
        rest = block.size - rounded
        if rest >= 512 if is_small else rest > MIB:
            at = block.segment.blocks.index(block)
            block.segment.blocks.insert(at + 1, Block(block.address + rounded, rest, block.segment))
            block.size = rounded
        block.requested, block.state, block.frames = size, "active_allocated", frames
        self._event("alloc", block.address, size, stream=stream, frames=frames, allocated=size, active=size)
        return block

    def free(self, block: Block, frames: Frames | None = None, *, is_used_elsewhere: bool = False) -> None:
        """The program lets go; the block is reusable at once unless another stream still uses it."""
        frames = [] if frames is None else frames
        block.state = "active_pending_free"
        self._block_event("free_requested", block, frames, allocated=-block.requested)
        if is_used_elsewhere:
            self._pending.append((block, frames))
        else:
            self._complete(block, frames)

    def settle(self) -> None:
        """The other streams are done."""
        for block, frames in self._pending:
            self._complete(block, frames)
        self._pending.clear()

    def snapshot(self, *, last_events: int | None = None) -> dict[str, Any]:
        """The dict of `torch.cuda.memory._snapshot()`, with at most the last events."""
        trace = self.trace if last_events is None else self.trace[len(self.trace) - last_events :]
        return {
            "segments": [self._segment_row(segment) for segment in self.segments],
            "device_traces": [[] for _ in range(self.device)] + [trace],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "expandable_segments": False},
            "external_annotations": [],
        }

    def _segment_row(self, segment: Segment) -> dict[str, Any]:
        sizes = {
            state: sum(block.size for block in segment.blocks if block.state in state)
            for state in (("active_allocated",), ("active_allocated", "active_pending_free"))
        }
        allocated, active = sizes.values()
        return {
            "device": self.device,
            "address": segment.address,
            "total_size": segment.size,
            "stream": segment.stream,
            "allocated_size": allocated,
            "active_size": active,
            "requested_size": sum(block.requested for block in segment.blocks if block.state != "inactive"),
            "segment_type": "small" if segment.is_small else "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": segment.frames,
            "blocks": [
                {
                    "address": block.address,
                    "size": block.size,
                    "requested_size": block.requested,
                    "state": block.state,
                    "frames": block.frames,
                }
                for block in segment.blocks
            ],
        }

    def _free_block(self, size: int, stream: int, *, is_small: bool) -> Block | None:
        fitting = [
            block
            for segment in self.segments
            if segment.is_small == is_small and segment.stream == stream
            for block in segment.blocks
            if block.state == "inactive" and block.size >= size
        ]
        return min(fitting, key=lambda block: (block.size, block.address), default=None)

    def _grow(self, size: int, stream: int, is_small: bool, frames: Frames) -> Block | None:
        wanted = 2 * MIB if is_small else 20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
        if self.levels[-1].reserved + wanted > self.capacity:
            return None
        segment = Segment(self._next, wanted, stream, is_small, frames)
        self._next += wanted
        segment.blocks.append(Block(segment.address, wanted, segment))
        self.segments.append(segment)
        self._event("segment_alloc", segment.address, wanted, stream=stream, frames=frames, reserved=wanted)
        return segment.blocks[0]

    def _give_back(self, frames: Frames) -> None:
        for segment in list(self.segments):
            if len(segment.blocks) == 1 and segment.blocks[0].state == "inactive":
                self.segments.remove(segment)
                self._event(
                    "segment_free",
                    segment.address,
                    segment.size,
                    stream=segment.stream,
                    frames=frames,
                    reserved=-segment.size,
                )

    def _complete(self, block: Block, frames: Frames) -> None:
        self._block_event("free_completed", block, frames, active=-block.requested)
        block.state, block.frames = "inactive", []
        blocks = block.segment.blocks
        at = blocks.index(block)
        for neighbour in (at + 1, at - 1):
            if 0 <= neighbour < len(blocks) and blocks[neighbour].state == "inactive":
                first, second = sorted((at, neighbour))
                blocks[first].size += blocks[second].size
                blocks[first].requested = 0
                del blocks[second]
                at = first

    def _block_event(self, action: str, block: Block, frames: Frames, **change: int) -> None:
        self._event(action, block.address, block.requested, stream=block.segment.stream, frames=frames, **change)

    def _event(
        self,
        action: str,
        address: int,
        size: int,
        *,
        stream: int,
        frames: Frames,
        place: str = "addr",
        allocated: int = 0,
        active: int = 0,
        reserved: int = 0,
    ) -> None:
        self._time_us += 3
        self.trace.append(
            {
                "action": action,
                place: address,
                "size": size,
                "stream": stream,
                "time_us": self._time_us,
                "compile_context": "N/A",
                "user_metadata": "",
                "frames": frames,
            }
        )
        last = self.levels[-1]
        self.levels.append(Level(last.allocated + allocated, last.active + active, last.reserved + reserved))


def stack(*names: str, filename: str = "/run/train.py") -> Frames:
    """A stack of Python functions of one file, innermost first."""
    return [{"name": name, "filename": filename, "line": 10 * at} for at, name in enumerate(names, start=1)]


def train(allocator: Allocator, *, layers: int = 4, hidden: int = 256, tokens: int = 512, steps: int = 2) -> None:
    """A training step in mixed precision: parameters, activations, gradients, AdamW states made in the first step."""
    forward = stack("linear", "forward", "main")
    backward = [
        {"name": "torch::autograd::generated::MmBackward0::apply(std::vector&&)", "filename": "??", "line": 0},
        {"name": "torch::autograd::Engine::evaluate_function()", "filename": "??", "line": 0},
    ]
    zero_grad = stack("zero_grad", filename="/lib/torch/optim/optimizer.py")
    adam = [*stack("_init_group", "step", filename="/lib/torch/optim/adamw.py"), *stack("main")]
    update = [*stack("_multi_tensor_adamw", "step", filename="/lib/torch/optim/adamw.py"), *stack("main")]
    matrices = 12 * layers
    parameters = [allocator.alloc(2 * hidden * hidden, stack("Parameter", "__init__", "main")) for _ in range(matrices)]
    states: list[Block] = []
    for _ in range(steps):
        kept = [allocator.alloc(2 * tokens * hidden, list(forward)) for _ in range(4 * layers)]
        gradients = []
        for _parameter in parameters:
            gradients.append(allocator.alloc(2 * hidden * hidden, [_ACCUMULATE, *backward]))
            scratch = allocator.alloc(2 * tokens * hidden, list(backward))
            allocator.free(scratch, backward)
            if kept and len(gradients) % 3 == 0:
                allocator.free(kept.pop(), list(backward))
        if not states:
            states = [allocator.alloc(4 * hidden * hidden, list(adam)) for _ in range(2 * matrices)]
        for _parameter in parameters:
            allocator.free(allocator.alloc(4 * hidden * hidden, list(update)), update)
        for gradient in gradients:
            allocator.free(gradient, zero_grad)


_ACCUMULATE = {"name": "torch::autograd::AccumulateGrad::apply()", "filename": "??", "line": 0}


def merged(snapshots: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Snapshots of the devices of one process as the one it dumps."""
    traces: list[list[dict[str, Any]]] = []
    for at, snapshot in enumerate(snapshots):
        traces.append(snapshot["device_traces"][at])
    return {**snapshots[0], "segments": [s for each in snapshots for s in each["segments"]], "device_traces": traces}
