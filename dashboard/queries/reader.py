"""One version of the store as queries read it: results are kept.

A published version never changes, so a frame holds for every visit and rerun until the version goes. A page asks the
same ten questions whenever a widget of it is touched.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock

import duckdb
import polars as pl

_MOST_BYTES = 96 * 2**20
_MOST_BYTES_OF_ONE = 8 * 2**20
_MOST_BYTES_OF_ONE_DEAR = 32 * 2**20
_MOST_ASKED_AGAIN = 64
_SLOW_S = 0.05
"""Seconds from which a query is asked beforehand of the next version."""
_DEAR_S = 0.5
"""Seconds from which a reader would notice each rerun that asks again, so that a larger frame is kept as well."""


@dataclass
class Answers:
    """Frames by query. The least recently used go first, when all together have become too large."""

    most_bytes: int = _MOST_BYTES
    _frames: OrderedDict[object, pl.DataFrame] = field(default_factory=OrderedDict)
    _asked: OrderedDict[object, tuple[str, dict[str, object]]] = field(default_factory=OrderedDict)
    _bytes: float = 0
    _lock: Lock = field(default_factory=Lock)
    _turns: dict[object, tuple[Lock, int]] = field(default_factory=dict)

    @contextmanager
    def turn(self, asked: object) -> Iterator[None]:
        """One thread at a time may compute the answer to a query: a second one waits, and finds it kept."""
        with self._lock:
            turn, threads = self._turns.get(asked, (Lock(), 0))
            self._turns[asked] = turn, threads + 1
        try:
            with turn:
                yield
        finally:
            with self._lock:
                _, threads = self._turns.pop(asked)
                if threads > 1:
                    self._turns[asked] = turn, threads - 1

    def get(self, asked: object) -> pl.DataFrame | None:
        """The frame that was kept, or None."""
        with self._lock:
            found = self._frames.get(asked)
            if found is not None:
                self._frames.move_to_end(asked)
            return found

    def usual(self) -> list[tuple[str, dict[str, object]]]:
        """Queries that took long, with their parameters; those asked last come first."""
        with self._lock:
            return list(reversed(self._asked.values()))

    def remember(self, asked: object, sql: str, params: Mapping[str, object]) -> None:
        """Notes a query that took long; the oldest is forgotten beyond a few dozen."""
        with self._lock:
            self._asked[asked] = (sql, dict(params))
            self._asked.move_to_end(asked)
            while len(self._asked) > _MOST_ASKED_AGAIN:
                self._asked.popitem(last=False)

    def keep(self, asked: object, frame: pl.DataFrame, took_s: float = 0) -> None:
        """Keeps a frame that is not too large to be one of many; of one that took seconds, up to a third of the room.

        Otherwise every rerun of every reader would compute it again, and hold as much memory while it does.
        """
        size = frame.estimated_size()
        most = _MOST_BYTES_OF_ONE_DEAR if took_s >= _DEAR_S else _MOST_BYTES_OF_ONE
        if size > min(most, self.most_bytes):
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
        if found is not None:
            return found
        with self.answers.turn(asked):
            found = self.answers.get(asked)
            return self._computed(asked, sql, params) if found is None else found

    def _computed(self, asked: object, sql: str, params: Mapping[str, object]) -> pl.DataFrame:
        begin = time.perf_counter()
        found: pl.DataFrame = self.con.sql(sql, params=dict(params)).pl()
        took_s = time.perf_counter() - begin
        if took_s >= _SLOW_S:
            self.answers.remember(asked, sql, params)
        self.answers.keep(asked, found, took_s)
        return found

    def ask_again(self, before: Answers) -> None:
        """Answers beforehand what readers of the version before asked, the last first, so that no one waits for it.

        What this version cannot answer, because it lacks a table or column, is left to the page that asks.
        """
        for sql, params in before.usual():
            with suppress(duckdb.Error):
                self.frame(sql, params)

    def cursor(self) -> duckdb.DuckDBPyConnection:
        """A connection for a thread of its own, which keeps no answers."""
        return self.con.cursor()


def _hashable(value: object) -> object:
    # 1, 1.0 and True are equal keys and different parameters
    inside = tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value
    return type(value), inside
