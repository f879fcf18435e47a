"""What the reader has narrowed the page to, as one frozen value that reads from and writes to the URL.

`None` or an empty tuple means "not chosen": the page then picks a default from the data, and the URL stays short.
`UNKNOWN` is a NULL in the store (an accelerator that was not logged), `ALL` every sweep together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from sweepscope.dashboard.format.numbers import number, token_count
from sweepscope.schemas import vocab

UNKNOWN = "unknown"
ALL = "*"
LAYOUT_RANGES = ("dp", "tp", "pp", "cp", "ep")


@dataclass(frozen=True)
class Range:
    """Whole numbers from `minimum` to `maximum`, both included; None leaves a side open."""

    minimum: int | None = None
    maximum: int | None = None

    @classmethod
    def parse(cls, text: str) -> Range | None:
        """Reads "16-", "-8", "4-16" or "8"; None when the text is nothing of these.

        >>> Range.parse("16-"), Range.parse("8"), Range.parse("x"), Range.parse("9-2")
        (Range(minimum=16, maximum=None), Range(minimum=8, maximum=8), None, None)
        """
        low, dash, high = text.strip().partition("-")
        if not all(part == "" or (part.isascii() and part.isdigit()) for part in (low, high)) or not (low or high):
            return None
        minimum = int(low) if low else None
        maximum = int(high) if high else None if dash else minimum
        if minimum is not None and maximum is not None and minimum > maximum:
            return None
        return cls(minimum, maximum)

    def __str__(self) -> str:
        """The form that `parse` reads."""
        if self.minimum == self.maximum:
            return str(self.minimum)
        return f"{'' if self.minimum is None else self.minimum}-{'' if self.maximum is None else self.maximum}"

    def label(self, name: str) -> str:
        """In words for a chip.

        >>> Range(16).label("PP"), Range(None, 8).label("TP"), Range(2, 4).label("DP"), Range(1, 1).label("PP")
        ('PP ≥ 16', 'TP ≤ 8', 'DP 2 to 4', 'PP 1')
        """
        if self.minimum == self.maximum:
            return f"{name} {self.minimum}"
        if self.maximum is None:
            return f"{name} ≥ {self.minimum}"
        if self.minimum is None:
            return f"{name} ≤ {self.maximum}"
        return f"{name} {self.minimum} to {self.maximum}"


@dataclass(frozen=True)
class Filters:
    """Choices of the reader. Those up to `sweep` pick the grid; the others narrow the runs inside it."""

    origin: str | None = None
    accelerator: str | None = None
    seq_len: int | str | None = None
    gbs_tokens: int | str | None = None
    sweep: str | None = None
    framework: tuple[str, ...] = ()
    zero_stage: tuple[int, ...] = ()
    recompute: tuple[str, ...] = ()
    precision: tuple[str, ...] = ()
    dp: Range | None = None
    tp: Range | None = None
    pp: Range | None = None
    cp: Range | None = None
    ep: Range | None = None

    @property
    def narrows_layouts(self) -> bool:
        """True when runs inside the slice are left out."""
        return any(getattr(self, name) for name in NARROWING)

    def having(self, name: str, value: object) -> Filters:
        """These filters with one of them changed; None or () removes it. Raises TypeError for an unknown name."""
        empty: object = () if name in _LISTS else None
        return replace(self, **{name: empty if value is None else value})  # type: ignore[arg-type]  # a field by its name


SLICE = ("origin", "accelerator", "seq_len", "gbs_tokens")
GRID = (*SLICE, "sweep")
NARROWING = tuple(field.name for field in fields(Filters) if field.name not in GRID)
_VOCABULARIES = {
    "framework": re.compile(vocab.DECLARED_FRAMEWORK),  # open: a dialect file brings its own name
    "recompute": re.compile("|".join(vocab.RECOMPUTE)),
    "precision": re.compile("|".join(vocab.PRECISION)),
}


def _number_or_unknown(text: str) -> int | str | None:
    if text == UNKNOWN:
        return UNKNOWN
    return int(text) if text.isascii() and text.isdigit() else None


def parse_query(params: Mapping[str, Sequence[str]]) -> tuple[Filters, tuple[str, ...]]:
    """Reads filters from URL query parameters (name -> all its values).

    Parameters of other widgets are left alone. Returns the filters and, as "name=value", every value that means
    nothing here, so that the page can name what it ignored.
    """
    values: dict[str, object] = {}
    ignored: list[str] = []
    for name, texts in params.items():
        parsed: list[object] = []
        for text in texts:
            value = _parse_value(name, text)
            if value is None and name in _NAMES:
                ignored.append(f"{name}={text}")
            elif value is not None:
                parsed.append(value)
        if parsed:
            values[name] = tuple(dict.fromkeys(parsed)) if name in _LISTS else parsed[0]
    return replace(Filters(), **values), tuple(ignored)  # type: ignore[arg-type] # checked by _parse_value


_NAMES = tuple(field.name for field in fields(Filters))
_LISTS = ("framework", "zero_stage", "recompute", "precision")


def _parse_value(name: str, text: str) -> object | None:
    if name == "origin":
        return text if text in vocab.ORIGIN else None
    if name in ("accelerator", "sweep"):
        return text or None
    if name in ("seq_len", "gbs_tokens"):
        return _number_or_unknown(text)
    if name == "zero_stage":
        return int(text) if text in ("0", "1", "2", "3") else None
    if name in _VOCABULARIES:
        return text if _VOCABULARIES[name].fullmatch(text) else None
    return Range.parse(text) if name in LAYOUT_RANGES else None


def to_query(filters: Filters) -> dict[str, list[str]]:
    """Query parameters that `parse_query` reads back; only what was chosen."""
    query: dict[str, list[str]] = {}
    for name in _NAMES:
        value = getattr(filters, name)
        if value is not None and value != ():
            query[name] = [str(item) for item in value] if isinstance(value, tuple) else [str(value)]
    return query


@dataclass(frozen=True)
class Chip:
    """One active filter: its words and the filters that remain when it is removed."""

    name: str
    label: str
    without: Filters


def chips(filters: Filters) -> list[Chip]:
    """The active filters, in the order of the panel."""
    out = []
    for name in _NAMES:
        value = getattr(filters, name)
        if value is not None and value != ():
            out.append(Chip(name, _chip_label(name, value), filters.having(name, None)))
    return out


def _chip_label(name: str, value: object) -> str:
    if isinstance(value, Range):
        return value.label(name.upper())
    if isinstance(value, tuple):
        words = ", ".join(map(str, value))
        return {"zero_stage": f"ZeRO {words}", "recompute": f"recompute {words}"}.get(name, words)
    if name == "sweep":
        return "all sweeps" if value == ALL else str(value)
    if name == "seq_len":
        return f"sequence {number(value) if isinstance(value, int) else value}"
    if name == "gbs_tokens":
        return f"{token_count(value) if isinstance(value, int) else value} batch"
    return f"accelerator {value}" if value == UNKNOWN else str(value)
