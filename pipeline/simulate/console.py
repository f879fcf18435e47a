"""Lines of output with the process that printed them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Origin = Literal["worker", "agent", "scheduler"]


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of output.

    `rank` is the worker's; lines of torchrun's agent and of the scheduler have none. `ends` is false where the file
    stops before the line feed. Undecodable bytes are surrogates (PEP 383).
    """

    text: str
    rank: int = 0
    origin: Origin = "worker"
    ends: bool = True


def worker(texts: Iterable[str], rank: int = 0) -> list[LogLine]:
    """Lines of one rank."""
    return [LogLine(text, rank) for text in texts]


def agent(texts: Iterable[str]) -> list[LogLine]:
    """Lines of the launcher (torchrun)."""
    return [LogLine(text, 0, "agent") for text in texts]


def scheduler(texts: Iterable[str]) -> list[LogLine]:
    """Lines of slurmstepd and srun, which are outside of every prefix."""
    return [LogLine(text, 0, "scheduler") for text in texts]
