"""Limits of time and memory while one file is read in this process (`sweepscope.schemas.limits`)."""

from __future__ import annotations

import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType

from sweepscope.pipeline.errors import LimitError
from sweepscope.schemas import limits

_EVERY_S = 0.1
"""Processor time between two looks: Python makes some 20 MiB of values meanwhile."""

_STATM = Path("/proc/self/statm")
_PAGE_BYTES = resource.getpagesize()


@contextmanager
def metered(path: str, size: Callable[[], int]) -> Iterator[None]:
    """Stop the block where it takes more processor time or memory than its file may.

    A timer of this process's own processor time looks, between two steps of Python: a single call of a library is not
    stopped, so that their input is bounded before. Only the main thread gets signals; others are not metered, nor is a
    block within another.

    Args:
        path: of the file, for the message.
        size: called for the bytes of it that have been read so far, unpacked.

    Raises:
        LimitError: the file took more; one of the block is raised again with the file's path.
    """
    try:
        with _timer(_Meter(size)) if _is_free() else nullcontext():
            yield
    except LimitError as error:
        raise error.of(path) from error


class _Meter:
    """What the block has taken since it began."""

    def __init__(self, size: Callable[[], int]) -> None:
        self._size, self._begin_s, self._begin_bytes = size, time.process_time(), _resident_bytes()

    def look(self) -> None:
        """Raise LimitError where it is too much."""
        size = self._size()
        seconds, memory = limits.seconds_of(size), limits.memory_bytes_of(size)
        if time.process_time() - self._begin_s > seconds:
            raise LimitError(f"reading it takes more than {seconds:.3g} s of processor time, {_remedy(size)}")
        if _resident_bytes() - self._begin_bytes > memory:
            raise LimitError(f"reading it takes more than {memory / limits.MIB:,.0f} MiB of memory, {_remedy(size)}")


def _remedy(size: int) -> str:
    return f"the limit for {size / limits.MIB:,.1f} MiB. Leave it out, or split it."


_current: _Meter | None = None


@contextmanager
def _timer(meter: _Meter) -> Iterator[None]:
    global _current  # noqa: PLW0603 -- a process has one timer
    signal.signal(signal.SIGVTALRM, _look)  # stays: a signal that comes late must not end the process
    signal.siginterrupt(signal.SIGVTALRM, False)
    _current = meter
    signal.setitimer(signal.ITIMER_VIRTUAL, _EVERY_S, _EVERY_S)
    try:
        yield
    finally:
        _current = None
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _is_free() -> bool:
    """Whether this thread gets signals, and nothing else uses the timer."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and _current is None and signal.getsignal(signal.SIGVTALRM) in (signal.SIG_DFL, _look)


def _look(_number: int, _frame: FrameType | None) -> None:
    if _current:
        _current.look()


def _resident_bytes() -> int:
    """Bytes of this process in memory; 0 on systems that do not tell, where memory is not limited."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0
