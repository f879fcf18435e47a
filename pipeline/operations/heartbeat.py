"""The watcher's sign of life: what its sensor found at its last tick, in a small file that other processes read.

A lock says that the watcher's process lives; this says that it works, also to a dashboard on another machine.
"""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.store.durable_files import write_over
from sweepscope.pipeline.store.home import Home

_LOG = logging.getLogger(__name__)

LATE_AFTER_S = 300.0
"""Age from which a sign of life is none: ten ticks of the sensor."""


@dataclass(frozen=True)
class Heartbeat:
    """The last tick: when (UTC), files that wait for a run, and runs that are queued or at work."""

    at: datetime
    files_waiting: int
    runs_unfinished: int

    def age_s(self, now: datetime) -> float:
        """Seconds since then."""
        return (now - self.at).total_seconds()


def beat(home: Home, *, files_waiting: int, runs_unfinished: int) -> None:
    """Leave a sign of life; a disk that does not take it stops nothing."""
    found = Heartbeat(datetime.now(UTC), files_waiting, runs_unfinished)
    try:
        write_over(home.heartbeat, json.dumps(asdict(found), default=str))
    except OSError as error:
        event(_LOG, logging.WARNING, "heartbeat_not_written", reason=error)


def last_beat(home: Home) -> Heartbeat | None:
    """The last sign of life; None where there was none, or it cannot be read."""
    try:
        row = json.loads(home.heartbeat.read_text(encoding="utf-8"))
        return Heartbeat(datetime.fromisoformat(row["at"]), int(row["files_waiting"]), int(row["runs_unfinished"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
