"""Allocator snapshots analysed in a sandbox, so that no file can take this process down.

A refusal, and a death by a limit, is one sentence. The child opens no file of the user's: whatever a hostile snapshot
found in it could only appear in the answer.
"""

from __future__ import annotations

import gc
import json
import math
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, cast

import numpy.ma  # noqa: F401 - np.unique imports it at its first call, which would be in every fork

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.io.safe_pickle import PickleRefusedError
from sweepscope.pipeline.io.sandbox import Answer, ProcessLimits, Sandbox
from sweepscope.pipeline.memory.analysis.analyse import analyse
from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError
from sweepscope.pipeline.memory.snapshot.containers import snapshot_chunks
from sweepscope.schemas.limits import memory_bytes_of, seconds_of

WORK = "sweepscope.pipeline.memory.isolation:analyse_one"
MEMORY_VARIABLE = "SWEEPSCOPE_SNAPSHOT_MEMORY_GIB"
SECONDS_VARIABLE = "SWEEPSCOPE_SNAPSHOT_SECONDS"

# Threads of a linear algebra library, which no snapshot needs, would take 0.05 s to start and address space.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SANDBOX = Sandbox(WORK, environment=ENVIRONMENT, kept=["TMPDIR"], idle_s=30.0)

_ANSWER_BYTES = 256 << 20
_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class SnapshotLimits(ProcessLimits):
    """Limits of one snapshot, also by its size; `file_bytes` is for the temporary copy of a zip archive."""

    memory_bytes: int = 4 << 30
    cpu_s: int = 300
    wall_s: float = 600.0
    file_bytes: int = 16 << 30
    is_by_size: bool = True

    @classmethod
    def from_environment(cls) -> SnapshotLimits:
        """The defaults, or the values of the two variables. Raises UsageError for what is not a number above 0."""
        memory_gib, seconds = (_number(name) for name in (MEMORY_VARIABLE, SECONDS_VARIABLE))
        limits = cls()
        return cls(
            memory_bytes=int(memory_gib * 2**30) if memory_gib else limits.memory_bytes,
            cpu_s=int(seconds) + 1 if seconds else limits.cpu_s,
            wall_s=2 * seconds if seconds else limits.wall_s,
            is_by_size=not (memory_gib or seconds),
        )

    def memory_of(self, size: int) -> int:
        """Bytes of memory that a file of this size may take."""
        return min(self.memory_bytes, memory_bytes_of(size)) if self.is_by_size else self.memory_bytes

    def cpu_of(self, size: int) -> int:
        """Seconds of processor time that it may take."""
        return min(self.cpu_s, math.ceil(seconds_of(size))) if self.is_by_size else self.cpu_s


def analyse_limited(chunks: Iterable[bytes], limits: SnapshotLimits | None = None) -> dict[str, Any]:
    """What `analyse.analyse` returns for the file whose bytes `chunks` are; they are read to their end in any case.

    Raises:
        RefusedError: the child refuses the file, or reached a limit.
        InputError: `chunks` cannot be read.
    """
    limits = limits or SnapshotLimits.from_environment()
    counted = _Counted(chunks)
    answer = SANDBOX.run(counted, limits, answer_bytes=_ANSWER_BYTES)
    try:
        reply = json.loads(answer.raw) if answer.raw else None
    except ValueError:
        reply = None  # it died while it answered
    reply = reply if isinstance(reply, dict) else {}
    if answer.exit_code == 0 and "rows" in reply:
        return cast(dict[str, Any], reply["rows"])
    if "refused" in reply:
        raise RefusedError(str(reply["refused"]))
    if "out_of_memory" in reply:
        gib = limits.memory_of(counted.size) / 2**30
        raise RefusedError(f"reading it takes more than {gib:.1f} GiB of memory; {MEMORY_VARIABLE} raises the limit")
    raise RefusedError(_reason_of_death(answer, limits, counted.size))


class _Counted:
    """Chunks, and the `size` of those that have been taken."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks, self.size = chunks, 0

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self.size += len(chunk)
            yield chunk


def analyse_one(source: IO[bytes], out: IO[bytes]) -> None:
    """Child side: write `{"rows": ...}`, `{"refused": reason}` or `{"out_of_memory": true}` for a snapshot, as JSON."""
    gc.disable()  # millions of values and no cycles: the collector would only walk them again and again
    reply: dict[str, Any]
    try:
        reply = {"rows": analyse(snapshot_chunks(iter(lambda: source.read(_READ_BYTES), b"")))}
    except PickleRefusedError as error:
        reply = {"refused": str(error)}
    except RecursionError:
        reply = {"refused": "its values nest too deep"}
    except MemoryError:
        reply = {"out_of_memory": True}
    out.write(json.dumps(reply).encode())


def _reason_of_death(answer: Answer, limits: SnapshotLimits, size: int) -> str:
    exit_code, name = answer.exit_code, _name(answer.exit_code)
    if answer.was_late:
        return f"reading it takes more than {limits.wall_s:g} s; raise {SECONDS_VARIABLE}"
    if exit_code == -signal.SIGXCPU:
        return f"reading it takes more than {limits.cpu_of(size)} s of CPU time; raise {SECONDS_VARIABLE}"
    if len(answer.raw) > _ANSWER_BYTES:
        return f"its rows take more than {_ANSWER_BYTES >> 20} MiB"
    if exit_code in (-signal.SIGKILL, -signal.SIGSEGV, -signal.SIGABRT, 1, -signal.SIGBUS):
        gib = limits.memory_of(size) / 2**30
        return f"its reader died ({name}), most likely of its limit of {gib:.3g} GiB; raise {MEMORY_VARIABLE}"
    return f"its reader died ({name})"


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
