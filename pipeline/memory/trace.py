"""The events of an allocator snapshot as columns, filled while the pickle is read.

An entry of `device_traces` is a dict of about ten keys; a million of them as Python objects take 700 MB, as columns
50 MB. Keys and actions: torch/csrc/cuda/memory_snapshot.cpp and torch/cuda/_memory_viz.py in PyTorch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from pipeline.memory.values import RefusedError, count_of, integer_of

ACTIONS: Final = (
    "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap",
    "snapshot", "oom", "user_defined",
)  # fmt: skip
ALLOC, FREE_REQUESTED, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP = range(7)
SNAPSHOT, OOM, USER_DEFINED = range(7, 10)
UNKNOWN: Final = len(ACTIONS)

NO_TIME: Final = -1
NO_STACK: Final = -1
FLUSH_ROWS = 16_384

Ints = npt.NDArray[np.int64]
Addresses = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Events:
    """Columns of one device's trace, oldest event first. `size` in bytes as requested; `time_us` Unix time or -1.

    `addr` of an `oom` event is the free memory that the device reported. `label` is 0 or the index of the user's own
    word for the block. `stack` is an index into the stacks of the snapshot, or -1.
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


@dataclass
class EventSink:
    """Takes events one by one or as undecoded integers, and hands them over as columns."""

    unknown_actions: dict[str, int] = field(default_factory=dict)
    labels: list[str] = field(default_factory=lambda: [""])
    count: int = 0
    _label_index: dict[str, int] = field(default_factory=lambda: {"": 0})
    _chunks: list[Events] = field(default_factory=list)
    _raw: tuple[list[bytes], ...] = field(default_factory=lambda: ([], [], []))
    _known: tuple[list[int], ...] = field(default_factory=lambda: ([], [], [], []))

    def code(self, action: str) -> int:
        """Number of an action; all unknown ones share one."""
        return _CODES.get(action, UNKNOWN)

    def label(self, text: str) -> int:
        """Number of a user's word; 0 for none."""
        if text not in self._label_index:
            self._label_index[text] = len(self.labels)
            self.labels.append(text)
        return self._label_index[text]

    def add(self, event: Mapping[str, Any], stack: int) -> int:
        """Append one entry as the writer gave it; its index. Raises RefusedError for values that cannot be."""
        action = event.get("action")
        if type(action) is not str:
            raise RefusedError("an event whose action is not text")
        code = self.code(action)
        if code == UNKNOWN:
            self.note_unknown(action)
        place = event.get("device_free") if code == OOM else event.get("addr")
        time = event.get("time_us")
        (addrs, sizes, times), (actions, streams, stacks, labels) = self._raw, self._known
        # As opcodes, like those that are taken over undecoded: rows of two kinds would be decoded in many small parts.
        addrs.append(_opcode(integer_of(0 if place is None else place, "the address of an event")))
        sizes.append(_opcode(count_of(event.get("size", 0), "the size of an event")))
        streams.append(integer_of(event.get("stream", 0), "the stream of an event", bits=63))
        times.append(b"" if time is None else _opcode(integer_of(time, "the time of an event", bits=63)))
        actions.append(code)
        stacks.append(stack)
        labels.append(self.label(_word(event)))
        self.added(1)
        return self.count - 1

    def note_unknown(self, action: str) -> None:
        """Count an action that PyTorch did not have when this was written."""
        self.unknown_actions[action[:80]] = self.unknown_actions.get(action[:80], 0) + 1

    def raw_lists(self) -> tuple[tuple[list[bytes], ...], tuple[list[int], ...]]:
        """Lists to append to, then `added`: opcodes of addr, size, time; numbers of action, stream, stack, label."""
        return self._raw, self._known

    def added(self, count: int) -> None:
        """`count` events were appended to the lists."""
        self.count += count
        if len(self._raw[0]) >= FLUSH_ROWS:
            self._flush()

    def events(self) -> Events:
        """Everything so far."""
        if self._raw[0]:
            self._flush()
        if len(self._chunks) > 1:
            pieces = zip(*(vars(chunk).values() for chunk in self._chunks), strict=True)
            self._chunks = [Events(*(np.concatenate(columns) for columns in pieces))]
        return self._chunks[0] if self._chunks else no_events()

    def _flush(self) -> None:
        addr, size, time = (decode_integers(parts) for parts in self._raw)
        times = np.where([bool(part) for part in self._raw[2]], time.astype(np.int64), NO_TIME)
        if size.size and int(size.max()) >> 63:
            raise RefusedError("an event of over 2**63 bytes")
        action, stream, stack, label = self._known
        self._chunks.append(
            Events(
                action=np.array(action, np.uint8), addr=addr, size=size.astype(np.int64),
                stream=np.array(stream, np.int64), time_us=times, stack=np.array(stack, np.int32),
                label=np.array(label, np.int32),
            )
        )  # fmt: skip
        for parts in self._raw:
            parts.clear()
        for codes in self._known:
            codes.clear()


_CODES = {action: code for code, action in enumerate(ACTIONS)}


def _opcode(value: int) -> bytes:
    """A number below 2**64 as LONG1 with nine bytes."""
    return b"\x8a\x09" + value.to_bytes(9, "little")


def _word(event: Mapping[str, Any]) -> str:
    """What the user or the profiler says that the block is; '' where nobody does."""
    for key in ("category", "user_metadata"):
        word = event.get(key)
        if type(word) is str and word:
            return word[:200]
    return ""


def decode_integers(parts: Sequence[bytes]) -> Addresses:
    """Values of pickle opcodes for integers that are not negative: `K.`, `M..`, `J....`, `\\x8a` with its length.

    An empty one gives 0.

    >>> decode_integers([b"K\\x05", b"M\\x00\\x02", b"\\x8a\\x06\\x00\\x00\\x00\\x00\\x00\\x7f"]).tolist()
    [5, 512, 139637976727552]
    """
    if not parts:
        return np.empty(0, np.uint64)
    joined = np.frombuffer(b"".join(parts), np.uint8)
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    values = np.zeros(len(parts), np.uint64)
    starts = np.cumsum(lengths) - lengths
    for length in np.unique(lengths[lengths > 0]).tolist():
        skip = _ARGUMENT_AT[length]
        rows = np.flatnonzero(lengths == length)
        padded = np.zeros((len(rows), 8), np.uint8)
        size = min(length - skip, 8)  # a ninth byte is the zero that keeps the value from being negative
        padded[:, :size] = joined[starts[rows][:, None] + np.arange(skip, skip + size)]
        values[rows] = padded.view("<u8").ravel()
    return values


# Length of opcode and argument -> where the little-endian value begins. K, M and J hold up to 31 bits, so that a
# LONG1 has at least five bytes of value.
_ARGUMENT_AT = {2: 1, 3: 1, 5: 1, 7: 2, 8: 2, 9: 2, 10: 2, 11: 2}
