"""Questions about text, asked once per line template: lines that differ in their digits only share one.

Answers are the same as if every line had been asked. Why this is fast: docs/performance.md, "Line templates".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass
from threading import RLock
from typing import ClassVar

import numpy as np
import polars as pl

from sweepscope.pipeline.text.arrow_buffers import binaries_of, buffers_of
from sweepscope.pipeline.text.literals import Literals
from sweepscope.pipeline.text.word_boundaries import ascii_bounded

Question = Callable[[pl.Series], pl.Series]
"""Texts without line ends to answers, Booleans or small counts. It must not distinguish digits."""

_WINDOW_BYTES = 256 << 10

_UNASKED = np.int16(-1)
_NOTHING = np.empty(0, dtype=np.int16)

_SLOT_BITS = 20
_MOST_TEMPLATES = 1 << 16
_MOST_BYTES = 8 << 20
"""Number of templates, or bytes of them, above which the cache is emptied: no format prints such lines."""


def without_digits(data: np.ndarray) -> np.ndarray:
    """The bytes with a 0 for every digit, computed in windows that stay in the processor's cache."""
    zeroed = np.empty_like(data)
    for begin in range(0, len(data), _WINDOW_BYTES):
        window = data[begin : begin + _WINDOW_BYTES]
        above = window - np.uint8(ord("0"))
        above *= above < 10
        np.subtract(window, above, out=zeroed[begin : begin + _WINDOW_BYTES])
    return zeroed


def template_hashes(data: np.ndarray, offsets: np.ndarray) -> pl.Series:
    """A hash of 64 bits for the template of each text, which begins at one of the offsets and ends at the next."""
    return binaries_of(without_digits(data), offsets).hash()


def with_text(lines: pl.DataFrame, text: pl.Expr) -> pl.DataFrame:
    """`lines` with another `text`, none NULL, and where they have a `template`, that of the new one."""
    changed = lines.with_columns(text=text)
    if "template" not in lines.columns:
        return changed
    return changed.with_columns(template=template_hashes(*buffers_of(changed["text"])))


class TemplateCache:
    """Templates met so far by number, with a sample line and the answers of each. Number 0 is no line's.

    Attributes:
        samples: a line of each template, by its number.
    """

    def __init__(self) -> None:
        self.samples = pl.Series([""], dtype=pl.String)
        self._sample_bytes = 0
        self._hashes = np.zeros(1, dtype=np.uint64)
        self._order = np.zeros(1, dtype=np.intp)
        self._slots = np.zeros(1 << _SLOT_BITS, dtype=np.int32)
        self._answers: dict[Hashable, np.ndarray] = {}
        self._lock = RLock()

    def numbers(self, hashes: np.ndarray, text: pl.Series) -> np.ndarray | None:
        """The number of each line's template; None where there is no room for the new ones beside others."""
        with self._lock:
            number: np.ndarray = self._slots[_slots_of(hashes)]
            strange = np.flatnonzero(self._hashes[number] != hashes)  # new, or its slot is another's
            if len(strange):
                values, first, of_each = np.unique(hashes[strange], return_index=True, return_inverse=True)
                if not self._has_learnt(values, text.gather(strange[first])):
                    return None
                number[strange] = self._found(values)[of_each]
            return number

    def _has_learnt(self, hashes: np.ndarray, text: pl.Series) -> bool:
        new = np.flatnonzero(self._hashes[self._found(hashes)] != hashes)
        if not len(new):
            return True
        samples = text.gather(new).str.strip_chars_end("\r\n")
        size = self._sample_bytes + int(samples.str.len_bytes().sum())
        count = len(self._hashes) + len(new)
        if len(self._hashes) > 1 and (size > _MOST_BYTES or count > _MOST_TEMPLATES):
            return False
        free = self._slots[_slots_of(hashes[new])] == 0
        self._slots[_slots_of(hashes[new[free]])] = len(self._hashes) + np.flatnonzero(free)
        self._hashes = np.concatenate([self._hashes, hashes[new]])
        self._order = np.argsort(self._hashes)
        # By way of Python: a slice of a block would keep all of its bytes.
        self.samples = pl.concat([self.samples, pl.Series(samples.to_list(), dtype=pl.String)], rechunk=True)
        self._sample_bytes = size
        return True

    def _found(self, hashes: np.ndarray) -> np.ndarray:
        """The number of each hash, any for one that is not known."""
        rank = np.searchsorted(self._hashes, hashes, sorter=self._order)
        number: np.ndarray = self._order[np.minimum(rank, len(self._order) - 1)]
        return number

    def answers(self, name: Hashable, question: Question, number: np.ndarray) -> np.ndarray:
        """The answer for each number, from its sample."""
        with self._lock:
            known = self._answers.get(name, _NOTHING)
            if len(known) < len(self._hashes):
                known = np.concatenate([known, np.full(len(self._hashes) - len(known), _UNASKED)])
                self._answers[name] = known
            found: np.ndarray = known[number]
            is_open = found == _UNASKED
            if is_open.any():
                new = _distinct(number[is_open], len(known))
                known[new] = question(self.samples.gather(new)).cast(pl.Int16).to_numpy()
                found = known[number]
            return found


