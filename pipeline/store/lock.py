"""One writer at a time: an advisory file lock that tells the others who holds it."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.durable_files import storing

WAIT_S = 60.0
_POLL_S = 0.05


@contextmanager
def exclusive(path: Path, doing: str, *, wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the lock file `path` while the block runs. The kernel releases it when the process dies.

    Args:
        path: the lock file; it and its folder are created.
        doing: what the holder does, for the message that others get.
        wait_s: how long to wait for another holder.

    Raises:
        StoreError: another process still holds it after `wait_s`, or the file cannot be opened.
    """
    with storing(path, "lock"):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _acquire(handle, path, wait_s)
        since = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()} ({doing}, since {since})".encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Whether a process holds the lock file; False when there is none."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _acquire(handle: int, path: Path, wait_s: float) -> None:
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                holder = os.pread(handle, 500, 0).decode(errors="replace") or "another process"
                raise StoreError(
                    f"{path.parent} is being written by {holder}. Wait until it ends or stop it, and run this again."
                ) from None
        time.sleep(_POLL_S)
