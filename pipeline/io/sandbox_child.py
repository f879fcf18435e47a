"""Child side of `sandbox`: limits that a process sets on itself, and the function that runs within them.

Imports the standard library only, so that a child starts fast and holds nothing worth reading.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from sweepscope.schemas.limits import memory_bytes_of, seconds_of

_REQUEST_BYTES = 4_096

Work = Callable[[IO[bytes], IO[bytes]], None]


def serve(work: str) -> int:
    """Run `work` in a fork for each request on the socket that stdin is, until the socket closes.

    A request is a `ProcessLimits` as JSON with two file descriptors: the input and the place for the answer. The reply,
    sent when the fork has ended, is its exit code; a negative one is the signal that ended it.
    """
    function = _function(work)  # imported once for all forks
    requests = socket.socket(fileno=os.dup(0))
    while True:
        message, files, _, _ = socket.recv_fds(requests, _REQUEST_BYTES, 2)
        if not message:
            return 0
        if not (child := os.fork()):
            requests.close()
            os.close(0)
            os._exit(_run(function, json.loads(message), *files))
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        requests.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def run_once(work: str, limits: str) -> int:
    """Run `work` on stdin and stdout within limits given as JSON, without a server: for measurements."""
    return _run(_function(work), json.loads(limits), 0, 1)


def _function(name: str) -> Work:
    module, _, function = name.partition(":")
    found: Work = getattr(import_module(module), function)
    return found


def _run(work: Work, limits: dict[str, Any], source: int, answers: int) -> int:
    try:
        _lower_limits(limits)
        with open(source, "rb") as given, open(answers, "wb") as out:
            work(_Metered(given) if limits["is_by_size"] else given, out)  # type: ignore[arg-type]  # it is only read
    except BaseException:  # a fork must never go on as the server that it is a copy of
        return 1
    return 0


class _Metered:
    """An input with which the limits of this process grow, with each byte that is read, up to those that it has."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._size, self._begin_bytes = file, 0, _mapped_bytes()
        self._given = {kind: resource.getrlimit(kind) for kind in (resource.RLIMIT_AS, resource.RLIMIT_CPU)}
        self._set_limits()

    def read(self, count: int = -1) -> bytes:
        """The next bytes, as of the file."""
        data = self._file.read(count)
        self._size += len(data)
        self._set_limits()
        return data

    def _set_limits(self) -> None:
        wanted = {
            resource.RLIMIT_AS: self._begin_bytes + memory_bytes_of(self._size),
            resource.RLIMIT_CPU: math.ceil(seconds_of(self._size)),
        }
        for kind, (soft, hard) in self._given.items():
            most = wanted[kind] if soft == resource.RLIM_INFINITY else min(wanted[kind], soft)
            with contextlib.suppress(ValueError, OSError):  # macOS refuses RLIMIT_AS
                resource.setrlimit(kind, (most, hard))


def _mapped_bytes() -> int:
    """Bytes of address space that this process has already; what libraries map is no file's fault."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def _lower_limits(limits: dict[str, Any]) -> None:
    """Set limits that this process cannot raise again."""
    wanted = {
        # Address space, not resident memory: libraries allocate outside any budget of their own.
        resource.RLIMIT_AS: limits["memory_bytes"],
        resource.RLIMIT_CPU: limits["cpu_s"],
        resource.RLIMIT_FSIZE: limits["file_bytes"],  # pipes are no files: an answer gets out at 0
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 64,
    }
    for kind, value in wanted.items():
        _, hard = resource.getrlimit(kind)
        ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            # SIGKILL comes at the hard CPU limit and gives no reason; SIGXCPU comes at the soft one.
            spare = int(kind == resource.RLIMIT_CPU and (hard == resource.RLIM_INFINITY or ceiling < hard))
            resource.setrlimit(kind, (ceiling, ceiling + spare))
        except (ValueError, OSError):
            if sys.platform == "linux":  # macOS refuses RLIMIT_AS; the clock of the parent still holds there
                raise
    os.nice(limits["niceness"])
    # Ends this process inside native code too, and when the parent is gone.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limits["wall_s"] + 1)
