"""Opcodes of a snapshot's pickle to columns, without the million dicts in between.

The entries of a trace are dicts of the same keys, which the pickler writes with the same opcodes every time: only the
integers and the memo indices differ. The first entry of a kind is executed opcode by opcode; from its keys a pattern is
made, which the next entries are matched with. Where it does not match (a frame header between two keys, a stack with a
new frame, another set of keys), the machine goes on opcode by opcode. Nothing is searched for or skipped: a match
begins where the last one ended and stands for the very opcodes that it covers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pipeline.memory.trace import NO_STACK, UNKNOWN, EventSink
from pipeline.safe_pickle import DEFAULT_LIMITS, UNSET, Limits, Machine

# Python's pickler writes the shortest form, so that LONG1 has five bytes or more; anything else goes the slow way.
_INT = (
    rb"(K.|M..|J...[\0-\x7f]|\x8a(?:\x06.{5}[\0-\x7f]|\x07.{6}[\0-\x7f]|\x05.{4}[\0-\x7f]|\x08.{7}[\0-\x7f]"
    rb"|\x09.{8}\0))"
)
_SHORT = b"|".join(rb"\x%02x.{%d}" % (size, size) for size in range(16))
_TEXT = rb"(h.|j.{4}|\x8c(?:" + _SHORT + rb")(\x94?))"
_OTHER = rb"(?:h.|j.{4}|N|\x88|\x89|K.|M..|J.{4}|G.{8})"
_TEXT_REF = rb"(h.|j.{4})"
_STACK = rb"(?:(h.|j.{4})u|(\]\x94?\()|(\]\x94?)u)"
_PAIR = rb"(?:h.|j.{4}|K.K.\x86(\x94?))"
_REFS_TO_END = re.compile(rb"((?:j.{4}|h.)++)e(?=[^(])", re.DOTALL)  # after 1,000 values a second part follows
_REFS = re.compile(rb"j.{4}|h.", re.DOTALL)
_AHEAD_BYTES = 1 << 16
_MAX_TEMPLATES = 16
_NO_MATCH = -2
_LONG1, _SHORT_TEXT = 0x8A, 0x8C
_WITH_MEMO = 3  # `]`, MEMOIZE, `(`
_SHORT_GET = 2  # `h` and its index
_INTEGERS = frozenset({"addr", "device_free", "size", "stream", "time_us"})
_LABELS = ("category", "user_metadata")
_TEXTS = frozenset({"action", "compile_context", *_LABELS})


@dataclass
class EventRun:
    """Events `begin` to `end` of the sink, in place of their dicts."""

    begin: int
    end: int


@dataclass(frozen=True)
class StackRef:
    """A list of frames, all of which the memo holds: number `index` of the machine's stacks."""

    index: int


@dataclass(frozen=True)
class Template:
    """Pattern of an entry, up to where its stack begins if that stands there in full; which group holds which value.

    `fields`: action, address, size, time and stream. Group 0 is not empty where the dict went into the memo; `memos`
    are such groups of pairs (with None) and of texts that stand there in full (with the group of the text).
    """

    keys: tuple[str, ...]
    entry: re.Pattern[bytes]
    has_frames: bool
    has_texts: bool
    fields: tuple[int, int, int, int | None, int | None]
    labels: tuple[int, ...]
    memos: tuple[tuple[int, int | None], ...]


