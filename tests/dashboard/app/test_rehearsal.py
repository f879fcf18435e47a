"""Pages are run before a reader comes, and no reader waits for that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from streamlit.runtime import Runtime, RuntimeConfig
from streamlit.runtime.caching.storage.dummy_cache_storage import MemoryCacheStorageManager
from streamlit.runtime.memory_media_file_storage import MemoryMediaFileStorage
from streamlit.runtime.memory_session_storage import MemorySessionStorage
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from sweepscope.dashboard.app.rehearsal import Readers, Seen, rehearse

PAGES = """
import time
from pathlib import Path

import streamlit as st

folder = Path({folder!r})

def first():
    note("first")
    st.write("text")

def second():
    note("second")
    raise LookupError("a page that cannot be drawn")

def third():
    note("third")
    while (folder / "blocks").exists():
        st.empty()  # where Streamlit stops a script
        time.sleep(0.01)
    note("third ended")

def note(page):
    with (folder / "ran").open("a") as file:
        file.write(page + "\\n")

st.navigation([st.Page(page, default=page is first) for page in (first, second, third)]).run()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text(PAGES.format(folder=str(tmp_path)))
    return tmp_path


@pytest.fixture
def in_streamlit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """Runs a coroutine beside a running Streamlit, whose one instance of the process it is meanwhile."""
    monkeypatch.setattr(Runtime, "_instance", None)
    config = RuntimeConfig(
        script_path=str(folder / "script.py"),
        media_file_storage=MemoryMediaFileStorage("/media"),
        uploaded_file_manager=MemoryUploadedFileManager("/upload"),
        cache_storage_manager=MemoryCacheStorageManager(),
        is_hello=False,
        session_storage=MemorySessionStorage(),
    )

    def run(work: Coroutine[Any, Any, Any]) -> Any:
        async def beside() -> Any:
            runtime = Runtime(config)
            await runtime.start()
            try:
                return await asyncio.wait_for(work, 120)
            finally:
                runtime.stop()
                await runtime.stopped

        return in_thread(beside())

    return run


def in_thread(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs a coroutine in a thread of its own: Playwright's loop goes on in that of the tests once it was there."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def ran(folder: Path) -> list[str]:
    return (folder / "ran").read_text().splitlines() if (folder / "ran").exists() else []


def test_each_page_runs_once_in_order_one_that_fails_too(folder: Path, in_streamlit: Any) -> None:
    done = in_streamlit(rehearse(["", "second", "third"], lambda: False))
    assert done == ["", "second", "third"]
    assert ran(folder) == ["first", "second", "third", "third ended"]


def test_no_page_is_begun_while_a_reader_is_at_work(folder: Path, in_streamlit: Any) -> None:
    looks = []

    def is_at_work() -> bool:
        looks.append(ran(folder))
        return len(looks) < 4

    assert in_streamlit(rehearse([""], is_at_work)) == [""]
    assert looks[:4] == [[]] * 4
    assert ran(folder) == ["first"]


def test_a_page_is_stopped_for_a_reader_and_run_again(folder: Path, in_streamlit: Any) -> None:
    blocks = folder / "blocks"
    blocks.touch()
    stopped = []

    def is_at_work() -> bool:
        if "third" in ran(folder) and not stopped:
            stopped.append(ran(folder))
            return True
        if stopped:
            blocks.unlink(missing_ok=True)
        return False

    assert in_streamlit(rehearse(["third", ""], is_at_work)) == ["", "third"]
    assert stopped == [["third"]]
    assert ran(folder).count("third") == 2
    assert ran(folder)[-1] == "third ended"


def test_a_page_that_readers_always_interrupt_is_given_up(folder: Path, in_streamlit: Any) -> None:
    (folder / "blocks").touch()
    begun = []

    def is_at_work() -> bool:
        if ran(folder).count("third") > len(begun):
            begun.append("third")
            return True
        return False

    assert in_streamlit(rehearse(["third"], is_at_work)) == []
    assert len(begun) == 3


def through(seen: Seen, scope: dict[str, Any], messages: int = 0) -> None:
    async def app(_scope: Any, receive: Any, _send: Any) -> None:
        for _ in range(messages):
            await receive()

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.receive"}

    async def send(_message: Any) -> None: ...

    in_thread(Readers(app, seen=seen)(scope, receive, send))


def test_a_document_and_a_message_of_a_browser_are_a_reader() -> None:
    document, socket = Seen(), Seen()
    through(document, {"type": "http", "headers": [(b"accept", b"text/html,*/*")]})
    through(socket, {"type": "websocket", "headers": []}, messages=1)
    assert document.is_at_work()
    assert socket.is_at_work()


def test_a_file_a_probe_and_an_open_tab_that_is_silent_are_none() -> None:
    seen = Seen()
    through(seen, {"type": "http", "headers": [(b"accept", b"*/*")]})
    through(seen, {"type": "http", "headers": []})
    through(seen, {"type": "websocket", "headers": []})
    assert not seen.is_at_work()
