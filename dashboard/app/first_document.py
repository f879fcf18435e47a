"""What the browser needs early, written into the first document: where the server is, and what to load beside it."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEAD, _HEAD_END = b"<head>", b"</head>"
SCRIPT = b'<script>window.__streamlit = {BACKEND_BASE_URL: new URL(".", location.href).href}</script>'
"""Where the server is.

Streamlit's frontend takes the address of a page, `/best`, for a possible base of the server: it asks for
`/best/_stcore/health` before it asks for `/_stcore/health`, and the browser's console shows two errors on each visit
(`frontend/connection/src/utils.ts`, `getPossibleBaseUris`). Pages have one segment, so that the base is the folder of
the address, behind a proxy that adds a path, too.
"""
_OF_THE_FILE = ("etag", "last-modified")


class FirstDocument:
    """ASGI middleware that adds SCRIPT and `links` to the head of HTML documents; all else passes unchanged.

    Args:
        app: what comes next.
        links: HTML for the end of the head.
    """

    def __init__(self, app: ASGIApp, *, links: str = "") -> None:
        self._app, self._links = app, links.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "GET" or not _is_visit(scope):
            await self._app(scope, receive, send)
            return
        # eight kilobytes, to be read here
        scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]}
        start: Message | None = None
        body = b""

        async def forward(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_document(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    await _send_document(start, self._added(body), send)

        await self._app(scope, receive, forward)

    def _added(self, body: bytes) -> bytes:
        return body.replace(_HEAD, _HEAD + SCRIPT, 1).replace(_HEAD_END, self._links + _HEAD_END, 1)


def _is_visit(scope: Scope) -> bool:
    return b"text/html" in dict(scope["headers"]).get(b"accept", b"")


def _is_document(message: Message) -> bool:
    headers = MutableHeaders(raw=message["headers"])
    return message["status"] == 200 and headers.get("content-type", "").startswith("text/html")


async def _send_document(start: Message, document: bytes, send: Send) -> None:
    headers = MutableHeaders(raw=start["headers"])
    headers["content-length"] = str(len(document))
    for name in _OF_THE_FILE:  # they name the file's content, which this is not
        if name in headers:
            del headers[name]
    await send(start)
    await send({"type": "http.response.body", "body": document})