@dataclass(frozen=True)
class LineTemplates:
    """Lines by their templates.

    Attributes:
        text: every line.
        number: the number of each line's template.
        cache: what is known of templates by number.
    """

    text: pl.Series
    number: np.ndarray
    cache: TemplateCache
    _latest: ClassVar[TemplateCache] = TemplateCache()

    @classmethod
    def of(cls, lines: pl.DataFrame) -> LineTemplates:
        """`lines`: `text` and `template`, as `template_hashes` gives it."""
        hashes, text = lines["template"].to_numpy(), lines["text"]
        cache = cls._latest
        while (number := cache.numbers(hashes, text)) is None:
            cache = cls._latest = TemplateCache()
        return cls(text, number, cache)

    def answers(
        self, question: Question, *, name: Hashable | None = None, where: np.ndarray | None = None
    ) -> np.ndarray:
        """The answer for each line, or each line `where` a mask is true, as integers.

        `name` identifies the question where the function does not.
        """
        number = self.number if where is None else self.number[where]
        return self.cache.answers(question if name is None else name, question, number)

    def distinct(self) -> tuple[np.ndarray, pl.Series]:
        """The numbers of these lines' templates, each once, and a sample of each."""
        numbers = _distinct(self.number, self.cache.samples.len())
        return numbers, self.cache.samples.gather(numbers)

    def counts(self, source: pl.Series) -> pl.DataFrame:
        """How many `lines` of each `source` have each template (`number`)."""
        lines = pl.DataFrame([source.alias("source"), pl.Series("number", self.number)])
        return lines.group_by("source", "number").agg(lines=pl.len().cast(pl.Int64))

    def numbered(self) -> tuple[pl.Series, np.ndarray]:
        """A sample of each template of these lines, and for each line the index of its own among them."""
        numbers, samples = self.distinct()
        index = np.empty(self.cache.samples.len(), dtype=np.int64)
        index[numbers] = np.arange(len(numbers))
        return samples, index[self.number]

    def matching(self, pattern: str, *, exactly: str | None = None) -> np.ndarray:
        """Whether each line matches, with boundaries of words as `word_boundaries.ascii_bounded` has them.

        Args:
            pattern: one that names no digit.
            exactly: one that does, and whose matches all match `pattern`, too.
        """
        if self.text.is_empty():  # no pattern is compiled for nothing
            return np.zeros(0, dtype=bool)
        fast = ascii_bounded(pattern)
        found = self.answers(lambda text: text.str.contains(fast), name=pattern).astype(bool)
        return found if exactly is None else self._verified(found, exactly)

    def holding(self, literals: Collection[str]) -> np.ndarray:
        """Whether each line holds one of the literals."""
        wanted = Literals.of(frozenset(literals))
        found = self.matching(wanted.any_plain) if wanted.plain else np.zeros(self.text.len(), dtype=bool)
        if wanted.numbered:
            found |= self._verified(self.matching(wanted.blind) & ~found, wanted.any_numbered)
        return found

    def _verified(self, maybe: np.ndarray, pattern: str) -> np.ndarray:
        """Which of the lines that may match do."""
        rows = np.flatnonzero(maybe)
        if len(rows):
            maybe[rows] = self.text.gather(rows).str.contains(ascii_bounded(pattern)).to_numpy()
        return maybe


def matching(lines: pl.DataFrame, pattern: str) -> pl.DataFrame:
    """Those of `lines` whose `text` matches a pattern that names no digit; once per `template`, if there is one."""
    if "template" not in lines.columns:
        return lines.filter(pl.col("text").str.contains(pattern))
    is_found = LineTemplates.of(lines).matching(pattern)
    return lines if is_found.all() else lines.filter(is_found)


def _distinct(numbers: np.ndarray, most: int) -> np.ndarray:
    """Each of the numbers below `most` once, without sorting."""
    is_there = np.zeros(most, dtype=bool)
    is_there[numbers] = True
    return np.flatnonzero(is_there)


def _slots_of(hashes: np.ndarray) -> np.ndarray:
    slots: np.ndarray = (hashes >> np.uint64(64 - _SLOT_BITS)).astype(np.intp)
    return slots
