"""Turns of queries: a visit has one at a time, and visits come one after another where more wait than may run.

A query runs in a thread that waits for its process, so that the page stays alive: it shows the place in the queue and
can cancel.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from sweepscope.dashboard.sandbox.run_query import STOPPED, Limits, QueryResult
from sweepscope.pipeline.errors import QueryError
from sweepscope.pipeline.io.sandbox import Stop

PATIENCE_S = 1.0
"""How long a page waits for an answer before it shows that there is none yet: most come sooner."""

Work = Callable[[Stop], QueryResult]


class Turn:
    """A query of a visit, which waits, runs and is over. `started_at` is of the monotonic clock, None before."""

    def __init__(self, visit: str, work: Work) -> None:
        self.visit, self.work, self.stop = visit, work, Stop()
        self.started_at: float | None = None
        self._over = threading.Event()
        self._result: QueryResult | None = None
        self._error: Exception | None = None

    @property
    def is_over(self) -> bool:
        """Whether there is a result or an error."""
        return self._over.is_set()

    @property
    def running_s(self) -> float | None:
        """Seconds since the query began to run; None while it waits."""
        return None if self.started_at is None else time.monotonic() - self.started_at

    def wait(self, seconds: float) -> None:
        """Return when it is over, or after so many seconds."""
        self._over.wait(seconds)

    def result(self) -> QueryResult:
        """The result of a turn that is over. Raises what its query raised, or QueryError when it was cancelled."""
        self._over.wait()
        if self._result is None:
            raise self._error or QueryError(STOPPED)
        return self._result

    def end(self, result: QueryResult | None = None, error: Exception | None = None) -> None:
        """Make it over, with one of both."""
        self._result, self._error = result, error
        self._over.set()


class Turns:
    """Who may run a query now: at most `slots` visits, each with one query; the next one is who has waited longest."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._lock = threading.RLock()
        self._waiting: list[Turn] = []
        self._running: list[Turn] = []

    def take(self, visit: str, work: Work) -> Turn:
        """The turn of a query, at the end of the queue. An earlier one of the visit that is not over is cancelled."""
        turn = Turn(visit, work)
        with self._lock:
            for earlier in [*self._waiting, *self._running]:
                if earlier.visit == visit:
                    self.cancel(earlier)
            self._waiting.append(turn)
            self._admit()
        return turn

    def cancel(self, turn: Turn) -> None:
        """End a turn: it leaves the queue, or its process is killed."""
        with self._lock:
            turn.stop.ask()
            if turn in self._waiting:
                self._waiting.remove(turn)
                turn.end(error=QueryError(STOPPED))

    def place(self, turn: Turn) -> int:
        """Place of a turn in the queue, from 1 on; 0 when it does not wait."""
        with self._lock:
            return self._waiting.index(turn) + 1 if turn in self._waiting else 0

    def _admit(self) -> None:
        for turn in list(self._waiting):
            if len(self._running) == self.slots:
                return
            if turn.visit not in {running.visit for running in self._running}:
                self._waiting.remove(turn)
                self._running.append(turn)
                turn.started_at = time.monotonic()
                threading.Thread(target=self._run, args=(turn,), name="query", daemon=True).start()

    def _run(self, turn: Turn) -> None:
        try:
            turn.end(turn.work(turn.stop))
        except Exception as error:  # raised again where the result is asked for
            turn.end(error=error)
        finally:
            with self._lock:
                self._running.remove(turn)
                self._admit()


def slots_of(memory_bytes: int) -> int:
    """How many queries may run at once on a machine: at most half of its memory is theirs, whatever they ask.

    More than four would make none of them faster: they share the processors. Fewer than two would let one visit stop
    all others.

    >>> slots_of(4 << 30), slots_of(12 << 30), slots_of(1 << 40)
    (2, 3, 4)
    """
    return max(2, min(4, memory_bytes // 2 // (2 * Limits().memory_bytes)))


TURNS = Turns(slots_of(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
"""The turns of this server."""
