"""The processes that read snapshots: one that has everything imported and waits, and a copy of it for each file.

`serve` takes requests from a socket: the limits as JSON with two file descriptors, the bytes of a file and a place for
the answer. Every file is read by a fork of its own with hard limits and nothing else: it opens no file of the user's,
so that whatever a hostile snapshot might find in it could only be said in the answer, and what becomes of it cannot
touch the next file. `main` reads one file on stdin, for whoever wants to measure.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator
from typing import Any

# No linear algebra here: numpy's threads for it would cost a fresh process 0.05 s and address space of its limit.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

_READ_BYTES = 1 << 20
_REQUEST_BYTES = 4_096


def serve() -> int:
    """Answer requests on the socket that stdin is, each with the exit status of the fork, until it closes.

    The status comes when the fork has ended: a negative one is the signal that ended it.
    """
    # What every fork needs, once. The first is what np.unique imports when it is first called.
    import numpy.ma  # noqa: F401

    gc.disable()  # millions of values and no cycles: the collector would only walk them again and again
    requests = socket.socket(fileno=os.dup(0))
    while True:
        message, files, _, _ = socket.recv_fds(requests, _REQUEST_BYTES, 2)
        if not message:
            return 0
        if not (child := os.fork()):
            requests.close()
            os.close(0)
            os._exit(_read_one(json.loads(message), *files))
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        requests.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def main() -> int:
    """Read the file on stdin within the limits of the first argument."""
    gc.disable()
    return _read_one(json.loads(sys.argv[1]), 0, 1)


def _read_one(limits: dict[str, Any], given: int, answers: int) -> int:
    try:
        _lower_own_limits(limits)
        answer = json.dumps(_answer(limits, given)).encode()
        with open(answers, "wb") as out:
            out.write(answer)
    except BaseException:  # the fork must not go on as the process that it is a copy of
        return 1
    return 0


def _answer(limits: dict[str, Any], given: int) -> dict[str, Any]:
    """`{"rows": ...}` or `{"refused": reason}`."""
    from sweepscope.pipeline.io.safe_pickle import PickleRefusedError
    from sweepscope.pipeline.memory.analysis.analyse import analyse
    from sweepscope.pipeline.memory.snapshot.containers import snapshot_chunks

    try:
        return {"rows": analyse(snapshot_chunks(_chunks(given)))}
    except PickleRefusedError as error:
        return {"refused": str(error)}
    except RecursionError:
        return {"refused": "its values nest too deep"}
    except MemoryError:
        return {"refused": f"reading it takes more than {limits['memory_bytes'] / 2**30:.1f} GiB of memory"}


def _chunks(given: int) -> Iterator[bytes]:
    with open(given, "rb") as file:
        while chunk := file.read(_READ_BYTES):
            yield chunk


def _lower_own_limits(limits: dict[str, Any]) -> None:
    """Ceilings that this process cannot raise again."""
    wanted = {
        resource.RLIMIT_AS: limits["memory_bytes"],
        resource.RLIMIT_CPU: limits["cpu_s"],
        resource.RLIMIT_FSIZE: limits["file_bytes"],  # the copy of a zip
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 64,
    }
    for kind, value in wanted.items():
        _, hard = resource.getrlimit(kind)
        ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
        try:
            # At the hard CPU limit comes SIGKILL, which does not say why; SIGXCPU comes before.
            spare = int(kind == resource.RLIMIT_CPU and (hard == resource.RLIM_INFINITY or ceiling < hard))
            resource.setrlimit(kind, (ceiling, ceiling + spare))
        except (ValueError, OSError):
            if sys.platform == "linux":  # macOS refuses RLIMIT_AS; the clock of the parent still holds there
                raise
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, limits["wall_s"] + 1)  # also when the parent is gone
