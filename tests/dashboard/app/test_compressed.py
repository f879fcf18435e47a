"""Static files are sent compressed to browsers that take it, and nothing else is touched."""

from __future__ import annotations

import asyncio
import gzip
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sweepscope.dashboard.app.compressed import CompressedStatic, compress

TEXT = b"export const a = 1;\n" * 500


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "static"
    (folder / "js").mkdir(parents=True)
    (folder / "js" / "a.js").write_bytes(TEXT)
    (folder / "small.js").write_bytes(b"1")
    (folder / "font.woff2").write_bytes(TEXT)
    (tmp_path / "secret.js").write_bytes(TEXT)
    return folder


def ask(root: Path, path: str, *, method: str = "GET", **headers: str) -> tuple[dict[str, str], bytes]:
    """Headers and body of the answer; ({}, b"app") where the request went on."""
    sent: list[dict[str, Any]] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.body", "body": b"app"})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": given}
    answering = CompressedStatic(app, root=root)(scope, receive, send)
    # In a thread of its own: a worker's browser may have a loop running in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, answering).result()
    found = {name.decode(): value.decode() for message in sent for name, value in message.get("headers", [])}
    return found, b"".join(message.get("body", b"") for message in sent)


def test_a_script_is_sent_compressed(root: Path) -> None:
    headers, body = ask(root, "/static/js/a.js", accept_encoding="br, gzip")
    assert gzip.decompress(body) == TEXT
    assert headers["content-encoding"] == "gzip"
    assert headers["content-length"] == str(len(body))
    assert "javascript" in headers["content-type"]
    assert ask(root, "/static/js/a.js", method="HEAD", accept_encoding="gzip") == (headers, b"")


@pytest.mark.parametrize(
    "path",
    ["/", "/static/none.js", "/static/../secret.js", "/static//etc/passwd", "/static/font.woff2", "/static/small.js"],
)
def test_all_else_goes_on(root: Path, path: str) -> None:
    assert ask(root, path, accept_encoding="gzip") == ({}, b"app")


def test_browsers_that_take_no_gzip_or_ask_for_a_part_go_on(root: Path) -> None:
    assert ask(root, "/static/js/a.js") == ({}, b"app")
    assert ask(root, "/static/js/a.js", accept_encoding="gzip", range="bytes=0-9") == ({}, b"app")
    assert ask(root, "/static/js/a.js", method="POST", accept_encoding="gzip") == ({}, b"app")


def test_what_a_browser_will_ask_for_is_compressed_beforehand(root: Path) -> None:
    compress(root, "js/*.js")
    (root / "js" / "a.js").write_bytes(b"a file that is only read when it is asked for")
    assert gzip.decompress(ask(root, "/static/js/a.js", accept_encoding="gzip")[1]) == TEXT
