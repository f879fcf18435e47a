"""Pool of processes that share tasks with this one.

Threads would wait for one another: half of the work on a block of lines holds Python's lock. Polars does not survive a
fork, so each process is a fresh one that imports a single function. It ends when its connection to this process closes,
however this process ended. This module imports the standard library only: the processes start first and import the rest
while this process does (docs/performance.md).
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import subprocess
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
from sweepscope.pipeline.io.event_log import configure, event
from sweepscope.pipeline.io.sandbox import child_command

_LOG = logging.getLogger(__name__)

Task = TypeVar("Task")
Result = TypeVar("Result")

_MAX_QUEUED = 3
"""Tasks that a worker can have: the current one and two to go on with while this process does one itself."""

_MAX_UNORDERED = 8
"""Results per worker that wait for an earlier one before this process waits for that one: memory stays bounded."""

_SERVE = "sweepscope.pipeline.io.process_pool:serve"

MOST_BY_DEFAULT = 4
"""Each process takes memory, and a disk feeds only so many."""

CORES_PER_READER = 2
"""A process that reads run directories keeps more than one core busy: a second one on two cores would not pay."""


def default_workers(*, cores_each: int = 1) -> int:
    """Default number of processes where each keeps so many cores busy."""
    return min(MOST_BY_DEFAULT, max(1, cores() // cores_each))


def cores() -> int:
    """Number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class ProcessPool(Generic[Task, Result]):
    """Does tasks in `number` processes, including this one. Used in a `with` statement, which ends the others.

    Args:
        work: a function of a module, so that other processes can import it; `module:function` where this process is to
            import it only when it does a task itself. Tasks and results must be picklable.
        number: 1 starts no process.
        ahead: most tasks that another process has, including its current one. Few where tasks take long: a task once
            handed out is never taken back.

    Raises:
        WorkerError: a process could not be started, or ended before its work was done.
    """

    def __init__(self, work: Callable[[Task], Result] | str, number: int, *, ahead: int = _MAX_QUEUED) -> None:
        self._named, self.number, self._ahead = work, number, min(ahead, _MAX_QUEUED)
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
        """Hand out a task, or do it here; then the results that are ready, in the order of the tasks.

        Raises what the work on any of the tasks so far raised.
        """
        self._receive(timeout_s=0)
        pending = _Pending()
        self._pending.append(pending)
        free = [worker for worker in self._workers if worker.is_ready and len(worker.pending) < self._ahead]
        if free:
            min(free, key=lambda worker: len(worker.pending)).submit(task, pending)
        else:
            pending.result, pending.is_done = self._work(task), True
        while len(self._pending) > _MAX_UNORDERED * self.number and not self._pending[0].is_done:
            self._receive(timeout_s=None)
        return self._results()

    def drain(self) -> Iterator[Result]:
        """The outstanding results. Raises as `submit` does."""
        while not all(pending.is_done for pending in self._pending):
            self._receive(timeout_s=None)
        return self._results()

    def map(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """The results of all tasks, in order. Raises as `submit` does."""
        for task in tasks:
            yield from self.submit(task)
        yield from self.drain()

    def _results(self) -> Iterator[Result]:
        while self._pending and self._pending[0].is_done:
            yield self._pending.popleft().result

    def _receive(self, *, timeout_s: float | None) -> None:
        ready = wait([worker.connection for worker in self._workers], timeout_s) if self._workers else []
        for worker in self._workers:
            if worker.connection in ready:
                worker.receive()

    def _stop(self) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers.clear()


@dataclass
class _Pending:
    """The result of a task, once it is done."""

    result: Any = None
    is_done: bool = False


@dataclass
class _Worker:
    """Another process, as this one knows it. `pending` has the results of its tasks, in order.

    Tasks pass through `slots`, files in memory that are used in turn; messages on the connection only announce them.
    """

    process: subprocess.Popen[bytes]
    connection: Connection
    slots: deque[IO[bytes]]
    pending: deque[_Pending] = field(default_factory=deque)
    is_ready: bool = False

    @classmethod
    def start(cls, work: Callable[..., object] | str, number: int) -> _Worker:
        """Start a process that imports `work`, and is ready some tenths of a second later. Raises WorkerError."""
        ours, theirs = Pipe()
        try:
            slots = [_slot() for _ in range(_MAX_QUEUED)]
            passed = [theirs.fileno(), *(slot.fileno() for slot in slots)]
            process = subprocess.Popen(  # noqa: S603  # our own interpreter and program
                child_command(_SERVE, *map(str, passed), flags=["-P"]),
                pass_fds=passed,
                env=_environment(number),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                process_group=0,
            )
        except OSError as error:
            raise WorkerError(f"Cannot start a worker: {error.strerror or error}. Try --workers 1.") from error
        finally:
            theirs.close()
        event(_LOG, logging.INFO, "worker_started", worker=process.pid)
        worker = cls(process, ours, deque(slots))
        worker._send(work)
        return worker

    def submit(self, task: object, pending: _Pending) -> None:
        """Hand a task to a worker with a free slot."""
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
            is_success, result = self.connection.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        if not is_success:
            raise result
        if not self.is_ready:
            self.is_ready = True
            return
        pending = self.pending.popleft()
        pending.result, pending.is_done = result, True

    def stop(self) -> None:
        """End the process, whatever it does, and release its files."""
        self.process.kill()
        self.process.wait()
        self.connection.close()
        for slot in self.slots:
            slot.close()

    def _send(self, message: object) -> None:
        try:
            self.connection.send(message)
        except OSError as error:
            raise self._death() from error

    def _death(self) -> WorkerError:
        try:
            code = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return WorkerError("A worker closed its connection. Run it again, or try --workers 1.")
        event(_LOG, logging.WARNING, "worker_died", worker=self.process.pid, exit_code=code, tasks=len(self.pending))
        how = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
        return WorkerError(f"A worker {how} before its work was done. Memory may have run out: try --workers 1.")


def serve(*fds: str) -> None:
    """Run a worker: receive its function, then do the task in each slot in turn, until the connection closes.

    Args:
        fds: file descriptors of the connection and of the slots.
    """
    configure()
    connection_fd, *slot_fds = map(int, fds)
    # Unbuffered: a buffer would keep the task that a slot had before.
    slots = deque(open(fd, "rb", buffering=0) for fd in slot_fds)  # noqa: SIM115  # for as long as the process lives
    with Connection(connection_fd) as connection:
        try:
            work = _function(connection.recv())
            connection.send((True, None))
            while True:
                connection.recv()
                connection.send(_outcome(work, slots[0]))
                slots.rotate(-1)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _function(named: Callable[..., Any] | str) -> Callable[..., Any]:
    found: Callable[..., Any] = resolve_name(named) if isinstance(named, str) else named
    return found


def _outcome(work: Callable[[object], object], slot: IO[bytes]) -> tuple[bool, object]:
    """Whether the work succeeded, and its result or its error."""
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
    """This process's environment; all processes together start no more polars threads than there are cores.

    Threads of a linear algebra library, which no worker uses, would only delay its start.
    """
    threads = max(1, cores() // number)
    wanted = os.environ.get("POLARS_MAX_THREADS", "")
    return {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        "POLARS_MAX_THREADS": str(min(threads, int(wanted)) if wanted.isdecimal() else threads),
    }
