"""Events of an allocator snapshot as columns, which `sink` fills while the pickle is read (docs/performance.md).

Keys and actions: torch/csrc/cuda/memory_snapshot.cpp and torch/cuda/_memory_viz.py in PyTorch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

ACTIONS: Final = (
    *("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free"),
    *("segment_map", "segment_unmap", "snapshot", "oom", "user_defined"),
)
ALLOC, FREE_REQUESTED, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP = range(7)
OOM, USER_DEFINED = 8, 9
UNKNOWN: Final = len(ACTIONS)

NO_TIME: Final = -1
NO_STACK: Final = -1

Ints = npt.NDArray[np.int64]
Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Events:
    """Columns of one device's trace, oldest event first. `size` in bytes as requested; `time_us` Unix time or -1.

    `addr` of an `oom` event is the free memory that the device reported. `label` is 0 or the index of the block's
    label. `stack` is an index into the stacks of the snapshot, or -1.
    """

    action: npt.NDArray[np.uint8]
    addr: Addresses
    size: Ints
    stream: Ints
    time_us: Ints
    stack: npt.NDArray[np.int32]
    label: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.action)

    def part(self, ranges: Sequence[tuple[int, int]]) -> Events:
        """The events of several ranges, one after the other; no copy for a single range."""
        if len(ranges) == 1:
            begin, end = ranges[0]
            return Events(*(column[begin:end] for column in vars(self).values()))
        columns = zip(*([c[begin:end] for c in vars(self).values()] for begin, end in ranges), strict=True)
        return Events(*(np.concatenate(pieces) for pieces in columns)) if ranges else no_events()


def no_events() -> Events:
    """A trace without events."""
    none, no_index = np.empty(0, np.int64), np.empty(0, np.int32)
    return Events(np.empty(0, np.uint8), np.empty(0, np.uint64), none, none, none, no_index, no_index)
