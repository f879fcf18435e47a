"""One version of the store as queries read it: results are kept.

A published version never changes, so a frame holds for every visit and rerun until the version goes. A page asks the
same ten questions whenever a widget of it is touched.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

import duckdb
import polars as pl

_MOST_BYTES = 96 * 2**20
_MOST_BYTES_OF_ONE = 8 * 2**20


@dataclass
class Answers:
    """Frames by query. The least recently used go first, when all together have become too large."""

    most_bytes: int = _MOST_BYTES
    _frames: OrderedDict[object, pl.DataFrame] = field(default_factory=OrderedDict)
    _bytes: float = 0
    _lock: Lock = field(default_factory=Lock)

    def get(self, asked: object) -> pl.DataFrame | None:
        """The frame that was kept, or None."""
        with self._lock:
            found = self._frames.get(asked)
            if found is not None:
                self._frames.move_to_end(asked)
            return found

    def keep(self, asked: object, frame: pl.DataFrame) -> None:
        """Keeps a frame that is not too large to be one of many."""
        size = frame.estimated_size()
        if size > min(_MOST_BYTES_OF_ONE, self.most_bytes):
            return
        with self._lock:
            if asked in self._frames:
                return
            self._frames[asked] = frame
            self._bytes += size
            while self._bytes > self.most_bytes:
                _, gone = self._frames.popitem(last=False)
                self._bytes -= gone.estimated_size()


@dataclass(frozen=True)
class Reader:
    """A connection of one script run, and the answers that all runs on this version of the store share."""

    con: duckdb.DuckDBPyConnection
    answers: Answers

    def frame(self, sql: str, params: Mapping[str, object]) -> pl.DataFrame:
        """The result of a query. Frames are shared: derive new ones, change none."""
        asked = (sql, tuple((name, _hashable(value)) for name, value in params.items()))
        found = self.answers.get(asked)
        if found is None:
            found = self.con.sql(sql, params=dict(params)).pl()
            self.answers.keep(asked, found)
        return found

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection for a thread of its own, which keeps no answers."""
        return self.con.cursor()


def _hashable(value: object) -> object:
    # 1, 1.0 and True are equal keys and different parameters
    inside = tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value
    return type(value), inside