class SnapshotMachine(Machine):
    """A machine whose value holds EventRun where the pickle has entries of a trace; the entries stand in `sink`."""

    def __init__(self, chunks: Iterable[bytes], limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(chunks, limits)
        self.sink = EventSink()
        self._stacks: list[list[object] | bytes] = []
        self._stack_index: dict[int, int] = {}
        self._stack_of_bytes: dict[bytes, StackRef] = {}
        self._templates: list[Template] = []
        self._is_plain = False
        self._actions: dict[bytes, int] = {}
        self._labels: dict[bytes, int] = {}
        self._streams: dict[bytes, int] = {}

    def stack_index(self, frames: object) -> int:
        """Number of a list of frames; -1 for none or an empty one."""
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
        if index < len(self.memo):  # no writer does that; what was learned about the slot no longer holds
            self._actions.clear()
            self._labels.clear()
            self._stack_of_bytes.clear()
        super().remember(index, value)

    def set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        super().set_items([key, value])  # one key of several: an entry that comes so stays a dict

    def mark(self) -> None:
        """A list of nothing but known values, such as a stack of known frames, is read in one go."""
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
            entry.clear()  # the memo may hold it
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
            # Texts are references nearly always; where some stand there in full, the second one matches.
            self._templates += [
                template for text in (_TEXT_REF, _TEXT) if (template := _template(keys, self.memo, text))
            ]

    def _match_events(self) -> bool:
        """Take as many entries as match; whether there was one. `pos` stands behind the first one's `}`."""
        begin = self.sink.count
        self._look_ahead()
        while True:
            matched = next((at for at, known in enumerate(self._templates) if self._match_with(known)), None)
            if matched is None:
                break
            # Entries of a kind come in runs.
            self._templates.insert(len(self._templates) if self._is_plain else 0, self._templates.pop(matched))
            self._is_plain = False
            self._look_ahead()
            if self.buffer[self.pos : self.pos + 1] != b"}":
                self._push_run(begin, self.sink.count)
                return True
            self.pos += 1
        if self.sink.count == begin:
            return False
        self.pos -= 1  # the next entry is for the machine
        self._push_run(begin, self.sink.count)
        return True

    def _look_ahead(self) -> None:
        if len(self.buffer) - self.pos < _AHEAD_BYTES:
            self.refill(1 << 20)

    def _match_with(self, template: Template) -> bool:
        """Match entries from `pos` on with one template, up to the first that differs; whether there was one."""
        buffer, pos, memo, match_entry = self.buffer, self.pos, self.memo, template.entry.match
        (addrs, sizes, times), (actions, streams, stacks, labels) = self.sink.raw_lists()
        at_action, at_addr, at_size, at_time, at_stream = template.fields
        known_actions, known_streams, has_frames = self._actions, self._streams, template.has_frames
        known_labels, at_labels, has_texts = self._labels, template.labels, template.has_texts
        taken, done = 0, pos
        while entry := match_entry(buffer, pos):
            values, size, stack = entry.groups(), len(memo), NO_STACK
            pos = entry.end()
            if values[0]:
                memo.append(UNSET)
            has_text = not has_texts
            for mark, text in template.memos:
                if values[mark]:
                    memo.append(UNSET if text is None else self._text(values[text]))
                    has_text = True
            if has_frames:
                pos, stack = self._stack_at(pos, *values[-3:])
            action = known_actions.get(values[at_action])
            if action is None:
                action = self._action(values[at_action])
            if stack == _NO_MATCH or action == UNKNOWN:
                del memo[size:]
                break
            addrs.append(values[at_addr])
            sizes.append(values[at_size])
            times.append(b"" if at_time is None else values[at_time])
            actions.append(action)
            if at_stream is None:
                streams.append(0)
            else:
                stream = known_streams.get(values[at_stream])
                streams.append(self._stream(values[at_stream]) if stream is None else stream)
            stacks.append(stack)
            label = 0
            for at in at_labels:
                found = known_labels.get(values[at])
                label = label or (self._label(values[at]) if found is None else found)
            labels.append(label)
            taken += 1
            done = pos
            if not has_text or buffer[pos : pos + 1] != b"}":
                self._is_plain = not has_text  # the faster template would do from here on
                break
            pos += 1
        self.sink.added(taken)
        self.pos = done
        return taken > 0

    def _stack_at(self, pos: int, ref: bytes | None, opened: bytes | None, empty: bytes | None) -> tuple[int, int]:
        """Where an entry ends whose last value is its stack, and the number of the stack; _NO_MATCH for the machine.

        `pos` stands behind the entry, except for a list that has been `opened`: there behind its mark.
        """
        memo = self.memo
        if opened:
            buffer = self.buffer
            end = buffer.find(b"eu", pos, pos + _AHEAD_BYTES)
            stack = self._stack_of_bytes.get(buffer[pos:end]) if end > 0 else None
            if stack is None:  # never seen, or the two bytes are part of a reference
                match = _REFS_TO_END.match(buffer, pos)
                if match is None or buffer[match.end() : match.end() + 1] != b"u":
                    return pos, _NO_MATCH
                end = match.end() - 1
                stack = self._stack_of(match.group(1))
            if len(opened) == _WITH_MEMO:
                memo.append(stack)
            return end + 2, stack.index
        if ref:
            index = ref[1] if len(ref) == _SHORT_GET else int.from_bytes(ref[1:], "little")
            frames = memo[index] if index < len(memo) else None
            if type(frames) is StackRef:
                return pos, frames.index
            return pos, self.stack_index(frames) if type(frames) is list else _NO_MATCH
        if empty and len(empty) > 1:
            memo.append([])
        return pos, NO_STACK

    def _stack_of(self, refs: bytes) -> StackRef:
        """The stack of these references. Lists with the same frames become one; the frames are looked up at the end."""
        stack = self._stack_of_bytes.get(refs)
        if stack is None:
            stack = self._stack_of_bytes[refs] = StackRef(len(self._stacks))
            self._stacks.append(refs)
        return stack

    def _action(self, ref: bytes) -> int:
        code = self._actions.get(ref)
        if code is None:
            text = self._text(ref)
            code = self._actions[ref] = UNKNOWN if text is None else self.sink.code(text)
        return code

    def _label(self, ref: bytes) -> int:
        label = self._labels[ref] = self.sink.label((self._text(ref) or "")[:200])
        return label

    def _stream(self, value: bytes) -> int:
        number = self._streams.get(value)
        if number is None:
            number = self._streams[value] = int.from_bytes(value[2 if value[0] == _LONG1 else 1 :], "little")
        return number

    def _text(self, ref: bytes) -> str | None:
        if ref[0] == _SHORT_TEXT:
            return ref[2 : 2 + ref[1]].decode("utf-8", "replace")
        index = int.from_bytes(ref[1:], "little")
        value = self.memo[index] if index < len(self.memo) else None
        return value if type(value) is str else None


def _template(keys: tuple[str, ...], memo: list[object], text: bytes) -> Template | None:
    """The pattern of entries with these keys in this order; None where it would not be worth one."""
    if "frames" in keys[:-1] or not set(keys) >= {"action", "size"} or not set(keys) & {"addr", "device_free"}:
        return None
    places = {value: index for index, value in enumerate(memo) if type(value) is str and value in keys}
    if set(places) != set(keys):
        return None
    pattern, groups = rb"(\x94?)\(", {}
    memos: list[tuple[int, int | None]] = []
    for key in keys:
        pattern += re.escape(_get(places[key]))
        if key == "frames":
            break
        groups[key] = re.compile(pattern).groups
        if key in _INTEGERS:
            pattern += _INT
        elif key in _TEXTS:
            pattern += text
            if text is _TEXT:
                memos.append((groups[key] + 1, groups[key]))
        elif key == "pool_id":
            memos.append((groups[key], None))
            pattern += _PAIR
        else:
            pattern += _OTHER
    pattern += _STACK if "frames" in keys else b"u"
    place = groups.get("addr", groups.get("device_free"))
    assert place is not None  # noqa: S101 - one of the two is among the keys
    return Template(
        keys=keys,
        entry=re.compile(pattern, re.DOTALL),
        has_frames="frames" in keys,
        has_texts=text is _TEXT,
        fields=(groups["action"], place, groups["size"], groups.get("time_us"), groups.get("stream")),
        labels=tuple(groups[key] for key in _LABELS if key in groups),
        memos=tuple(memos),
    )


def _get(index: int) -> bytes:
    """The opcode that recalls a memo slot."""
    return b"h" + bytes([index]) if index < 256 else b"j" + index.to_bytes(4, "little")
