"""The process that reads one snapshot: bytes on stdin, one line of JSON on stdout, hard limits, nothing else.

Started by `pipeline.memory.limited` as `python -I -m pipeline.memory.worker LIMITS`. It opens no file of the user's, so
that whatever a hostile snapshot might find in it could only be said on stdout.
"""

from __future__ import annotations

import gc
import json
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Any

_READ_BYTES = 1 << 20


def lower_own_limits(limits: dict[str, Any]) -> None:
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


def stdin_chunks() -> Iterator[bytes]:
    """What the parent sends."""
    while chunk := sys.stdin.buffer.read(_READ_BYTES):
        yield chunk


def main() -> int:
    """Answer with `{"rows": ...}` or `{"refused": reason}`."""
    limits = json.loads(sys.argv[1])
    lower_own_limits(limits)
    gc.disable()  # millions of values and no cycles: the collector would only walk them again and again
    answer: dict[str, Any]
    try:
        from pipeline.memory.analyse import analyse
        from pipeline.memory.containers import pickle_chunks
        from pipeline.safe_pickle import PickleRefusedError

        try:
            answer = {"rows": analyse(pickle_chunks(stdin_chunks()))}
        except PickleRefusedError as error:
            answer = {"refused": str(error)}
        except RecursionError:
            answer = {"refused": "its values nest too deep"}
    except MemoryError:
        answer = {"refused": f"reading it takes more than {limits['memory_bytes'] / 2**30:.1f} GiB of memory"}
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
