"""Patterns of a trace's entries in a pickle, one per list of keys (docs/performance.md).

A match covers an entry from its first byte to its last, so a pattern that does not fit only costs time. Texts are
nearly always references into the memo; entries with a text in full have a second, slower pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# Python's pickler writes the shortest form, so LONG1 has five bytes or more; other forms are executed by the machine.
_INT = (
    rb"(K.|M..|J...[\0-\x7f]|\x8a(?:\x06.{5}[\0-\x7f]|\x07.{6}[\0-\x7f]|\x05.{4}[\0-\x7f]|\x08.{7}[\0-\x7f]"
    rb"|\x09.{8}\0))"
)
_PUT = rb"(\x94|q.|r.{4}|)"  # before protocol 4 with the slot of the memo
_REF = rb"h.|j.{4}"
# ASCII up to the MEMOIZE behind it, which is no ASCII; `is_whole` checks the length. Before protocol 4 one branch per
# length is needed.
_SHORT = rb"\x8c.[\0-\x7f]{0,255}+(?=\x94)|" + rb"|".join(rb"X\x%02x\0\0\0.{%d}" % (size, size) for size in range(16))
_TEXT = rb"(" + _REF + rb"|" + _SHORT + rb")" + _PUT
_PAIR = rb"(?:" + _REF + rb"|K.K.\x86" + _PUT + rb")"
_OTHER = rb"(?:" + _REF + rb"|N|\x88|\x89|K.|M..|J.{4}|G.{8})"
_STACK = rb"((?:" + _REF + rb")u|\](?:\x94|q.|r.{4}|)[(u])"

_SHORT_BINUNICODE = 0x8C
_INTEGERS = frozenset({"addr", "device_free", "size", "stream", "time_us"})
_TEXTS = frozenset({"action", "category", "user_metadata"})
_UNUSED_TEXTS = frozenset({"compile_context"})


@dataclass(frozen=True)
class Template:
    """Pattern of an entry, up to and including the mark of a stack that is written in full.

    Attributes:
        keys: of the entry, in order.
        entry: the pattern. Group 0 is the opcode that stores the dict in the memo, if any; the last is the stack.
        groups: index of the group of each key with a value.
        puts: groups of opcodes that store a value in the memo, in order, with the group of its text; None for a pair.
        has_texts: whether texts may be written in full.
    """

    keys: tuple[str, ...]
    entry: re.Pattern[bytes]
    groups: dict[str, int]
    puts: tuple[tuple[int, int | None], ...]
    has_texts: bool

    @property
    def has_frames(self) -> bool:
        """Whether the entries have a stack."""
        return "frames" in self.keys


def is_whole(text: bytes) -> bool:
    """Whether a matched text, or a reference to one, has the length that its opcode states.

    >>> is_whole(b"\\x8c\\x03abc"), is_whole(b"\\x8c\\x03ab")
    (True, False)
    """
    return text[0] != _SHORT_BINUNICODE or text[1] == len(text) - 2


def templates(keys: tuple[str, ...], slots: Mapping[str, int]) -> Iterator[Template]:
    """Patterns of entries with these keys, which are in the memo at `slots`; none where matching would not pay."""
    is_event = {"action", "size"} <= set(keys) and set(keys) & {"addr", "device_free"}
    if is_event and "frames" not in keys[:-1] and set(slots) == set(keys):
        yield _template(keys, slots, has_texts=False)
        yield _template(keys, slots, has_texts=True)


def _template(keys: tuple[str, ...], slots: Mapping[str, int], *, has_texts: bool) -> Template:
    pattern, count = rb"\}" + _PUT + rb"\(", 1
    groups: dict[str, int] = {}
    puts: list[tuple[int, int | None]] = []
    for key in keys:
        pattern += re.escape(_get(slots[key]))
        if key == "frames":
            break
        if key in _INTEGERS or (key in _TEXTS and not has_texts):
            pattern += _INT if key in _INTEGERS else rb"(" + _REF + rb")"
            groups[key] = count
            count += 1
        elif has_texts and key in _TEXTS | _UNUSED_TEXTS:
            pattern += _TEXT
            groups[key] = count
            puts.append((count + 1, count))
            count += 2
        elif key == "pool_id":
            pattern += _PAIR
            puts.append((count, None))
            count += 1
        else:
            pattern += _OTHER
    groups["addr"] = groups.get("device_free", groups.get("addr", 0))  # `oom` events have the free bytes instead
    pattern += _STACK if "frames" in keys else b"u"
    return Template(keys, re.compile(pattern, re.DOTALL), groups, tuple(puts), has_texts)


def _get(slot: int) -> bytes:
    """The opcode that loads a slot of the memo."""
    return b"h" + bytes([slot]) if slot < 256 else b"j" + slot.to_bytes(4, "little")
