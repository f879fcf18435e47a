"""What the last lines of a run's log say, so that the files beside it tell of the same end."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sweepscope.pipeline.simulate.failures import tail
from sweepscope.pipeline.simulate.renderers.protocol import cosmetics
from sweepscope.pipeline.simulate.renderers.registry import RENDERERS
from sweepscope.pipeline.simulate.truth import SimulatedRun

_WORK = re.compile(r"\[Rank (\d+)\] Watchdog caught .*SeqNum=(\d+), OpType=\w+, (?:NumelIn=(\d+))?")
_ASKED = re.compile(r"Tried to allocate ([\d.]+) GiB")


@dataclass(frozen=True)
class Hang:
    """The collective that timed out: its number, elements of the input, and the ranks that say so."""

    seq: int
    numel: int
    ranks: tuple[int, ...]


def hang_of(run: SimulatedRun) -> Hang | None:
    """The collective in the watchdog's lines; None where they state no sizes."""
    found = [match for line in _words(run) if (match := _WORK.search(line))]
    if not found or found[0][3] is None:
        return None
    return Hang(int(found[0][2]), int(found[0][3]), tuple(int(match[1]) for match in found))


def asked_bytes(run: SimulatedRun) -> int | None:
    """Bytes of the request that failed first."""
    found = next((match for line in _words(run) if (match := _ASKED.search(line))), None)
    return round(float(found[1]) * 2**30) if found else None


def _words(run: SimulatedRun) -> list[str]:
    return [line.text for line in tail(run, RENDERERS[run.framework].script, cosmetics(run, "tail"))]
