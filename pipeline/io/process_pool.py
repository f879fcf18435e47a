"""Processes that share work with this one, which keeps reading, does what they have no hands for, and adds up.

Threads would wait for one another: half of what is done to a block of lines holds Python's lock. The processes are
started afresh (polars does not survive a fork), know nothing but one function, and end when this process does, however
it does: nothing reaches them but the connection on which they wait. This module imports the standard library only, so
that they can be started first and import the rest while this process does.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.connection import Connection, Pipe, wait
from pkgutil import resolve_name
from types import TracebackType
from typing import IO, Any, Generic, TypeVar

from sweepscope.pipeline.errors import WorkerError

Task = TypeVar("Task")
Result = TypeVar("Result")

_SLOTS = 3
"""Tasks that a worker can hold: the one it is at, and the next two, lest it wait while this process does one."""

_AHEAD = 8
"""Results that wait for an earlier one, per worker, before we wait for that one too: memory stays bounded."""

_CHILD = "import sys; from sweepscope.pipeline.io.process_pool import serve; serve(*map(int, sys.argv[1:]))"

MOST_BY_DEFAULT = 4
"""Each process takes memory of its own, and a disk feeds only so many."""

CORES_PER_READER = 2
"""A process that reads run directories keeps more than one core busy: two on two cores would only pay for shares."""


def default_workers(*, cores_each: int = 1) -> int:
    """Processes when nobody says how many and each keeps so many cores busy."""
    return min(MOST_BY_DEFAULT, max(1, cores() // cores_each))


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ProcessPool(Generic[Task, Result]):
    """Does tasks in `number` processes, this one included. To be used in a `with` statement, which stops the others.

    Args:
        work: a function of a module, so that the others can import it; `module:function` where this process is to
            import it only when it does a task itself. Tasks and results must be picklable.
        number: 1 starts no process.
        ahead: tasks that another process holds at most, the one it is at included. Where tasks take long, few: nobody
            takes back what another has.

    Raises:
        WorkerError: a process could not be started, or ended before its work was done.
    """

    def __init__(self, work: Callable[[Task], Result] | str, number: int, *, ahead: int = _SLOTS) -> None:
        self._named, self.number, self._ahead = work, number, min(ahead, _SLOTS)
        self._workers: list[_Worker] = []
        self._pending: deque[_Pending] = deque()

    def __enter__(self) -> ProcessPool[Task, Result]:
        try:
            for _ in range(self.number - 1):
                self._workers.append(_Worker.start(self._named, self.number))
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    @cached_property
    def _work(self) -> Callable[[Task], Result]:
        return _function(self._named)

    def submit(self, task: Task) -> Iterator[Result]:
        """Hand out a task, or do it here; then whatever is done, in the order of the tasks.

        Raises what the work on any of the tasks so far raised.
        """
        self._receive(timeout_s=0)
        pending = _Pending()
        self._pending.append(pending)
        ready = (one for one in self._workers if one.is_ready and len(one.pending) < self._ahead)
        free = min(ready, key=lambda one: len(one.pending), default=None)
        if free is None:
            pending.result, pending.is_done = self._work(task), True
        else:
            free.submit(task, pending)
        while len(self._pending) > _AHEAD * self.number and not self._pending[0].is_done:
            self._receive(timeout_s=None)
        return self._done()

    def drain(self) -> Iterator[Result]:
        """The results that are still to come. Raises as `submit` does."""
        while not all(pending.is_done for pending in self._pending):
            self._receive(timeout_s=None)
        return self._done()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The results of all tasks, in order. Raises as `submit` does."""
        for task in tasks:
            yield from self.submit(task)
        yield from self.drain()

    def _done(self) -> Iterator[Result]:
        while self._pending and self._pending[0].is_done:
            yield self._pending.popleft().result

    def _receive(self, *, timeout_s: float | None) -> None:
        told = wait([one.connection for one in self._workers], timeout_s) if self._workers else []
        for worker in self._workers:
            if worker.connection in told:
                worker.receive()

    def _stop(self) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers.clear()


@dataclass
class _Pending:
    """Where the result of a task belongs."""

    result: Any = None
    is_done: bool = False


