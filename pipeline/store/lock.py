"""One writer at a time: an advisory file lock that tells the others who holds it."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.durable_files import storing

WAIT_S = 60.0
_POLL_S = 0.05


@contextmanager
def exclusive(
    path: Path, doing: str, *, wait_s: float = WAIT_S, refusal: Callable[[str], str] | None = None
) -> Iterator[int]:
    """The handle of the lock file `path`, which is held while the block runs.

    The kernel releases it when the process dies; one that has inherited the handle holds the lock as well.

    Args:
        path: the lock file; it and its folder are created.
        doing: what the holder does, for the message that others get.
        wait_s: how long to wait for another holder.
        refusal: that message, from who holds it.

    Raises:
        StoreError: another process still holds it after `wait_s`, or the file cannot be opened.
    """
    with storing(path, "lock"):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _acquire(handle, wait_s, refusal or (lambda who: _is_written(path, who)))
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()} ({doing}, since {since})".encode(), 0)
        yield handle
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def holder(path: Path) -> str | None:
    """What the holder of a lock file has written there, "another process" where that is nothing; None if it is free."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _written(handle)
    finally:
        os.close(handle)
    return None


def _written(handle: int) -> str:
    return os.pread(handle, 500, 0).decode(errors="replace") or "another process"


def _is_written(path: Path, who: str) -> str:
    return f"{path.parent} is being written by {who}. Wait until it ends or stop it, and run this again."


def _acquire(handle: int, wait_s: float, refusal: Callable[[str], str]) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreError(refusal(_written(handle))) from None
        time.sleep(_POLL_S)
