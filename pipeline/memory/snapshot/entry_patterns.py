"""What an entry of a trace looks like in a pickle: a pattern for all entries with the same keys in the same order.

Nothing is taken from an entry but what a match covers from its first byte to its last: a pattern that does not fit
costs time and nothing else. Texts are references into the memo nearly always; entries in which one stands in full have
a pattern of their own, which takes longer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# Python's pickler writes the shortest form, so that LONG1 has five bytes or more; anything else goes the slow way.
_INT = (
    rb"(K.|M..|J...[\0-\x7f]|\x8a(?:\x06.{5}[\0-\x7f]|\x07.{6}[\0-\x7f]|\x05.{4}[\0-\x7f]|\x08.{7}[\0-\x7f]"
    rb"|\x09.{8}\0))"
)
_PUT = rb"(\x94|q.|r.{4}|)"  # before protocol 4 the slot of the memo is named
_REF = rb"h.|j.{4}"
# Up to the MEMOIZE behind it, as ASCII holds none: whether its length is right, `is_whole` says. Before protocol 4 it
# takes a branch per length.
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
    """Pattern of an entry, up to and with the mark of its stack if that stands there in full.

    Group 0 says how the dict went into the memo, if it did; `puts` are such groups in their order, those of texts with
    the group of the text, those of pairs with None. The last group is the stack. `groups`: others by their key.
    """

    keys: tuple[str, ...]
    entry: re.Pattern[bytes]
    groups: dict[str, int]
    puts: tuple[tuple[int, int | None], ...]
    has_texts: bool

    @property
    def has_frames(self) -> bool:
        """Whether entries have a stack."""
        return "frames" in self.keys


def is_whole(text: bytes) -> bool:
    """Whether a text that matched, or a reference to one, is as long as it says itself.

    >>> is_whole(b"\\x8c\\x03abc"), is_whole(b"\\x8c\\x03ab")
    (True, False)
    """
    return text[0] != _SHORT_BINUNICODE or text[1] == len(text) - 2


def templates(keys: tuple[str, ...], slots: Mapping[str, int]) -> Iterator[Template]:
    """The patterns of entries with these keys, which the memo holds at `slots`; none where they are not worth it."""
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
    groups["addr"] = groups.get("device_free", groups.get("addr", 0))  # an `oom` says how much was free instead
    pattern += _STACK if "frames" in keys else b"u"
    return Template(keys, re.compile(pattern, re.DOTALL), groups, tuple(puts), has_texts)


def _get(slot: int) -> bytes:
    """The opcode that recalls a slot of the memo."""
    return b"h" + bytes([slot]) if slot < 256 else b"j" + slot.to_bytes(4, "little")
