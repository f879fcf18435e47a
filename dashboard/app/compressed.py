"""Streamlit's scripts and styles, compressed: nine megabytes that a first visit over a slow line waits for.

Streamlit leaves them uncompressed, because compressing takes processor time at each request. They never change under a
running server, so that each is compressed once, when it is first asked for, and kept: about two and a half megabytes.
"""

from __future__ import annotations

import asyncio
import gzip
import mimetypes
from functools import lru_cache
from pathlib import Path

from starlette.types import ASGIApp, Receive, Scope, Send

_PREFIX = "/static/"
_KINDS = frozenset({".js", ".css", ".svg", ".html"})
_LEVEL = 6
_LEAST = 1024
"""Bytes from which compressing is worth a header."""


class CompressedStatic:
    """ASGI middleware that answers for static text files where the browser takes gzip; all else goes on to the app.

    Args:
        app: what comes next.
        root: folder behind `/static/`.
    """

    def __init__(self, app: ASGIApp, *, root: Path) -> None:
        self._app, self._root = app, root.resolve()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        body = await asyncio.to_thread(self._body, scope) if self._is_wanted(scope) else None
        if body is None:
            await self._app(scope, receive, send)
            return
        headers = {
            "content-type": mimetypes.guess_type(scope["path"])[0] or "application/octet-stream",
            "content-encoding": "gzip",
            "content-length": str(len(body)),
            # as Streamlit has it: the names hold a hash of the content
            "cache-control": "public, immutable, max-age=31536000",
            "vary": "Accept-Encoding",
        }
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": encoded})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _is_wanted(self, scope: Scope) -> bool:
        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or not scope["path"].startswith(_PREFIX):
            return False
        given = dict(scope["headers"])
        # a part of a file is a part of what is not compressed
        return b"gzip" in given.get(b"accept-encoding", b"") and b"range" not in given

    def _body(self, scope: Scope) -> bytes | None:
        path = (self._root / scope["path"].removeprefix(_PREFIX)).resolve()
        if path.suffix not in _KINDS or not path.is_relative_to(self._root) or not path.is_file():
            return None
        return _compressed(path)


def compress(root: Path, pattern: str) -> None:
    """Compresses the files below `root` that match before a browser asks: plotly takes a fifth of a second."""
    for path in root.resolve().glob(pattern):
        _compressed(path)


@lru_cache(maxsize=512)
def _compressed(path: Path) -> bytes | None:
    """The file's content in gzip; None where that is not worth it."""
    content = path.read_bytes()
    body = gzip.compress(content, _LEVEL, mtime=0)
    return body if len(content) >= _LEAST and len(body) < len(content) else None
