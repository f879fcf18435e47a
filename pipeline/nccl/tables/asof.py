"""As-of lookups: the last event before and the first event after each of many lines, by owner."""

from __future__ import annotations

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.lines.distinct import coded_rows

NONE = -1


class Events:
    """Events of owners (threads, processes, addresses) and the lines from which they are looked for.

    Results are indices of events, or NONE. Of several events of one line, looking back finds the last, ahead the first.
    """

    def __init__(self, events: np.ndarray, lines: np.ndarray, at: np.ndarray) -> None:
        """Owner number of each event and of each line to look from; and the line number `at` of each event."""
        self._lines = lines
        self._end = int(at.max(initial=0)) + 2
        self._order = np.lexsort((at, events))
        self._owners = events[self._order]
        self._keys = self._key(self._owners, at[self._order])

    def before(self, line_no: np.ndarray) -> np.ndarray:
        """The last event at or before each line number."""
        return self._of_same_owner(np.searchsorted(self._keys, self._key(self._lines, line_no), side="right") - 1)

    def after(self, line_no: np.ndarray) -> np.ndarray:
        """The first event at or after each line number."""
        return self._of_same_owner(np.searchsorted(self._keys, self._key(self._lines, line_no), side="left"))

    def _key(self, owner: np.ndarray, line_no: np.ndarray) -> np.ndarray:
        """One number for both, in their order."""
        found: np.ndarray = owner * self._end + np.minimum(line_no, self._end - 1)
        return found

    def _of_same_owner(self, found: np.ndarray) -> np.ndarray:
        if not len(self._order):
            return np.full(len(found), NONE)
        index = np.clip(found, 0, len(self._order) - 1)
        is_same = (found == index) & (self._owners[index] == self._lines)
        return np.where(is_same, self._order[index], NONE)


def owners(events: pl.DataFrame, lines: pl.DataFrame, *keys: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Numbers of the owners of the events and of the lines, one pair for each key.

    Args:
        events, lines: frames with the columns of the keys.
        keys: columns that name an owner; each key is a part of the first.
    """
    distinct, code = coded_rows(pl.concat([events.select(keys[0]), lines.select(keys[0])]))
    found = [(code[: len(events)], code[len(events) :])]
    for key in keys[1:]:
        _, wider = coded_rows(distinct.select(key))
        found.append((wider[found[0][0]], wider[found[0][1]]))
    return found


def taken(column: pl.Series, indices: np.ndarray) -> np.ndarray:
    """The integers at the indices; NONE for index NONE."""
    if not len(column):
        return np.full(len(indices), NONE)
    found: np.ndarray = np.where(indices == NONE, NONE, column.to_numpy()[indices])
    return found
