"""Which event of its own comes last before a line, or next: of many lines at once, in memory of their number."""

from __future__ import annotations

import numpy as np
import polars as pl

from sweepscope.pipeline.nccl.lines.distinct import coded_rows

NONE = -1


class Events:
    """Events of owners (threads, processes, addresses) and the lines from which they are looked for.

    What is found are indices of events; NONE where there is none. Of events of one line the last one counts, looking
    back, and the first one, looking ahead.
    """

    def __init__(self, events: np.ndarray, lines: np.ndarray, at: np.ndarray) -> None:
        """The number of each event's owner and of each line's; and the line `at` which each event stands."""
        self._lines = lines
        self._end = int(at.max(initial=0)) + 2
        self._order = np.lexsort((at, events))
        self._owners = events[self._order]
        self._places = self._place(self._owners, at[self._order])

    def before(self, line_no: np.ndarray) -> np.ndarray:
        """The last event not behind each line's number."""
        return self._own(np.searchsorted(self._places, self._place(self._lines, line_no), side="right") - 1)

    def after(self, line_no: np.ndarray) -> np.ndarray:
        """The first event not before each line's number."""
        return self._own(np.searchsorted(self._places, self._place(self._lines, line_no), side="left"))

    def _place(self, owner: np.ndarray, line_no: np.ndarray) -> np.ndarray:
        """One number for both, in their order."""
        found: np.ndarray = owner * self._end + np.minimum(line_no, self._end - 1)
        return found

    def _own(self, found: np.ndarray) -> np.ndarray:
        if not len(self._order):
            return np.full(len(found), NONE)
        place = np.clip(found, 0, len(self._order) - 1)
        is_own = (found == place) & (self._owners[place] == self._lines)
        return np.where(is_own, self._order[place], NONE)


def owners(events: pl.DataFrame, lines: pl.DataFrame, *keys: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Numbers for the owners of the events and of the lines: those that the first key names, and by fewer and fewer
    of its columns the others."""
    distinct, code = coded_rows(pl.concat([events.select(keys[0]), lines.select(keys[0])]))
    found = [(code[: len(events)], code[len(events) :])]
    for key in keys[1:]:
        _, wider = coded_rows(distinct.select(key))
        found.append((wider[found[0][0]], wider[found[0][1]]))
    return found


def taken(column: pl.Series, places: np.ndarray) -> np.ndarray:
    """The whole numbers at the places; NONE where there is none."""
    if not len(column):
        return np.full(len(places), NONE)
    found: np.ndarray = np.where(places == NONE, NONE, column.to_numpy()[places])
    return found
