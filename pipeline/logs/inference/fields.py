"""The values of a line: numbers with what is printed in front of and behind them.

A number is no value where it is part of something else: a time, a path, a version, a word (`H100`), a size (`16x8`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from sweepscope.pipeline.logs.inference.labels import (
    bare,
    following,
    is_of_any,
    is_unnamed,
    label_of,
    names_the_next,
    offset,
    split_of,
)
from sweepscope.pipeline.logs.inference.units import Unit, behind, in_label
from sweepscope.pipeline.logs.synonyms import step_columns, words

_COUNTED = r"(?:steps?|iter(?:ation)?s?|epochs?|ep|it|batch|rank|gpu|update)"
_OTHER = "|".join(
    (
        # Times and dates.
        r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[ T_]+\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?:Z|[+-]\d{2}:?\d{2})?)?",
        r"\d{1,2}[-/.]\d{1,2}(?:[-/.]\d{2,4})?[ T_]\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?",
        r"(?:\d+ days?,? +)?\d{1,4}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?![\w:.])",
        r"(?:\d+(?:\.\d+)?(?:d|h|hrs?|m|min|s)\s?){2,}(?![\w])",
        # Places: URLs, paths, file:line.
        r"\w+://\S+|(?:~|\.{1,2})?/[\w.@%+=-]+(?:/[\w.@%+=-]*)+|(?<![/-])[\w./-]{1,200}\.(?:py|cpp|cu|cc|jsonl?|ya?ml|pth?|"
        r"bin|log|txt)(?::\d+)?\b",
        # Versions and addresses, hashes.
        r"v?\d+\.\d+\.\d+[\w.+-]*",
        r"0x[0-9a-fA-F]+|(?=[0-9a-f]*[a-f][0-9a-f]*\d|[0-9a-f]*\d[0-9a-f]*[a-f])[0-9a-f]{7,}(?![\w.])",
        # Words that hold digits; a counter may be glued to its name.
        rf"(?!(?i:{_COUNTED})\d+(?![\w.]))[A-Za-z_@][\w@]*\d\w*(?:[.-]\w+)*",
        r"\d+(?:x\d+)+\b|\d+[A-Za-z_]\w*\d\w*",
    )
)
_SIGN = r"(?:(?<![\w)\]])[-+])?"
_EXPONENT = r"(?:[eE][-+]?\d+)?"
_WITH_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.(?!\s|$)\d*(?!\.))?"  # a full stop ends the sentence
_NUMBER = rf"{_SIGN}{_WITH_DIGITS}{_EXPONENT}|{_SIGN}\.\d+{_EXPONENT}"
_TOKEN = re.compile(
    rf"(?P<other>(?<![\w.])(?:{_OTHER}))|(?P<number>(?:(?<![\w.])|(?<=[a-zA-Z\u4e00-\u9fff])|(?<=_))(?:{_NUMBER}))"
    r"|(?P<odd>(?<![\w.])[-+]?(?:nan|NaN|NAN|inf|Inf|INF|infinity|Infinity)(?![\w.]))"
    r"|(?<=[:=])\s*(?P<none>None|null|N/A|n/a)(?!\w)"
)
_AT = re.compile(r"([A-Za-z][\w /]*?) (?:at|after|for|in|@) (?:\w+ )?[#:]?$")
_NAMES = re.compile(r"([A-Za-z][\w ./-]{0,40}(?:,\s*[A-Za-z][\w ./-]{0,40})+)\s*[:=]\s*$")
"""Several names in front of as many values."""
_REMARK = re.compile(r"(?<=[A-Za-z])\s?\([^()\d:=]*[A-Za-z][^()\d:=]*\d[^():=]*\)(?=\s*[:=]\s*[-+.]?\d)")
"""What a name says of its value, whose number is no value: `Loss (avg over last 100): 2.3`."""
_WHOLE = re.compile(r"[-+]?[\d,]+")
_STEP_LETTER = "s"
"""A name of seconds, and of steps where the value is a whole one: `s:120 l:3.2`."""
_COUNTERS = ("step", "epoch", "rank")
MAX_CHARS = 4_096
"""A longer line is no record of a step."""


@dataclass(frozen=True)
class Field:
    """One value of a line.

    Attributes:
        begin, end: its characters; `end` is behind its metric suffix, `stop` behind its unit.
        text: as printed, with its metric suffix.
        number: its value, without its unit; None where it is printed as missing.
        is_whole: printed without a fraction or an exponent.
        label: words in front of it, without a unit; those behind it where there are none; see `is_unnamed`.
        unit: behind it or in its label.
        role: "of" for what follows a slash, as in 3/10; "mean" for one in parentheses behind another value.
        split: "train" or "eval" where words in front of it tell.
        head: where the text begins that belongs to it: behind the value or the separator before.
    """

    begin: int
    end: int
    stop: int
    text: str
    number: float | None
    is_whole: bool
    label: str
    unit: Unit | None
    role: str
    split: str
    head: int

    @property
    def key(self) -> tuple[str, str, str]:
        """Fields of several lines with the same key are one series."""
        word = self.unit.quantity if self.unit else ""
        return self.label, self.role, word


_OWN_KEY = re.compile(r"""\s*,\s*["'][^"']*["']\s*:\s*""")
"""In front of a value of a dict behind the first: its key is its own, and names no values behind it."""


def fields(text: str, start: int = 0) -> list[Field]:
    """The values of a line from a character on, from left to right."""
    found: list[Field] = []
    text = text[:MAX_CHARS]
    position, leader = start, ""
    split = ""
    remarks = [hit.span() for hit in _REMARK.finditer(text, start)] if "(" in text else []
    for kind, first, begin, end in _tokens(text, start):
        if first < position or any(opens < begin < closes for opens, closes in remarks):
            continue
        gap = text[position:first]
        own, before_split = split_of(gap), split
        split = own or split
        if not found and split:
            leader = split
        if kind == "other":
            position = end
            continue
        before = found[-1] if found and found[-1].stop == position else None
        stop, suffix, unit = behind(text, end)
        printed = text[begin:end]
        is_whole = kind == "number" and _WHOLE.fullmatch(printed) is not None and not suffix
        number = _value(printed, suffix) if kind != "none" else None
        is_enclosed = (
            before is not None
            and text[before.head : before.begin].rstrip().endswith("[")
            and text[end : end + 1] == "]"
        )
        whole = number if is_whole or before is None or not before.is_whole else None
        role = _role(gap, before, whole, is_enclosed=is_enclosed)
        label, named = in_label(label_of(gap)) if role == "" else (before.label if before else "", None)
        if label == _STEP_LETTER and is_whole:
            named = None
        if role == "" and not label:
            label = following(text, end if unit is None else stop) or _place(text, gap, stop, found)
        if unit and names_the_next(text, stop, label, unit):
            stop, unit = end + len(suffix), None
        found.append(
            Field(
                begin=begin,
                end=end + len(suffix),
                stop=stop,
                text=text[begin : end + len(suffix)],
                number=number,
                is_whole=is_whole,
                label=label,
                unit=unit or named or (before.unit if before and role else None),
                role=role,
                split=(own if is_of_any(label) else split) or leader,
                head=position + offset(gap),
            )
        )
        position = stop
        if own and _OWN_KEY.fullmatch(gap):
            split = before_split
        if "|" in gap or ";" in gap:
            split = split_of(gap[max(gap.rfind("|"), gap.rfind(";")) :])
    return _completed(text, found)


_Token = tuple[str, int, int, int]
"""Group of _TOKEN, where its match begins, and where what it found begins and ends."""
_BLIND = str.maketrans("123456789", "000000000")


def _tokens(text: str, start: int) -> Iterable[_Token]:
    """What a line consists of: the same in all lines that differ in their digits only, but for hexadecimal numbers."""
    template = text.translate(_BLIND)
    return _found(text, start) if "0x" in template else _found_once(template, start)


def _found(text: str, start: int) -> tuple[_Token, ...]:
    return tuple(
        (kind, token.start(), *token.span(kind)) for token in _TOKEN.finditer(text, start) if (kind := token.lastgroup)
    )


_found_once = lru_cache(maxsize=4_096)(_found)


def _completed(text: str, found: list[Field]) -> list[Field]:
    """The fields with what follows from the one behind: `200/2983 batches`, `41.2/80 GB`, `loss at step 5: 2.3`."""
    for at, field in enumerate(found):
        after = found[at + 1] if at + 1 < len(found) else None
        before = found[at - 1] if at else None
        if after and after.role == "of" and not field.role:
            label = (following(text, after.stop) if is_unnamed(field.label) else "") or field.label
            found[at] = replace(field, label=label, unit=field.unit or after.unit)
            found[at + 1] = replace(after, label=label)
        elif is_unnamed(field.label) and before and re.fullmatch(r"\s*[:=]\s*", text[before.stop : field.begin]):
            named = _AT.search(text[: before.begin])
            if named:
                found[at] = replace(field, label=bare(words(named[1])))
        elif after and _is_name_of_next(text, field, after):
            gap = text[before.stop if before else 0 : field.begin]
            found[at] = replace(field, label=_place(text, gap, field.stop, found[:at]))
    return _listed(text, found)


def _listed(text: str, found: list[Field]) -> list[Field]:
    """The fields with the names of a list in front of theirs: `batch, loss, lr: 100, 3.26, 1e-4`."""
    at = 0
    while at < len(found):
        stop = at + 1
        while stop < len(found) and text[found[stop - 1].stop : found[stop].begin].strip() == ",":
            stop += 1
        count = stop - at
        if count > 1 and (names := _NAMES.search(text, found[at - 1].stop if at else 0, found[at].begin)):
            listed = [part.strip() for part in names[1].split(",")]
            if len(listed) == count:
                mine = zip(found[at:stop], listed, strict=True)
                found[at:stop] = [replace(field, label=bare(words(name))) for field, name in mine]
        at = stop
    return found


def _is_name_of_next(text: str, field: Field, after: Field) -> bool:
    """Whether the words behind a value are the name of the one behind them, and no counter's: `20 train 3.1`."""
    if not field.label.startswith("> ") or field.label[2:] != words(text[field.stop : after.begin]):
        return False
    columns = {column for column, _ in step_columns(field.label[2:])}
    return bool(columns) and columns.isdisjoint(_COUNTERS)


