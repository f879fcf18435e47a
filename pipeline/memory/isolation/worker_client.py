"""Hands files to a waiting process (`worker.serve`), whose fork reads each one; starts a process where none waits.

To start one costs a tenth of a second, which a sweep with a thousand snapshots would pay a thousand times. One that was
interrupted, or that a clock had to kill, is not used again.
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
from collections.abc import Iterable, Mapping
from io import RawIOBase
from typing import NamedTuple

_KEPT_ENVIRONMENT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
_SCRIPT = (
    "import sys; sys.path[:] = {path!r}; "
    "from sweepscope.pipeline.memory.isolation import worker; sys.exit(worker.{function}())"
)
_IDLE_S = 30.0


class Answer(NamedTuple):
    """What a reader wrote, how it ended (negative: by that signal), and whether the clock killed it."""

    raw: bytes
    exit_code: int
    was_late: bool


def command(function: str) -> list[str]:
    """How a worker is started: our own code on our own path, nothing of the user's environment or directory."""
    script = _SCRIPT.format(path=[os.path.abspath(entry) for entry in sys.path], function=function)
    return [sys.executable, "-I", "-S", "-c", script]


def converse(chunks: Iterable[bytes], limits: Mapping[str, float], *, answer_bytes: int) -> Answer:
    """Have the file read whose bytes `chunks` are; they are read to their end in any case.

    `limits` are the fields of WorkerLimits. An answer of more than `answer_bytes` is cut one byte behind. Raises what
    `chunks` raises.
    """
    server = _waiting() or _Server()
    try:
        answer = server.read(chunks, limits, answer_bytes)
    except BaseException:
        server.close()
        raise
    if server.process.poll() is None and not answer.was_late and len(answer.raw) <= answer_bytes:
        _idle.append(server)
        clock = threading.Timer(_IDLE_S, _retire, [server])
        clock.daemon = True
        clock.start()
    else:
        server.close()
    return answer


class _Server:
    """A process that waits for files."""

    def __init__(self) -> None:
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        # Threads of a linear algebra library that nobody uses here would take address space and forbid forks.
        environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self._socket, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
                command("serve"),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                start_new_session=True,
            )

    def close(self) -> None:
        """End it and its fork."""
        self._kill()
        self._socket.close()
        self.process.wait()

    def read(self, chunks: Iterable[bytes], limits: Mapping[str, float], answer_bytes: int) -> Answer:
        """See `converse`."""
        (given, to_fork), (from_fork, answers) = os.pipe(), os.pipe()
        late = threading.Event()

        def expire() -> None:
            late.set()
            self._kill()

        clock = threading.Timer(limits["wall_s"], expire)
        clock.daemon = True
        with open(from_fork, "rb") as back, open(to_fork, "wb", buffering=0) as out:
            try:
                socket.send_fds(self._socket, [json.dumps(dict(limits)).encode()], [given, answers])
            finally:
                os.close(given)
                os.close(answers)
            found: list[bytes] = []
            reader = threading.Thread(target=lambda: found.append(back.read(answer_bytes + 1)), daemon=True)
            clock.start()
            reader.start()
            try:
                _send(chunks, out)
                reader.join()
                if len(found[0]) > answer_bytes:
                    self._kill()
                return Answer(found[0], self._status(), late.is_set())
            finally:
                clock.cancel()

    def _status(self) -> int:
        """How the fork ended; as if killed, where nobody is left to tell."""
        told = b""
        with contextlib.suppress(ConnectionResetError):
            while not told.endswith(b"\n") and (part := self._socket.recv(16)):
                told += part
        return int(told) if told.endswith(b"\n") else -signal.SIGKILL

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def _send(chunks: Iterable[bytes], out: RawIOBase) -> None:
    """Send everything. A fork that has heard enough closes its end; the file is still read on, for its hash."""
    is_listening = True
    for chunk in chunks:
        rest = memoryview(chunk)
        while is_listening and rest:
            try:
                rest = rest[out.write(rest) or 0 :]
            except BrokenPipeError:
                is_listening = False
    out.close()


_idle: list[_Server] = []  # of this process; a list takes and gives in one step each, whatever the threads


def _waiting() -> _Server | None:
    try:
        server = _idle.pop()
    except IndexError:
        return None
    if server.process.poll() is None:
        return server
    server.close()
    return None


def _retire(server: _Server) -> None:
    with contextlib.suppress(ValueError):  # somebody uses it just now
        _idle.remove(server)
        server.close()


def retire_all() -> None:
    """End the processes that wait."""
    for server in _idle:
        _retire(server)


atexit.register(retire_all)
os.register_at_fork(after_in_child=_idle.clear)  # they belong to the parent