@dataclass
class _Worker:
    """Another process, seen from this one. `pending` are those of the tasks it has, in order."""

    process: subprocess.Popen[bytes]
    connection: Connection
    slots: deque[IO[bytes]]
    pending: deque[_Pending] = field(default_factory=deque)
    is_ready: bool = False

    @classmethod
    def start(cls, work: Callable[..., object] | str, number: int) -> _Worker:
        """Start a process that imports `work`, and is ready some tenths of a second later. Raises WorkerError."""
        ours, its = Pipe()
        try:
            slots = [_slot() for _ in range(_SLOTS)]
            passed = [its.fileno(), *(slot.fileno() for slot in slots)]
            process = subprocess.Popen(  # noqa: S603  # our own interpreter and program
                [sys.executable, "-P", "-c", _CHILD, *map(str, passed)],
                pass_fds=passed,
                env=_environment(number),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                process_group=0,
            )
        except OSError as error:
            raise WorkerError(f"Cannot start a worker: {error.strerror or error}. Try --workers 1.") from error
        finally:
            its.close()
        worker = cls(process, ours, deque(slots))
        worker._send(work)
        return worker

    def submit(self, task: object, pending: _Pending) -> None:
        """Hand a task to a worker that is free."""
        slot = self.slots[0]
        try:
            slot.seek(0)
            pickle.dump(task, slot, protocol=5)
            slot.flush()
        except OSError as error:
            raise WorkerError(
                f"Cannot pass work to a worker: {error.strerror or error}. Free memory, or try --workers 1."
            ) from error
        self.slots.rotate(-1)
        self.pending.append(pending)
        self._send(None)

    def receive(self) -> None:
        """One message, which has begun to arrive. Raises what the work raised, and WorkerError for a dead process."""
        try:
            is_well, told = self.connection.recv()
        except (EOFError, OSError) as error:
            raise self._died() from error
        if not is_well:
            raise told
        if not self.is_ready:
            self.is_ready = True
            return
        pending = self.pending.popleft()
        pending.result, pending.is_done = told, True

    def stop(self) -> None:
        """End the process, whatever it does, and give back what it held."""
        self.process.kill()
        self.process.wait()
        self.connection.close()
        for slot in self.slots:
            slot.close()

    def _send(self, message: object) -> None:
        try:
            self.connection.send(message)
        except OSError as error:
            raise self._died() from error

    def _died(self) -> WorkerError:
        try:
            code = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return WorkerError("A worker closed its connection. Run it again, or try --workers 1.")
        how = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
        return WorkerError(f"A worker {how} before its work was done. Memory may have run out: try --workers 1.")


def serve(connection_fd: int, *slot_fds: int) -> None:
    """The life of a worker: learn the function, then take what lies in the slots in turn, until nobody asks."""
    # A buffer would hold what a slot held before.
    slots = deque(open(fd, "rb", buffering=0) for fd in slot_fds)  # noqa: SIM115  # for as long as the process lives
    with Connection(connection_fd) as connection:
        try:
            work = _function(connection.recv())
            connection.send((True, None))
            while True:
                connection.recv()
                connection.send(_answer(work, slots[0]))
                slots.rotate(-1)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _function(named: Callable[..., Any] | str) -> Callable[..., Any]:
    found: Callable[..., Any] = resolve_name(named) if isinstance(named, str) else named
    return found


def _answer(work: Callable[[object], object], slot: IO[bytes]) -> tuple[bool, object]:
    try:
        slot.seek(0)
        return True, work(pickle.load(slot))  # noqa: S301  # written by the process that started this one
    except Exception as error:
        error.add_note(f"in a worker:\n{traceback.format_exc()}")
        return False, error


def _slot() -> IO[bytes]:
    """A file without a name, in memory where the system has such: a block is copied once on either side."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("sweepscope"), "wb")
    return tempfile.TemporaryFile()


def _environment(number: int) -> dict[str, str]:
    """What this process can import, a worker can; together they take no more threads than there are cores.

    Threads of a linear algebra library, which no worker uses, would only make it begin later.
    """
    threads = max(1, cores() // number)
    asked = os.environ.get("POLARS_MAX_THREADS", "")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(os.path.abspath(entry) for entry in sys.path),
        "OPENBLAS_NUM_THREADS": "1",
        "POLARS_MAX_THREADS": str(min(threads, int(asked)) if asked.isdecimal() else threads),
    }
