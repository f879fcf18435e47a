"""The server visits its own pages before a reader does: the first reader waits for nothing that can be done before.

The first script of a server imports pandas, asks the store some twenty questions and fills the caches: seconds on a
large store. So each page is run once in a session without a browser, Overview first and then in the order of the menu.
Readers go first: while one is at work no page is begun, and one that runs already is stopped. What it has found out
by then is kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime import Runtime
from streamlit.runtime.session_manager import SessionClient

from sweepscope.dashboard.app.document import is_visit
from sweepscope.pipeline.io.event_log import event

_LOG = logging.getLogger(__name__)
_LOOK_EVERY_S = 0.1
_AT_REST_S = 3.0
"""Seconds without a word from any browser after which its reader is taken to read."""
_MOST_TRIES = 3
"""Of a page that readers interrupt: each begins where the last one was stopped."""
_LONGEST_S = 120.0
"""Seconds after which a page is given up."""


class Readers:
    """ASGI middleware that notes when a browser last asked for something: a document, or a run of a page's script."""

    def __init__(self, app: ASGIApp, *, seen: Seen) -> None:
        self._app, self._seen = app, seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http" and is_visit(scope):
            self._seen.note()
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return

        async def noted() -> Message:
            message = await receive()
            self._seen.note()
            return message

        await self._app(scope, noted, send)


@dataclass
class Seen:
    """When a reader was last seen, in seconds of the monotonic clock; None before the first one."""

    at: float | None = None

    def note(self) -> None:
        """A reader is there now."""
        self.at = time.monotonic()

    def is_at_work(self) -> bool:
        """Whether a reader may be waiting for a page."""
        return self.at is not None and time.monotonic() - self.at < _AT_REST_S


async def rehearse(pages: Sequence[str], is_reader_at_work: Callable[[], bool]) -> list[str]:
    """Runs pages, by the last segment of their address ("" is the first page), and returns those that ran to their end.

    Call it on the event loop of a running Streamlit. Pages are run one after another.
    """
    waiting, tries, done = deque(pages), dict.fromkeys(pages, 0), []
    while waiting:
        while is_reader_at_work():
            await asyncio.sleep(_LOOK_EVERY_S)
        page = waiting.popleft()
        tries[page] += 1
        if await _visit(page, is_reader_at_work):
            done.append(page)
        elif tries[page] < _MOST_TRIES:
            waiting.append(page)
    event(_LOG, logging.INFO, "pages_rehearsed", pages=len(done), given_up=len(pages) - len(done))
    return done


@dataclass
class _Visitor(SessionClient):
    """A session's client that waits for the end of the script and reads nothing else."""

    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def write_forward_msg(self, msg: ForwardMsg) -> None:
        """Take what a browser would draw."""
        # one that ends early goes on at once as another: a page has led to the next one
        if msg.WhichOneof("type") == "script_finished" and msg.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
            self.ended.set()


async def _visit(page: str, is_reader_at_work: Callable[[], bool]) -> bool:
    """Whether a page's script ran to its end, instead of being stopped for a reader or given up."""
    runtime, visitor = Runtime.instance(), _Visitor()
    begin = time.monotonic()
    session = runtime.connect_session(visitor, {})
    try:
        runtime.handle_backmsg(session, BackMsg(rerun_script=ClientState(page_name=page)))
        while not visitor.ended.is_set():
            if is_reader_at_work() or time.monotonic() - begin > _LONGEST_S:
                return False
            with suppress(TimeoutError):
                await asyncio.wait_for(visitor.ended.wait(), _LOOK_EVERY_S)
    finally:
        runtime.close_session(session)  # which stops its script
    return True
