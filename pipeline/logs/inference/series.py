"""Each value of a log followed over its lines: what makes a counter a counter and a loss a loss."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from statistics import median

from sweepscope.pipeline.logs.extractors import LEADING
from sweepscope.pipeline.logs.inference.fields import Field, fields
from sweepscope.pipeline.logs.inference.naming import named

Key = tuple[str, str, str]
_THOUSAND = 1_000

_LOGGED = re.compile(f"^{LEADING}")
_RANK = re.compile(
    r"(?i)^\W{0,2}(?:global[ _]?|local[ _]?)?(?:rank|gpu|worker|proc(?:ess)?|device|r)[ _:=#]{0,2}(\d{1,5})(?=\W)"
)


@dataclass(frozen=True)
class Line:
    """A line of the sample.

    Attributes:
        number: of the line in its file.
        text: without its prefixes and colours.
        begin: where the text begins behind what the user's own logger puts in front of it.
        block: lines of one block follow each other in the file, except for those without a number.
        rank: that printed it; None where that is unknown.
        ts: when it was printed.
        fields: its values.
        prefix: what launchers and loggers put in front of it.
    """

    number: int
    text: str
    begin: int
    block: int
    rank: int | None
    ts: datetime | None
    fields: tuple[Field, ...]
    prefix: str = ""


def line(number: int, text: str, block: int = 0, rank: int | None = None, ts: datetime | None = None) -> Line:
    """A line and its values."""
    logged = _LOGGED.match(text)
    begin = logged.end() if logged else 0
    if rank is None and (named := _RANK.match(text, begin) or _RANK.match(text)):
        rank = int(named[1])
    return Line(number, text, begin, block, rank, ts, tuple(fields(text, begin)))


@dataclass
class Series:
    """The values of one key, in the order of their lines. `rows` are indices of lines, `fields` their values."""

    key: Key
    rows: list[int] = field(default_factory=list)
    fields: list[Field] = field(default_factory=list)

    def within(self, rows: set[int]) -> Series:
        """Its values in some lines, without those of an evaluation."""
        each = zip(self.rows, self.fields, strict=True)
        mine = [(row, one) for row, one in each if row in rows and one.split != "eval"]
        return Series(self.key, [row for row, _ in mine], [one for _, one in mine])

    @property
    def label(self) -> str:
        """The words that name it."""
        return self.key[0]

    @cached_property
    def numbers(self) -> list[float]:
        """Its values that are finite."""
        return [one.number for one in self.fields if one.number is not None and math.isfinite(one.number)]

    @cached_property
    def is_whole(self) -> bool:
        """Whether all are printed without a fraction."""
        return bool(self.fields) and all(one.is_whole for one in self.fields)

    @cached_property
    def is_count(self) -> bool:
        """Whether all are printed without a fraction, or, behind one that is, as `12K`."""
        return any(one.is_whole for one in self.fields) and all(
            one.is_whole or is_shortened(one) for one in self.fields
        )

    @property
    def has_shortened(self) -> bool:
        """Whether some are printed as `12K`."""
        return any(map(is_shortened, self.fields))

    @cached_property
    def median(self) -> float:
        """Their middle; NaN of none."""
        return median(self.numbers) if self.numbers else math.nan

    @cached_property
    def by_row(self) -> dict[int, Field]:
        """The first value in each line."""
        found: dict[int, Field] = {}
        for row, one in zip(self.rows, self.fields, strict=True):
            found.setdefault(row, one)
        return found


def is_shortened(one: Field) -> bool:
    """Whether a count is printed in thousands or more: `12K`, `1.5M`."""
    return one.number is not None and one.text[-1:] in "kKMB" and one.number >= _THOUSAND


@dataclass(frozen=True)
class Course:
    """How a series goes from line to line of one rank: how often it rises, falls and stays; how many values it has."""

    up: int
    down: int
    same: int
    distinct: int

    @property
    def moves(self) -> int:
        """How often it changes."""
        return self.up + self.down

    @property
    def rising(self) -> float:
        """The share of its changes that go up; 0 where it never changes."""
        return self.up / self.moves if self.moves else 0.0


def course(series: Series, lines: Sequence[Line]) -> Course:
    """How a series goes, each rank apart."""
    last: dict[int | None, float] = {}
    up = down = same = 0
    for row, one in series.by_row.items():
        if one.number is None or not math.isfinite(one.number):
            continue
        rank = lines[row].rank
        if rank in last:
            up += one.number > last[rank]
            down += one.number < last[rank]
            same += one.number == last[rank]
        last[rank] = one.number
    return Course(up, down, same, len(set(series.numbers)))


def steps_between(series: Series, lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Rows of neighbours: values of one rank and block between which the series rises."""
    last: dict[tuple[int, int | None], int] = {}
    found = series.by_row
    for row, one in found.items():
        stream = (lines[row].block, lines[row].rank)
        before = last.get(stream)
        if before is not None and one.number is not None and (found[before].number or 0) < one.number:
            yield before, row
        last[stream] = row


def all_series(lines: Iterable[Line]) -> dict[Key, Series]:
    """Every series of the lines, by key."""
    found: dict[Key, Series] = {}
    for row, one in enumerate(lines):
        for value in one.fields:
            series = found.setdefault(value.key, Series(value.key))
            series.rows.append(row)
            series.fields.append(value)
    for series in [one for one in found.values() if named(one.label, "step") == 0 and not one.is_count]:
        _split_durations(series, found)
    return found


def _split_durations(series: Series, found: dict[Key, Series]) -> None:
    """A series of counters without the durations under the same name: DeepSpeed's timers print `| step: 8.59`.

    Only where a line of its own has each of them: a counter may be printed as 10.0 throughout.
    """
    is_whole = {row: one.is_whole or is_shortened(one) for row, one in zip(series.rows, series.fields, strict=True)}
    if series.key[1] or not any(is_whole.values()):
        return
    each = list(zip(series.rows, series.fields, strict=True))
    for key, wanted in (((series.label, "duration", series.key[2]), False), (series.key, True)):
        mine = [(row, one) for row, one in each if is_whole[row] == wanted]
        found[key] = Series(key, [row for row, _ in mine], [one for _, one in mine])
