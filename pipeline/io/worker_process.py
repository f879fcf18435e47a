"""Another process that does one kind of task, as this one starts, feeds and ends it.

Polars does not survive a fork, so it is a fresh process that imports a single function. It ends when its connection to
this process closes, however this process ended. This module imports the standard library only: the processes start
first and import the rest while this process does (docs/performance.md).
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
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe
from pkgutil import resolve_name
from typing import IO, Any

from sweepscope.pipeline.errors import WorkerDiedError, WorkerError
from sweepscope.pipeline.io.event_log import configure, event
from sweepscope.pipeline.io.sandbox import child_command

_LOG = logging.getLogger(__name__)

MAX_QUEUED = 3
"""Tasks that a worker can have: the current one and two to go on with while this process does one itself."""

_SERVE = "sweepscope.pipeline.io.worker_process:serve"


def cores() -> int:
    """Number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class Pending:
    """The result of a task, once it is done."""

    result: Any = None
    is_done: bool = False


@dataclass
class Worker:
    """Another process, as this one knows it. `pending` has the results of its tasks, in order.

    Tasks pass through `slots`, files in memory that are used in turn; messages on the connection only announce them.
    """

    process: subprocess.Popen[bytes]
    connection: Connection
    slots: deque[IO[bytes]]
    pending: deque[Pending] = field(default_factory=deque)
    is_ready: bool = False

    @classmethod
    def start(cls, work: Callable[..., object] | str, number: int) -> Worker:
        """Start a process that imports `work`, and is ready some tenths of a second later. Raises WorkerError."""
        ours, theirs = Pipe()
        try:
            slots = [_slot() for _ in range(MAX_QUEUED)]
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

    def submit(self, task: object, pending: Pending) -> None:
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
        """One message, which has begun to arrive. Raises what the work raised; WorkerDiedError for a dead process."""
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

    def do(self, task: object) -> Any:
        """The result of a task, of a worker that has no other. Raises as `receive` does."""
        pending = Pending()
        self.submit(task, pending)
        while not pending.is_done:
            self.receive()
        return pending.result

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

    def _death(self) -> WorkerDiedError:
        try:
            code = self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return WorkerDiedError("A worker closed its connection. Run it again, or try --workers 1.")
        event(_LOG, logging.WARNING, "worker_died", worker=self.process.pid, exit_code=code, tasks=len(self.pending))
        how = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with exit code {code}"
        return WorkerDiedError(f"A worker {how} before its work was done. Memory may have run out: try --workers 1.")


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
            work = function_of(connection.recv())
            connection.send((True, None))
            while True:
                connection.recv()
                connection.send(_outcome(work, slots[0]))
                slots.rotate(-1)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def function_of(named: Callable[..., Any] | str) -> Callable[..., Any]:
    """The function that is given, or named as `module:function`."""
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
