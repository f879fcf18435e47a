"""What the first document says beyond Streamlit's: where the server is, how pages look, and what they begin with.

Streamlit's frontend takes the address of a page, `/best`, for a possible base of the server: it asks for
`/best/_stcore/health` before it asks for `/_stcore/health`, and the browser's console shows two errors on each visit
(`frontend/connection/src/utils.ts`, `getPossibleBaseUris`). Pages have one segment, so that the base is the folder of
the address, behind a proxy that adds a path, too.

The style sheet is there before the first element. As an element of the page it came after others, which then moved.
"""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sweepscope.dashboard.format.style_sheet import sheet

_HEAD, _BODY, _END = b"<head>", b"<body>", b"</body>"
SCRIPT = b'<script>window.__streamlit = {BACKEND_BASE_URL: new URL(".", location.href).href}</script>'
_OF_THE_FILE = ("etag", "last-modified")


class Document:
    """ASGI middleware that adds SCRIPT, the style sheet and further tags to HTML documents; all else passes unchanged.

    Args:
        app: what comes next.
        tags: those for the end of the document, by the last segment of its address.
    """

    def __init__(self, app: ASGIApp, *, tags: Callable[[str], str] = lambda _: "") -> None:
        self._app = app
        # behind the frontend's own rules, which it adds to the head, and in front of what pages add below it: of two
        # alike the last one counts
        self._style = f"<style>{sheet()}</style>".encode()
        self._tags = tags

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "GET" or not is_visit(scope):
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
                    page = scope["path"].rpartition("/")[-1]
                    await _send_document(start, self._completed(body, page), send)

        await self._app(scope, receive, forward)

    def _completed(self, body: bytes, page: str) -> bytes:
        styled = body.replace(_HEAD, _HEAD + SCRIPT, 1).replace(_BODY, _BODY + self._style, 1)
        return styled.replace(_END, self._tags(page).encode() + _END, 1)


def is_visit(scope: Scope) -> bool:
    """Whether a request is for a document, by what it accepts."""
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
