"""One watcher per home; servers of a killed one are known by the lock that they hold."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.inspection.doctor import examine
from sweepscope.pipeline.store import watcher
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.watcher import left_servers, watching

_WATCHER = """
import subprocess, sys
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.watcher import watching

with watching(Home.resolve(sys.argv[1]), ["/runs"], on_wait=print) as shared:
    command = [sys.executable, "-c", "import time; time.sleep(60)"]
    server = subprocess.Popen(command, pass_fds=[shared.handle], stdout=subprocess.DEVNULL)
    shared.note([server.pid])
    print(server.pid, flush=True)
    sys.stdin.read()
"""


@dataclass
class Watching:
    """A watcher at work on `home`, and the process id of its server."""

    home: Home
    process: subprocess.Popen[str]
    server: int

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Watching]:
    home = Home.resolve(str(tmp_path / "home"))
    process = subprocess.Popen(
        [sys.executable, "-c", _WATCHER, str(home.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    server = int(process.stdout.readline())
    yield Watching(home, process, server)
    with suppress(ProcessLookupError):
        os.kill(server, signal.SIGKILL)
    process.kill()
    process.communicate()


def watcher_finding(home: Home) -> tuple[str, str, str | None]:
    (found,) = (one for one in examine(str(home.path)) if one.check == "watcher")
    return found.state, found.message, found.remedy


def test_a_second_watcher_of_a_home_learns_who_the_first_is(other: Watching) -> None:
    expected = rf"by process {other.process.pid} on \S+ \(watching /runs, since .* UTC\)\. Stop that first"
    with pytest.raises(StoreError, match=expected), watching(other.home, ["/more"], on_wait=pytest.fail):
        pytest.fail("two watchers")
    state, message, _ = watcher_finding(other.home)
    assert state == "ok"
    assert f"process {other.process.pid} " in message


def test_servers_of_a_killed_watcher_are_named(other: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    other.kill()
    left = f"processes {other.server} on {socket.gethostname()} are left of a watcher that was killed"
    assert watcher_finding(other.home)[:2] == ("note", left)
    assert f"`kill {other.server}`" in (watcher_finding(other.home)[2] or "")
    monkeypatch.setattr(watcher, "LEFT_WAIT_S", 0.1)
    heard: list[str] = []
    with pytest.raises(StoreError, match=f"`kill {other.server}`"), watching(other.home, [], on_wait=heard.append):
        pytest.fail("watches beside them")
    assert heard == [f"P{left[1:]}; waiting until they have ended ..."]


def test_the_next_watcher_waits_until_they_have_ended(other: Watching) -> None:
    other.kill()
    with watching(other.home, ["/runs"], on_wait=lambda _: os.kill(other.server, signal.SIGKILL)):
        assert watcher.watcher(other.home)
    assert (watcher.watcher(other.home), left_servers(other.home)) == (None, None)
    assert watcher_finding(other.home)[:2] == ("ok", "no process watches for new runs")


def test_a_watcher_that_was_stopped_leaves_nothing(other: Watching) -> None:
    os.kill(other.server, signal.SIGKILL)
    other.process.communicate()
    assert watcher.watcher(other.home) is None
    # Nobody here can wait for a server: it is the watcher's child, and lets its lock go when it has ended.
    end = time.monotonic() + 60
    while left_servers(other.home) is not None:
        assert time.monotonic() < end
        time.sleep(0.05)
