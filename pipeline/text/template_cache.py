"""The shapes of lines that were met, each with a number and a sample, and what the samples answered.

See `pipeline.text.line_templates`, which asks. It is a memory and nothing else: without it, answers would be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import RLock

import numpy as np
import polars as pl

Question = Callable[[pl.Series], pl.Series]
"""Texts to answers: whether, or how many. It names no digit, and there is no line end to look at."""

_UNASKED = np.int16(-1)
_NOTHING = np.empty(0, dtype=np.int16)

_SLOT_BITS = 20
_MOST_SHAPES = 1 << 16
_MOST_BYTES = 8 << 20
"""More shapes than that, or more bytes of them, are forgotten: no formats print such lines."""


class Known:
    """What is known of shapes. Number 0 is no line's.

    Attributes:
        samples: a line of each shape, by its number.
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
        """The number of each line's shape; None where there is no room for the new ones beside others."""
        with self._lock:
            slots = _slots_of(hashes)
            number: np.ndarray = self._slots[slots]
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
        if len(self._hashes) > 1 and (size > _MOST_BYTES or count > _MOST_SHAPES):
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
        place = np.searchsorted(self._hashes, hashes, sorter=self._order)
        number: np.ndarray = self._order[np.minimum(place, len(self._order) - 1)]
        return number

    def answers(self, name: Hashable, question: Question, number: np.ndarray) -> np.ndarray:
        """What the sample of each number answers."""
        with self._lock:
            told = self._answers.get(name, _NOTHING)
            if len(told) < len(self._hashes):
                told = np.concatenate([told, np.full(len(self._hashes) - len(told), _UNASKED)])
                self._answers[name] = told
            found: np.ndarray = told[number]
            is_open = found == _UNASKED
            if is_open.any():
                new = once(number[is_open], len(told))
                told[new] = question(self.samples.gather(new)).cast(pl.Int16).to_numpy()
                found = told[number]
            return found


def once(numbers: np.ndarray, most: int) -> np.ndarray:
    """Each of the numbers below `most` once, which takes no sorting."""
    is_there = np.zeros(most, dtype=bool)
    is_there[numbers] = True
    return np.flatnonzero(is_there)


def _slots_of(hashes: np.ndarray) -> np.ndarray:
    slots: np.ndarray = (hashes >> np.uint64(64 - _SLOT_BITS)).astype(np.intp)
    return slots
