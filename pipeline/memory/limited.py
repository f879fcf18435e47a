"""Reads a snapshot in a process of its own, so that no file can take this one down.

The worker has ceilings for memory and CPU time, a clock that kills it, an empty environment and an answer of bounded
size. What it refuses, and what kills it, is said in one sentence.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, Any, cast

from pipeline.errors import UsageError
from pipeline.memory.values import RefusedError

_KEPT_ENVIRONMENT = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")
_ANSWER_BYTES = 256 << 20
_SCRIPT = "import sys; sys.path[:] = {path!r}; from pipeline.memory.worker import main; sys.exit(main())"
MEMORY_VARIABLE = "SWEEPSCOPE_SNAPSHOT_MEMORY_GIB"
SECONDS_VARIABLE = "SWEEPSCOPE_SNAPSHOT_SECONDS"


@dataclass(frozen=True)
class WorkerLimits:
    """What one snapshot may use: address space, CPU and wall seconds, bytes of a temporary copy."""

    memory_bytes: int = 4 << 30
    cpu_s: int = 300
    wall_s: float = 600.0
    file_bytes: int = 16 << 30

    @classmethod
    def from_environment(cls) -> WorkerLimits:
        """The defaults, or what the two variables say. Raises UsageError for what is not a number above 0."""
        memory_gib, seconds = (_number(name) for name in (MEMORY_VARIABLE, SECONDS_VARIABLE))
        limits = cls()
        return cls(
            memory_bytes=int(memory_gib * 2**30) if memory_gib else limits.memory_bytes,
            cpu_s=int(seconds) + 1 if seconds else limits.cpu_s,
            wall_s=2 * seconds if seconds else limits.wall_s,
        )


def analyse_limited(chunks: Iterable[bytes], limits: WorkerLimits | None = None) -> dict[str, Any]:
    """What `analyse.analyse` returns for the file whose bytes `chunks` are; they are read to their end in any case.

    Raises:
        RefusedError: the worker refuses the file, or it reached a limit.
        InputError: `chunks` cannot be read.
    """
    limits = limits or WorkerLimits.from_environment()
    raw, exit_code, was_late = _converse(chunks, limits)
    try:
        answer = json.loads(raw) if raw else None
    except ValueError:
        answer = None  # it died while it answered
    if exit_code == 0 and isinstance(answer, dict) and "rows" in answer:
        return cast(dict[str, Any], answer["rows"])
    if isinstance(answer, dict) and "refused" in answer:
        raise RefusedError(str(answer["refused"]))
    raise RefusedError(_death_in_words(exit_code, limits, was_late=was_late, size=len(raw)))


def worker_command(limits: WorkerLimits) -> list[str]:
    """How the worker is started: our own code on our own path, nothing of the user's environment or directory."""
    script = _SCRIPT.format(path=[os.path.abspath(entry) for entry in sys.path])
    return [sys.executable, "-I", "-S", "-c", script, json.dumps(vars(limits))]


def _converse(chunks: Iterable[bytes], limits: WorkerLimits) -> tuple[bytes, int, bool]:
    """What the worker wrote, its exit code, and whether the clock killed it. Always leaves it dead."""
    environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    # Threads of a linear algebra library that nobody uses here would take address space.
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    with subprocess.Popen(  # noqa: S603 - our own interpreter and our own code
        worker_command(limits),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd="/",
        start_new_session=True,
    ) as process:  # fmt: skip
        requests, answers = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
        late = threading.Event()

        def kill() -> None:
            late.set()
            process.kill()

        clock = threading.Timer(limits.wall_s, kill)
        clock.daemon = True
        answer: list[bytes] = []
        reader = threading.Thread(target=lambda: answer.append(answers.read(_ANSWER_BYTES + 1)), daemon=True)
        clock.start()
        reader.start()
        try:
            _send(chunks, requests)
            reader.join()
            if len(answer[0]) > _ANSWER_BYTES:
                process.kill()
            return answer[0], process.wait(), late.is_set()
        finally:
            clock.cancel()
            process.kill()


def _send(chunks: Iterable[bytes], requests: IO[bytes]) -> None:
    """Send everything. A worker that has heard enough closes its end; the file is still read on, for its hash."""
    is_listening = True
    try:
        for chunk in chunks:
            if is_listening:
                try:
                    requests.write(chunk)
                    requests.flush()
                except (BrokenPipeError, ConnectionResetError):
                    is_listening = False
    finally:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            requests.close()


def _death_in_words(exit_code: int, limits: WorkerLimits, *, was_late: bool, size: int) -> str:
    if was_late:
        return f"reading it takes more than {limits.wall_s:g} s; raise {SECONDS_VARIABLE}"
    if exit_code == -signal.SIGXCPU:
        return f"reading it takes more than {limits.cpu_s} s of CPU time; raise {SECONDS_VARIABLE}"
    if size > _ANSWER_BYTES:
        return "what it says is too much to be kept"
    if exit_code in (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT, 1, -signal.SIGBUS):
        gib = limits.memory_bytes / 2**30
        return f"its reader died ({_name(exit_code)}), most likely of its limit of {gib:g} GiB; raise {MEMORY_VARIABLE}"
    return f"its reader died ({_name(exit_code)})"


def _name(exit_code: int) -> str:
    try:
        return signal.Signals(-exit_code).name if exit_code < 0 else f"exit code {exit_code}"
    except ValueError:
        return f"exit code {exit_code}"


def _number(variable: str) -> float | None:
    text = os.environ.get(variable)
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise UsageError(f"{variable}={text} is not a number above 0. Set it to GiB or seconds, or unset it.")
    return value
