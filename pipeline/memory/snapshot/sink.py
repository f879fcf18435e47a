"""Columns of a trace, filled from dicts one by one or from opcodes that are decoded in bulk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError, count_of, integer_of
from sweepscope.pipeline.memory.snapshot.trace import ACTIONS, NO_TIME, UNKNOWN, Addresses, Events, Ints, no_events

FLUSH_ROWS = 16_384
MAX_UNKNOWN_ACTIONS = 100
_OTHERS = "others"
_LONG1 = 0x8A
_INTEGERS = ("addr", "size", "stream", "time_us")
_LABEL_KEYS = ("category", "user_metadata")
"""The profiler's category and the user's own metadata of the block."""


class _Numbers(dict[bytes, int]):
    """Numbers of undecoded values, each computed once."""

    def __init__(self, number_of: Callable[[bytes], int]) -> None:
        super().__init__()
        self._number_of = number_of

    def __missing__(self, value: bytes) -> int:
        number = self[value] = self._number_of(value)
        return number


class EventSink:
    """Collects events and returns them as columns. `text_of` decodes the text of an opcode, None for another value."""

    def __init__(self, text_of: Callable[[bytes], str | None]) -> None:
        self.count = 0
        self.labels = [""]
        self.unknown_actions: Counter[str] = Counter()
        self._chunks: list[Events] = []
        self._integers: dict[str, list[bytes]] = {name: [] for name in _INTEGERS}
        self._known: tuple[list[int], list[int], list[int]] = ([], [], [])
        self._codes = {action: code for code, action in enumerate(ACTIONS)}
        self._label_index = {"": 0}
        self._code_of = _Numbers(lambda value: self._code(text_of(value)))
        self._label_of = _Numbers(lambda value: self._label(text_of(value) or ""))

    def add(self, event: Mapping[str, Any], stack: int) -> int:
        """Index of one appended entry. Raises RefusedError for impossible values."""
        time = event.get("time_us")
        address = event.get("device_free", event.get("addr"))  # `oom` events have the former in place of the latter
        values = (
            integer_of(0 if address is None else address, "the address of an event"),
            count_of(event.get("size", 0), "the size of an event"),
            integer_of(event.get("stream", 0), "the stream of an event", bits=63),
            None if time is None else integer_of(time, "the time of an event", bits=63),
        )
        # As opcodes, like entries of `extend`: rows of two kinds would be decoded in many small parts.
        for opcodes, value in zip(self._integers.values(), values, strict=True):
            opcodes.append(b"" if value is None else _opcode(value))
        texts = (event.get(key) for key in _LABEL_KEYS)
        label = self._label(next((text for text in texts if type(text) is str and text), ""))
        for numbers, number in zip(self._known, (self._code(event.get("action")), stack, label), strict=True):
            numbers.append(number)
        self._added(1)
        return self.count - 1

    def extend(self, opcodes: Mapping[str, Sequence[bytes]], stacks: Sequence[int]) -> None:
        """Append entries of the same keys, undecoded: opcodes by key, and stacks. Raises RefusedError as `add` does."""
        absent = (b"",) * len(stacks)
        for key, values in self._integers.items():
            values.extend(opcodes.get(key, absent))
        actions, known_stacks, labels = self._known
        actions.extend(map(self._code_of.__getitem__, opcodes["action"]))
        known_stacks.extend(stacks)
        found = [[self._label_of[value] for value in opcodes[key]] for key in _LABEL_KEYS if key in opcodes]
        first, *others = found or [[0] * len(stacks)]
        labels.extend((a or b for a, b in zip(first, *others, strict=True)) if others else first)
        self._added(len(stacks))

    def events(self) -> Events:
        """All events so far."""
        self._flush()
        if len(self._chunks) > 1:
            pieces = zip(*(vars(chunk).values() for chunk in self._chunks), strict=True)
            self._chunks = [Events(*(np.concatenate(columns) for columns in pieces))]
        return self._chunks[0] if self._chunks else no_events()

    def _code(self, action: object) -> int:
        """Number of an action; UNKNOWN and above for actions that this version does not know."""
        if type(action) is not str:
            raise RefusedError("an event whose action is not text")
        name = action[:80]
        if name not in self._codes and len(self._codes) >= UNKNOWN + MAX_UNKNOWN_ACTIONS:
            name = _OTHERS
        return self._codes.setdefault(name, len(self._codes))

    def _label(self, text: str) -> int:
        """Index of a label; 0 for none."""
        number = self._label_index.setdefault(text[:200], len(self.labels))
        if number == len(self.labels):
            self.labels.append(text[:200])
        return number

    def _added(self, count: int) -> None:
        self.count += count
        if len(self._known[0]) >= FLUSH_ROWS:
            self._flush()

    def _flush(self) -> None:
        actions, stacks, labels = (np.array(numbers, np.int32) for numbers in self._known)
        if not len(actions):
            return
        times = self._integers["time_us"]
        time = np.where(np.fromiter(map(len, times), np.bool_, len(times)), _signed(times, "time"), NO_TIME)
        self._chunks.append(
            Events(
                action=np.minimum(actions, UNKNOWN).astype(np.uint8),
                addr=decode_integers(self._integers["addr"]),
                size=_signed(self._integers["size"], "size"),
                stream=_signed(self._integers["stream"], "stream"),
                time_us=time,
                stack=stacks,
                label=labels,
            )
        )
        names = list(self._codes)
        for code, count in zip(*np.unique(actions[actions >= UNKNOWN], return_counts=True), strict=True):
            self.unknown_actions[names[code]] += int(count)
        for opcodes in self._integers.values():
            opcodes.clear()
        for numbers in self._known:
            numbers.clear()


def _opcode(value: int) -> bytes:
    """A number below 2**64 as LONG1 with nine bytes."""
    return b"\x8a\x09" + value.to_bytes(9, "little")


def _signed(parts: Sequence[bytes], what: str) -> Ints:
    values = decode_integers(parts)
    if values.size and int(values.max()) >> 63:
        raise RefusedError(f"the {what} of an event is over 2**63")
    return values.astype(np.int64)


def decode_integers(opcodes: Sequence[bytes]) -> Addresses:
    r"""Values of pickle opcodes of non-negative integers: `K.`, `M..`, `J....`, `\x8a` with its length.

    An empty one gives 0.

    >>> decode_integers([b"K\x05", b"M\x00\x02", b"\x8a\x06\x00\x00\x00\x00\x00\x7f"]).tolist()
    [5, 512, 139637976727552]
    """
    rows = np.array(opcodes, "S11").view(np.uint8).reshape(-1, 11)  # padded with zeros
    behind_opcode, behind_length = (np.ascontiguousarray(rows[:, at : at + 8]).view("<u8").ravel() for at in (1, 2))
    return np.where(rows[:, 0] == _LONG1, behind_length, behind_opcode)
