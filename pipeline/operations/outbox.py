"""What is remembered of alerts, and what has yet to be delivered: one file, written before anything is sent.

A delivery is taken out once its receiver has accepted it. A process that is killed in between delivers it again, under
the same id, by which receivers can tell.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.operations.assess import Memory, Message
from sweepscope.pipeline.store.durable_files import storing, write_over
from sweepscope.pipeline.store.home import Home

GIVEN_UP_AFTER = timedelta(hours=24)
_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=1)


@dataclass(frozen=True)
class Delivery:
    """One message for one receiver, by its key and its name."""

    receiver: str
    label: str
    message: Message
    made_at: datetime
    id: str = field(default_factory=lambda: uuid4().hex)
    tries: int = 0
    next_at: datetime | None = None
    error: str | None = None

    def is_due(self, now: datetime) -> bool:
        """Whether to try now."""
        return self.next_at is None or self.next_at <= now

    def failed(self, error: str, now: datetime) -> Delivery | None:
        """The delivery after a try that failed, to be made again later; None when it is given up."""
        if now - self.made_at >= GIVEN_UP_AFTER:
            return None
        pause = min(_FIRST_PAUSE * 2**self.tries, _LONGEST_PAUSE)
        return replace(self, tries=self.tries + 1, next_at=now + pause, error=error)


@dataclass(frozen=True)
class State:
    """What the home keeps of alerts. `memory` is None before the first look."""

    memory: Memory | None = None
    outbox: tuple[Delivery, ...] = ()
    sent: int = 0
    given_up: int = 0


def state_file(home: Home) -> Path:
    """Where it is kept."""
    return home.alerts / "state.json"


def read_state(home: Home) -> State:
    """The state of a home; that of before the first look where there is none. Raises StoreError for a damaged file."""
    path = state_file(home)
    try:
        return _parsed(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return State()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{path} cannot be read ({error}). Move it away: what the store holds now is not sent."
        ) from error


def write_state(home: Home, state: State) -> None:
    """Keep it. Raises StoreError where the disk does not take it."""
    with storing(home.alerts, "remember alerts in"):
        write_over(state_file(home), json.dumps(asdict(state), default=_iso))


def _parsed(row: dict[str, Any]) -> State:
    memory = row["memory"]
    if memory is not None:
        seen = {key: datetime.fromisoformat(at) for key, at in memory["seen"].items()}
        memory = Memory(**{**memory, "seen": seen})
    return State(memory, tuple(map(_delivery, row["outbox"])), row["sent"], row["given_up"])


def _delivery(row: dict[str, Any]) -> Delivery:
    message = row["message"]
    items = tuple((text, run_id) for text, run_id in message["items"])
    next_at = row["next_at"] and datetime.fromisoformat(row["next_at"])
    made_at = datetime.fromisoformat(row["made_at"])
    return Delivery(
        **{**row, "message": Message(**{**message, "items": items}), "made_at": made_at, "next_at": next_at}
    )


def _iso(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not kept")
