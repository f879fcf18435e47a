"""Events of a snapshot's pickle as columns, without a dict per event (docs/performance.md).

The first entry of a trace with a set of keys is executed opcode by opcode; the next ones are matched with a pattern
made from its keys (`entry_patterns`). Where it does not match, the machine continues opcode by opcode. Nothing is
skipped: a match begins where the last one ended and is equivalent to the opcodes that it covers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sweepscope.pipeline.io.safe_pickle import DEFAULT_LIMITS, UNSET, Limits, PickleMachine
from sweepscope.pipeline.memory.snapshot.entry_patterns import Template, is_whole, templates
from sweepscope.pipeline.memory.snapshot.sink import EventSink
from sweepscope.pipeline.memory.snapshot.trace import NO_STACK

_REFS_TO_END = re.compile(
    rb"((?:j.{4}|h.)++)e(?=[^(])", re.DOTALL
)  # lists of over 1,000 values continue in a second part
_REFS = re.compile(rb"j.{4}|h.", re.DOTALL)
_AHEAD_BYTES = 1 << 16
_MAX_TEMPLATES = 16
_MEMOIZE = b"\x94"
_NEW_STACK, _MARK, _LIST = b"]\x94(", *b"(]"
_TEXT_AT = {0x8C: 2, ord("X"): 5}  # offset of the text, behind the opcode and the length


@dataclass
class EventRun:
    """Events `begin` to `end` of the sink, in place of their dicts."""

    begin: int
    end: int


@dataclass(frozen=True)
class StackRef:
    """A list of frames that are all in the memo: stack `index` of the machine; -1 for an empty one."""

    index: int


_EMPTY_STACK = StackRef(NO_STACK)


class SnapshotMachine(PickleMachine):
    """A machine whose value has an EventRun in place of entries of a trace; the entries are in `sink`."""

    def __init__(self, chunks: Iterable[bytes], limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(chunks, limits)
        self.sink = EventSink(self._text)
        self._stacks: list[list[object] | bytes] = []
        self._stack_index: dict[int, int] = {}
        self._stack_of_bytes: dict[bytes, StackRef] = {}
        self._templates: list[Template] = []

    def stack_index(self, frames: object) -> int:
        """Index of a list of frames; -1 for none or an empty one."""
        if type(frames) is StackRef:
            return frames.index
        if type(frames) is not list or not frames:
            return NO_STACK
        index = self._stack_index.get(id(frames))
        if index is None:
            index = self._stack_index[id(frames)] = len(self._stacks)
            self._stacks.append(frames)
        return index

    def frames(self, stack: int) -> list[object]:
        """The frames of a stack as the pickle holds them, innermost first. Raises RefusedError."""
        found = self._stacks[stack]
        return self._recalled(found) if type(found) is bytes else found  # type: ignore[return-value]  # stacks are lists

    def remember(self, index: int, value: object) -> None:
        if index < len(self.memo):  # no writer does that, and patterns rely on the slot
            raise self.refusal("a slot of the memo is written twice")
        super().remember(index, value)

    def set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        super().set_items([key, value])  # one key of several: such an entry stays a dict

    def mark(self) -> None:
        """Begin a list; one of known values only, such as a stack of known frames, is read at once."""
        if self.stack and type(self.stack[-1]) is list and not self.stack[-1] and self.buffer[self.pos] in b"hj":
            match = _REFS_TO_END.match(self.buffer, self.pos)
            if match and self.memo and self.memo[-1] is self.stack[-1]:
                self.stack[-1] = self.memo[-1] = self._stack_of(match.group(1))
                self.pos = match.end()
                return
        super().mark()

    def extend(self, items: list[object]) -> None:
        target = self.stack[-1] if self.stack else None
        if type(target) is list and target and items:
            last, first = target[-1], items[0]
            if type(last) is EventRun and type(first) is EventRun and last.end == first.begin:
                last.end = first.end
                items = items[1:]
        super().extend(items)

    def empty_dict(self) -> None:
        if self._templates and self._match_events():
            return
        super().empty_dict()

    def set_items(self, items: list[object]) -> None:
        super().set_items(items)
        entry: Any = self.stack[-1]
        if len(items) > 2 and "action" in entry and "segments" not in entry:
            self._learn(tuple(entry))
            index = self.sink.add(entry, self.stack_index(entry.get("frames")))
            entry.clear()  # the memo may refer to it
            self.stack.pop()
            self._push_run(index, index + 1)

    def _push_run(self, begin: int, end: int) -> None:
        last = self.stack[-1] if self.stack else None
        if type(last) is EventRun and last.end == begin:
            last.end = end
        elif begin < end:
            self.stack.append(EventRun(begin, end))

    def _recalled(self, refs: bytes) -> list[object]:
        memo = self.memo
        values = []
        for ref in _REFS.findall(refs):
            index = int.from_bytes(ref[1:], "little")
            if index >= len(memo) or memo[index] is UNSET:
                raise self.refusal("refers to a value that is not there")
            values.append(memo[index])
        return values

    def _learn(self, keys: tuple[str, ...]) -> None:
        if len(self._templates) < _MAX_TEMPLATES and all(keys != known.keys for known in self._templates):
            slots = {value: at for at, value in enumerate(self.memo) if type(value) is str and value in keys}
            self._templates += templates(keys, slots)

    def _match_events(self) -> bool:
        """Whether entries matched, which are then taken. `pos` is behind the `}` of the first one."""
        begin = self.sink.count
        self.pos -= 1
        self._look_ahead()
        while any(self._match_with(known) for known in self._templates):
            self._look_ahead()
        if self.sink.count == begin:
            self.pos += 1
            return False
        self._push_run(begin, self.sink.count)
        return True

    def _look_ahead(self) -> None:
        if len(self.buffer) - self.pos < _AHEAD_BYTES:
            self.refill(1 << 20)

    def _match_with(self, known: Template) -> bool:
        """Whether entries from `pos` on matched one template, which are then taken up to the first that differs."""
        buffer, pos, memo, match = self.buffer, self.pos, self.memo, known.entry.match
        has_frames, puts, known_stack = known.has_frames, known.puts, self._stack_of_bytes.get
        entries: list[tuple[bytes, ...]] = []
        stacks: list[int] = []
        while entry := match(buffer, pos):
            values, end, size, has_text = entry.groups(), entry.end(), len(memo), not known.has_texts
            stack: StackRef | None = _EMPTY_STACK
            if put := values[0]:
                memo.append(UNSET) if put == _MEMOIZE else self._put(put, UNSET)
            for at, text in puts:
                if put := values[at]:
                    if text is not None and not is_whole(values[text]):
                        stack = None
                        break
                    self._put(put, UNSET if text is None else self._text(values[text]))
                    has_text = has_text or text is not None
            if has_frames and stack:
                opcodes = values[-1]
                last = buffer.find(b"eu", end, end + _AHEAD_BYTES) if opcodes == _NEW_STACK else -1
                if last > 0 and (stack := known_stack(buffer[end:last])):
                    memo.append(stack)
                    end = last + 2
                else:
                    end, stack = self._other_stack(opcodes, end)
            if stack is None:
                del memo[size:]
                break
            entries.append(values)
            stacks.append(stack.index)
            pos = end
            if not has_text:
                break  # the faster template can continue from here
        if entries:
            self.pos = pos
            columns = tuple(zip(*entries, strict=True))
            self.sink.extend({key: columns[at] for key, at in known.groups.items()}, stacks)
        return bool(entries)

    def _put(self, put: bytes, value: object) -> None:
        """Execute an opcode that stores a value in the memo."""
        if put == _MEMOIZE:
            self.memo.append(value)
        else:
            self.remember(int.from_bytes(put[1:], "little"), value)

    def _other_stack(self, opcodes: bytes, pos: int) -> tuple[int, StackRef | None]:
        """End of an entry whose last value begins with `opcodes` and continues at `pos`, and its stack.

        None where the machine must execute the entry from its beginning.
        """
        if opcodes[0] != _LIST:
            return pos, self._memo_stack(int.from_bytes(opcodes[1:-1], "little"))
        stack = _EMPTY_STACK
        if opcodes[-1] == _MARK:
            match = _REFS_TO_END.match(self.buffer, pos)
            if match is None or self.buffer[match.end() : match.end() + 1] != b"u":
                return pos, None
            pos, stack = match.end() + 1, self._stack_of(match.group(1))
        if put := opcodes[1:-1]:
            self._put(put, stack)
        return pos, stack

    def _memo_stack(self, index: int) -> StackRef | None:
        frames = self.memo[index] if index < len(self.memo) else None
        if type(frames) is list:
            return StackRef(self.stack_index(frames))
        return frames if type(frames) is StackRef else None

    def _stack_of(self, refs: bytes) -> StackRef:
        """The stack of these references, one for all equal lists; its frames are resolved at the end."""
        stack = self._stack_of_bytes.get(refs)
        if stack is None:
            stack = self._stack_of_bytes[refs] = StackRef(len(self._stacks))
            self._stacks.append(refs)
        return stack

    def _text(self, value: bytes) -> str | None:
        """The text that an opcode has or refers to; None where it refers to something else."""
        if begin := _TEXT_AT.get(value[0]):
            return value[begin:].decode("utf-8", "replace")
        index = int.from_bytes(value[1:], "little")
        found = self.memo[index] if index < len(self.memo) else None
        return found if type(found) is str else None
