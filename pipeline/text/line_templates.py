"""Lines that differ in nothing but their digits have a shape in common: what is asked of text is asked once per shape.

A log is printed from a few hundred format strings, so that few of its lines have a shape of their own. Where a pattern
names no single digit (`[0-9]` and `\\d` stand for all ten), two lines of a shape give the same answer, at the same
places. What does name one is asked in two steps: with any digit in its place, once per shape, and then as it is, of the
lines that are left. The next block has the same shapes, and so have the other logs of a sweep: answers are remembered.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import polars as pl

from sweepscope.pipeline.text.arrow_buffers import binaries_of
from sweepscope.pipeline.text.template_cache import Known, Question, once

_WINDOW_BYTES = 256 << 10


def without_digits(data: np.ndarray) -> np.ndarray:
    """The bytes with a 0 for every digit, in windows that stay in the processor's cache."""
    zeroed = np.empty_like(data)
    for at in range(0, len(data), _WINDOW_BYTES):
        window = data[at : at + _WINDOW_BYTES]
        above = window - np.uint8(ord("0"))
        above *= above < 10
        np.subtract(window, above, out=zeroed[at : at + _WINDOW_BYTES])
    return zeroed


def shapes_of(data: np.ndarray, offsets: np.ndarray) -> pl.Series:
    """The shape of each text that begins at one of the offsets and ends at the next: a hash of 64 bits."""
    return binaries_of(without_digits(data), offsets).hash()


@dataclass(frozen=True)
class Shapes:
    """Lines by their shapes.

    Attributes:
        text: every line.
        number: the number of each line's shape.
        known: what is known of shapes by number.
    """

    text: pl.Series
    number: np.ndarray
    known: Known
    _latest: ClassVar[Known] = Known()

    @classmethod
    def of(cls, lines: pl.DataFrame) -> Shapes:
        """`lines`: `text` and `shape`, as `shapes_of` gives it."""
        hashes, text = lines["shape"].to_numpy(), lines["text"]
        known = cls._latest
        while (number := known.numbers(hashes, text)) is None:
            known = cls._latest = Known()
        return cls(text, number, known)

    def told(self, question: Question, *, name: Hashable | None = None) -> np.ndarray:
        """What each line answers, as integers; `name` tells questions apart where the function does not."""
        return self.known.answers(question if name is None else name, question, self.number)

    def present(self) -> tuple[np.ndarray, pl.Series]:
        """The numbers that there are, and a line of each."""
        numbers = once(self.number, self.known.samples.len())
        return numbers, self.known.samples.gather(numbers)

    def matching(self, pattern: str, *, exactly: str | None = None) -> np.ndarray:
        """Whether each line matches.

        Args:
            pattern: one that names no digit.
            exactly: one that does, and matches only what `pattern` does, too.
        """
        if self.text.is_empty():  # no pattern is compiled for nothing
            return np.zeros(0, dtype=bool)
        found = self.told(lambda text: text.str.contains(pattern), name=pattern).astype(bool)
        return found if exactly is None else self._verified(found, exactly)

    def holding(self, literals: Collection[str]) -> np.ndarray:
        """Whether each line holds one of the literals."""
        asked = Literals.of(frozenset(literals))
        found = self.matching(asked.any_plain) if asked.plain else np.zeros(self.text.len(), dtype=bool)
        return (
            found | self._verified(self.matching(asked.blind) & ~found, asked.any_numbered) if asked.numbered else found
        )

    def _verified(self, maybe: np.ndarray, pattern: str) -> np.ndarray:
        """Which of the lines that may match do."""
        places = np.flatnonzero(maybe)
        if len(places):
            maybe[places] = self.text.gather(places).str.contains(pattern).to_numpy()
        return maybe


@dataclass(frozen=True)
class Literals:
    """Literals to look for.

    Attributes:
        plain, numbered: those without a digit and those with one.
        any_plain, any_numbered: patterns of them.
        blind: a pattern of the numbered ones with any other digits in place of theirs.
    """

    plain: tuple[str, ...]
    numbered: tuple[str, ...]
    any_plain: str
    any_numbered: str
    blind: str

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, literals: frozenset[str]) -> Literals:
        numbered = {literal for literal in literals if _DIGIT.search(literal)}
        blind = _alternation({_DIGIT.sub("0", literal) for literal in numbered}).replace("0", "[0-9]")
        plain = literals - numbered
        return cls(tuple(sorted(plain)), tuple(sorted(numbered)), _alternation(plain), _alternation(numbered), blind)

    @property
    def any(self) -> str:
        """A pattern of all of them; empty where there are none."""
        return "|".join(pattern for pattern in (self.any_plain, self.any_numbered) if pattern)

    @property
    def any_blind(self) -> str:
        """The same with any other digits in place of theirs."""
        return "|".join(pattern for pattern in (self.any_plain, self.blind) if pattern)


_DIGIT = re.compile("[0-9]")


def _alternation(literals: Collection[str]) -> str:
    """Any of the literals: it beats Aho-Corasick twofold, for it stops at the first."""
    return "|".join(re.escape(one) for one in sorted(literals))


def holding(literals: Collection[str]) -> pl.Expr:
    """Whether `text` holds one of the literals."""
    return pl.col("text").str.contains(Literals.of(frozenset(literals)).any) if literals else pl.lit(value=False)
