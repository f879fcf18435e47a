"""Child side of `sandbox`: limits that a process sets on itself, and the function that runs within them.

Imports the standard library only, so that a child starts fast and holds nothing worth reading.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from importlib import import_module
from typing import IO, Any

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
            work(given, out)
    except BaseException:  # a fork must never go on as the server that it is a copy of
        return 1
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