def _value(printed: str, suffix: str) -> float:
    factor = {"": 1.0, "K": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12}[suffix.upper()]
    return float(printed.replace(",", "")) * factor


def _role(gap: str, before: Field | None, number: float | None, *, is_enclosed: bool) -> str:
    """What a value is to the one before it. A slash between blanks may also separate two fields.

    Two numbers with a colon between them are a counter and its total only where brackets hold nothing else.
    """
    if before is None:
        return ""
    if number is not None and before.number is not None and number >= before.number:
        is_pair = before.is_whole and re.fullmatch(r"\s*(?:/|of|out of)\s*", gap)
        if is_pair or gap == "/" or (gap == ":" and before.is_whole and is_enclosed):
            return "of"
    if re.fullmatch(r"\s*\(\s*(?:avg:?\s*|mean:?\s*)?", gap):
        return "mean"
    return ""


def _place(text: str, gap: str, stop: int, found: Sequence[Field]) -> str:
    """What stands for the name of a value that has none: its number among such values, and the signs around it."""
    number = 0
    for field in reversed(found):
        if not is_unnamed(field.label):
            break
        number += 1
    behind = re.match(r"[ \t]*([^\w\s]{0,2})", text[stop:])
    before = re.search(r"([^\w\s]{0,2})[ \t]*$", gap)
    return f"@{number}{before[1] if before else ''}_{behind[1] if behind else ''}"
