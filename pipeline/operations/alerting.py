"""One look at a home: what is new is remembered and put into the outbox, and what waits there is delivered."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import duckdb

from sweepscope.pipeline.errors import NoStoreError, StoreError, SweepscopeError
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.operations.assess import Memory, Message, assess, assess_silence
from sweepscope.pipeline.operations.deliver import DeliveryError, deliver
from sweepscope.pipeline.operations.news import News, read_news
from sweepscope.pipeline.operations.outbox import Delivery, State, read_state, write_state
from sweepscope.pipeline.operations.settings import Alerts, Receiver, read_settings
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lock import exclusive
from sweepscope.pipeline.store.published import current, version_of
from sweepscope.pipeline.text.secrets import hide

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Looked:
    """What came of a look: deliveries made now, waiting, and given up now; `errors` by receiver."""

    sent: int = 0
    waiting: int = 0
    given_up: int = 0
    errors: Mapping[str, str] | None = None

    @property
    def sentence(self) -> str:
        """In words."""
        trouble = "".join(f"; {error}" for error in (self.errors or {}).values())
        noun = "alert" if self.sent == 1 else "alerts"
        return f"{self.sent} {noun} sent, {self.waiting} waiting, {self.given_up} given up{trouble}"


def look(home: Home, *, now: datetime | None = None) -> Looked:
    """Send what is new, and what could not be sent before. Does nothing without receivers.

    Raises:
        UsageError: the settings are wrong.
        StoreError: the state cannot be read or kept, the store is damaged, or another process is at it.
    """
    now = now or datetime.now(UTC)
    settings = read_settings(home).alerts
    if not settings.receivers:
        return Looked()
    with exclusive(home.alerts / "alerts.lock", "sending alerts", wait_s=1.0):
        state = _with_news(home, read_state(home), settings, now)
        return _delivered(home, state, settings, now)


def send_test(home: Home, *, now: datetime | None = None) -> dict[str, str | None]:
    """Send a message to every receiver, whatever kinds it wants; its label and the error, None where it was taken.

    Raises UsageError: the settings are wrong.
    """
    now = now or datetime.now(UTC)
    settings = read_settings(home).alerts
    items = (("This is a test: alerts of this home reach you.", None),)
    found: dict[str, str | None] = {}
    for receiver in settings.receivers:
        try:
            deliver(
                Delivery(receiver.key, receiver.label, Message("test", "test", items), now),
                receiver,
                settings.dashboard_url,
            )
            found[receiver.label] = None
        except SweepscopeError as error:
            found[receiver.label] = str(error)
    return found


def _with_news(home: Home, state: State, settings: Alerts, now: datetime) -> State:
    """The state with messages on what is new in the outbox, kept on disk."""
    memory, messages = state.memory, list[Message]()
    news = _news(home, memory)
    if news is not None or memory is None:
        messages, memory = assess(news or News(), memory, settings, now)
    silence, memory = assess_silence(memory, settings, now)
    if state.memory is not None:  # that it is silent already is nothing new the first time
        messages = [*messages, *silence]
    if memory == state.memory:
        return state
    made = [
        Delivery(receiver.key, receiver.label, _hidden(message), now)
        for message in messages
        for receiver in settings.receivers
        if message.kind in receiver.kinds
    ]
    for message in messages:
        event(_LOG, logging.INFO, "alert", kind=message.kind, title=message.title)
    state = replace(state, memory=memory, outbox=(*state.outbox, *made))
    write_state(home, state)
    return state


def _news(home: Home, memory: Memory | None) -> News | None:
    """News of a version of the store that was not looked at yet; None where there is none."""
    try:
        path = current(home.path)
        return None if memory is not None and version_of(path) == memory.version else read_news(path)
    except NoStoreError:
        return None
    except duckdb.Error as error:
        raise StoreError(f"The store {path} lacks what alerts look at: run `sweepscope ingest` once more.") from error


def _delivered(home: Home, state: State, settings: Alerts, now: datetime) -> Looked:
    """Make the deliveries that are due. The state is kept after each that a receiver took."""
    receivers: dict[str, Receiver] = {receiver.key: receiver for receiver in settings.receivers}
    sent, given_up, errors = 0, 0, {}
    for delivery in [one for one in state.outbox if one.is_due(now)]:
        rest = tuple(one for one in state.outbox if one.id != delivery.id)
        receiver = receivers.get(delivery.receiver)
        if receiver is None:  # no longer in the settings
            state = replace(state, outbox=rest)
            continue
        try:
            deliver(delivery, receiver, settings.dashboard_url)
        except SweepscopeError as error:
            errors[delivery.label] = str(error)
            later = delivery.failed(str(error), now)
            given_up += later is None
            state = replace(
                state, outbox=(*rest, *([later] if later else [])), given_up=state.given_up + (later is None)
            )
            level = logging.INFO if isinstance(error, DeliveryError) and later else logging.WARNING
            event(_LOG, level, "alert_not_sent", receiver=delivery.label, reason=error, tries=delivery.tries + 1)
        else:
            sent += 1
            state = replace(state, outbox=rest, sent=state.sent + 1)
        write_state(home, state)
    return Looked(sent, len(state.outbox), given_up, errors)


def _hidden(message: Message) -> Message:
    """Without credentials that a line of a log may have."""
    return replace(message, items=tuple((hide(text), run_id) for text, run_id in message.items))
