"""Which lines of a log hold something: millions of them, of which a few are asked for."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import polars as pl


@dataclass(frozen=True)
class LineNumbers:
    """Numbers of lines, found by bisection: a set of them would take thirty times their memory.

    Attributes:
        rising: the numbers; equal ones may follow each other.
    """

    rising: pl.Series = field(default_factory=lambda: pl.Series("line_no", [], dtype=pl.Int64))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return not self.rising.is_empty()

    def holds(self, lines: Collection[int] | pl.Series) -> np.ndarray:
        """Whether each of a few lines is among them.

        >>> LineNumbers(pl.Series([2, 3, 3, 7])).holds([3, 4, 9]).tolist()
        [True, False, False]
        """
        asked = np.fromiter(lines, dtype=np.int64, count=len(lines))
        if not self:
            return np.zeros(asked.size, bool)
        at = self.rising.search_sorted(pl.Series(asked), side="left").to_numpy()
        found = self.rising.gather(np.minimum(at, self.rising.len() - 1))
        return np.asarray(found.to_numpy() == asked)

    def among(self, lines: Collection[int] | pl.Series) -> frozenset[int]:
        """Those of a few lines that are among them."""
        is_held = self.holds(lines)
        return frozenset(line for line, held in zip(lines, is_held, strict=True) if held)


def rows_of(sources: pl.Series, source: int) -> slice:
    """The rows of one source in a frame whose rows are in the order of their sources.

    >>> rows_of(pl.Series([0, 0, 2, 5]), 0), rows_of(pl.Series([0, 0, 2, 5]), 1)
    (slice(0, 2, None), slice(2, 2, None))
    """
    begin, end = (int(sources.search_sorted(source, side=side)) for side in ("left", "right"))
    return slice(begin, end)
