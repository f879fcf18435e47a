"""Reads a snapshot in a process of its own, so that no file can take this one down.

The worker has ceilings for memory and CPU time, a clock that kills it, an empty environment and an answer of bounded
size. What it refuses, and what kills it, is said in one sentence.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.memory.isolation.worker_client import converse
from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError

_ANSWER_BYTES = 256 << 20
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
    raw, exit_code, was_late = converse(chunks, vars(limits), answer_bytes=_ANSWER_BYTES)
    try:
        answer = json.loads(raw) if raw else None
    except ValueError:
        answer = None  # it died while it answered
    if exit_code == 0 and isinstance(answer, dict) and "rows" in answer:
        return cast(dict[str, Any], answer["rows"])
    if isinstance(answer, dict) and "refused" in answer:
        raise RefusedError(str(answer["refused"]))
    raise RefusedError(_death_in_words(exit_code, limits, was_late=was_late, size=len(raw)))


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
