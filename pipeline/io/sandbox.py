"""Child processes with hard limits: a request goes in, an answer of bounded size comes out, whatever the input does.

A child runs our code on our import path, with an empty environment, in `/`, in a process group of its own that a clock
kills. It limits its own memory, processor time and files (`sandbox_child`). This module imports the standard library
only: `process_pool` starts its processes first and imports the rest meanwhile.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import RawIOBase
from typing import NamedTuple

_LIBRARY_PATHS = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # a cluster's Python often finds its libraries only by these
_SCRIPT = "import sys; sys.path[:] = {path!r}; from {module} import {function} as f; sys.exit(f(*sys.argv[1:]))"


@dataclass(frozen=True)
class ProcessLimits:
    """Limits of one request: address space, processor seconds of all threads, seconds in all, bytes of any file.

    `niceness`: how far it stands back behind other processes, from 0 to 19. `is_by_size`: memory and processor time are
    also limited by how much of its input the child has read (`sweepscope.schemas.limits`).
    """

    memory_bytes: int
    cpu_s: int
    wall_s: float
    file_bytes: int = 0
    niceness: int = 0
    is_by_size: bool = False


class Answer(NamedTuple):
    """What the child wrote, its exit code (negative: the signal that ended it), and whether the clock killed it."""

    raw: bytes
    exit_code: int
    was_late: bool


class Stop:
    """Ends a request from another thread, before it has begun or while it runs."""

    def __init__(self) -> None:
        self.is_asked = False
        self._lock = threading.Lock()
        self._end: Callable[[], None] | None = None

    def ask(self) -> None:
        """End the request, if it is not over."""
        with self._lock:
            self.is_asked = True
            if self._end:
                self._end()

    @contextlib.contextmanager
    def over(self, end: Callable[[], None]) -> Iterator[None]:
        """While the block runs, `end` ends the request; it is called at once where that was asked before."""
        with self._lock:
            self._end = end
            if self.is_asked:
                end()
        try:
            yield
        finally:
            with self._lock:  # the process id may be another's from now on
                self._end = None


def child_command(function: str, *arguments: str, flags: Iterable[str] = ("-I", "-S")) -> list[str]:
    """Command of a Python process that calls `module:function` with text arguments, on this process's import path.

    By default it knows neither the user's environment and site directories nor the current directory.
    """
    module, _, name = function.partition(":")
    script = _SCRIPT.format(path=[os.path.abspath(entry) for entry in sys.path], module=module, function=name)
    return [sys.executable, *flags, "-c", script, *arguments]


class Sandbox:
    """Runs one function on untrusted input, each request in a process of its own.

    Starting Python costs a tenth of a second, which a thousand files would pay a thousand times. So a server imports
    the function once and forks for each request; it waits `idle_s` for the next one. A server that was interrupted,
    or whose fork a limit of this side ended, is not used again.

    Args:
        work: `module:function`; it takes two binary files, the input and the place for the answer.
        environment: variables of the server, beside those by which its libraries are found.
        kept: names of variables that it inherits.
    """

    def __init__(
        self, work: str, *, environment: Mapping[str, str] | None = None, kept: Iterable[str] = (), idle_s: float = 0.0
    ) -> None:
        self._work, self._idle_s = work, idle_s
        self._environment, self._kept = environment or {}, (*_LIBRARY_PATHS, *kept)
        self._idle: list[_Server] = []  # append and pop are atomic, whatever the threads
        if idle_s:
            atexit.register(self.close)
            os.register_at_fork(after_in_child=self._idle.clear)  # the servers belong to the parent

    def run(
        self, chunks: Iterable[bytes], limits: ProcessLimits, *, answer_bytes: int, stop: Stop | None = None
    ) -> Answer:
        """The answer to one request. `chunks` are read to their end in any case; what they raise is raised here.

        An answer of more than `answer_bytes` is cut one byte behind that size. One that `stop` ended is as if killed.
        """
        server = self._waiting() or self._start()
        is_reusable = False
        try:
            with (stop or Stop()).over(server.kill):
                answer = server.run(chunks, limits, answer_bytes)
            is_reusable = server.is_alive() and not answer.was_late and len(answer.raw) <= answer_bytes
        finally:
            if self._idle_s and is_reusable:
                self._idle.append(server)
                _clock(self._idle_s, lambda: self._retire(server)).start()
            else:
                server.close()
        return answer

    def close(self) -> None:
        """End the servers that wait."""
        for server in list(self._idle):
            self._retire(server)

    def _start(self) -> _Server:
        kept = {name: os.environ[name] for name in self._kept if name in os.environ}
        return _Server(self._work, {**kept, **self._environment})

    def _waiting(self) -> _Server | None:
        try:
            server = self._idle.pop()
        except IndexError:
            return None
        if server.is_alive():
            return server
        server.close()
        return None

    def _retire(self, server: _Server) -> None:
        with contextlib.suppress(ValueError):  # a thread uses it just now
            self._idle.remove(server)
            server.close()


class _Server:
    """A process that forks for each request (`sandbox_child.serve`)."""

    def __init__(self, work: str, environment: dict[str, str]) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
                child_command("sweepscope.pipeline.io.sandbox_child:serve", work),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,
            )

    def is_alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        """End it and its fork."""
        self.kill()
        self._socket.close()
        self.process.wait()

    def run(self, chunks: Iterable[bytes], limits: ProcessLimits, answer_bytes: int) -> Answer:
        """See `Sandbox.run`."""
        (source, to_fork), (from_fork, answers) = os.pipe(), os.pipe()
        late = threading.Event()

        def expire() -> None:
            late.set()
            self.kill()

        clock = _clock(limits.wall_s, expire)
        with open(from_fork, "rb") as back, open(to_fork, "wb", buffering=0) as out:
            try:
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # killed already: there is no answer
                    socket.send_fds(self._socket, [json.dumps(vars(limits)).encode()], [source, answers])
            finally:
                os.close(source)
                os.close(answers)
            parts: list[bytes] = []
            # A thread, since the fork may answer before it has read everything.
            reader = threading.Thread(target=lambda: parts.append(back.read(answer_bytes + 1)), daemon=True)
            clock.start()
            reader.start()
            try:
                _send(chunks, out)
                reader.join()
                if len(parts[0]) > answer_bytes:
                    self.kill()
                return Answer(parts[0], self._exit_code(), late.is_set())
            finally:
                clock.cancel()

    def _exit_code(self) -> int:
        """Exit code of the fork; as if killed, where the server was killed with it."""
        message = b""
        with contextlib.suppress(ConnectionResetError):
            while not message.endswith(b"\n") and (part := self._socket.recv(16)):
                message += part
        return int(message) if message.endswith(b"\n") else -signal.SIGKILL

    def kill(self) -> None:
        """End the fork, and the server with it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def _send(chunks: Iterable[bytes], out: RawIOBase) -> None:
    """Write everything. A fork that has read enough closes its end; the chunks are still read on, for their hash."""
    is_open = True
    for chunk in chunks:
        left = memoryview(chunk)
        while is_open and left:
            try:
                left = left[out.write(left) or 0 :]
            except BrokenPipeError:
                is_open = False
    out.close()


def _clock(seconds: float, action: Callable[[], None]) -> threading.Timer:
    clock = threading.Timer(seconds, action)
    clock.daemon = True
    return clock
