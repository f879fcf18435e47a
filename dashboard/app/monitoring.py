"""`/healthz` and `/metrics`, answered without the password: both have counts, and words of a fixed list, only.

Load balancers and Prometheus know no cookies. `/healthz` answers to any name, because probes use whatever leads to the
server; `/metrics` to the names that pages answer to, so that no page of another site can read counts through the DNS.
"""

from __future__ import annotations

import asyncio
import json

from starlette.types import ASGIApp, Receive, Scope, Send

from sweepscope.pipeline.io.web_access import Access, is_known_host
from sweepscope.pipeline.operations.exposition import CONTENT_TYPE, exposition, health
from sweepscope.pipeline.operations.measures import measure
from sweepscope.pipeline.store.home import Home

HEALTH, METRICS = "/healthz", "/metrics"


class Monitoring:
    """ASGI middleware that answers for these two addresses; all else goes on to the app.

    Args:
        app: what comes next.
        home: whose state is shown.
        access: names to which `/metrics` answers.
    """

    def __init__(self, app: ASGIApp, *, home: Home, access: Access) -> None:
        self._app, self._home, self._access = app, home, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        is_ours = scope["type"] == "http" and scope["path"] in (HEALTH, METRICS) and scope["method"] in ("GET", "HEAD")
        if not is_ours or (scope["path"] == METRICS and not self._is_known(scope)):
            await self._app(scope, receive, send)  # the guard says why a name is refused
            return
        found = await asyncio.to_thread(measure, self._home)
        if scope["path"] == HEALTH:
            status, kind, body = 200 if found.is_healthy else 503, "application/json", json.dumps(health(found)) + "\n"
        else:
            status, kind, body = 200, CONTENT_TYPE, exposition(found)
        headers = {"content-type": kind, "cache-control": "no-store", "x-content-type-options": "nosniff"}
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": encoded})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body.encode()})

    def _is_known(self, scope: Scope) -> bool:
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        return is_known_host(host, self._access.names)
