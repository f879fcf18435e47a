"""Who watches for a home: one process, with servers that it starts.

Two locks tell them apart, however they end: the watcher alone holds one, its servers inherit the other. Where only the
second is held, the watcher was killed and its servers are left.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lock import exclusive, holder

LEFT_WAIT_S = 20.0
"""How long the servers of a killed watcher are given: they end with it, after 15 s by force."""

_PROBED_S = 1.0  # longer than others take to see who holds a lock


@dataclass(frozen=True)
class Servers:
    """What the servers of a watcher hold: each inherits `handle`."""

    handle: int

    def note(self, pids: Sequence[int]) -> None:
        """Keep their process ids, by which others can name them when the watcher is gone."""
        os.ftruncate(self.handle, 0)
        os.pwrite(self.handle, " ".join([socket.gethostname(), *map(str, pids)]).encode(), 0)


@dataclass(frozen=True)
class Left:
    """Servers whose watcher was killed, on the machine `host`; `pids` are those known that may still run."""

    host: str
    pids: tuple[str, ...]

    def __str__(self) -> str:
        listed = f"processes {', '.join(self.pids)}" if self.pids else "processes"
        return f"{listed} on {self.host} are left of a watcher that was killed"

    @property
    def remedy(self) -> str:
        """What to do when they do not end."""
        named = f": `kill {' '.join(self.pids)}`" if self.pids else ""
        return f"They end by themselves within {LEFT_WAIT_S:.0f} s. If they do not, end them on {self.host}{named}."


@contextmanager
def watching(home: Home, paths: Sequence[str], *, on_wait: Callable[[str], None]) -> Iterator[Servers]:
    """The lock of the servers that are to be started; no other process watches for the home while the block runs.

    Args:
        home: into which is read.
        paths: what is watched, for the message that others get.
        on_wait: called with a sentence where servers of a killed watcher have yet to end.

    Raises:
        StoreError: another process watches for the home, or servers of a killed one do not end.
    """
    doing = f"watching {', '.join(paths)}"
    with exclusive(home.watcher_lock, doing, wait_s=_PROBED_S, refusal=lambda who: _is_watched(home, who)):
        if left := left_servers(home):
            on_wait(f"{_capital(str(left))}; waiting until they have ended ...")
        with exclusive(home.servers_lock, "serving", wait_s=LEFT_WAIT_S, refusal=_are_left) as handle:
            servers = Servers(handle)
            servers.note([])
            yield servers


def watcher(home: Home) -> str | None:
    """The process that watches for a home, and what it watches; None if there is none."""
    return holder(home.watcher_lock)


def left_servers(home: Home) -> Left | None:
    """Servers of a killed watcher; None if there are none. While one is at work, they are its own."""
    return _parsed(noted) if (noted := holder(home.servers_lock)) else None


def _parsed(noted: str) -> Left:
    host, *pids = noted.split()
    is_here = host == socket.gethostname()
    return Left(host, tuple(pid for pid in pids if not is_here or _is_running(int(pid))))


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _is_watched(home: Home, who: str) -> str:
    return (
        f"New runs are already read into {home.path}, by {who}. Stop that first, or give another home with --home; "
        "`sweepscope dashboard` shows what it reads."
    )


def _are_left(noted: str) -> str:
    left = _parsed(noted)
    return f"{_capital(str(left))}. {left.remedy}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
