"""Pods as `kubectl get pods` lists them, also with `-o wide` and `-A`.

Format: kubernetes pkg/printers/internalversion/printers.go printPod. The column STATUS is the reason of the pod or of
one of its containers, else the phase. With some reasons a node refuses a pod (pkg/kubelet/lifecycle/predicate.go).
`RESTARTS` may say when the last one was: `3 (4m12s ago)`. No times are shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from sweepscope.pipeline.scheduler.cells import REJECTED, conform_rows
from sweepscope.pipeline.scheduler.kubernetes import PHASES, STATES

_HEADER = re.compile(r"\s*(NAMESPACE\s+)?NAME\s+READY\s+STATUS\s+RESTARTS\s+AGE\b(.*)")
_ROW = re.compile(r"\s*(\S+)\s+(\d+/\d+)\s+(\S+)\s+(\d+)(?:\s+\([^)]*ago\))?\s+(\S+)(?:\s+(\S+)\s+(\S+))?")
_COMMAND = re.compile(r"\s*(?:[$#+>]|kubectl\b)")
_WAITING = {
    "CrashLoopBackOff": "failed",
    "RunContainerError": "failed",
    "Init:Error": "failed",
    "Unknown": "unknown",
    "Init:CrashLoopBackOff": "failed",
    "ContainerStatusUnknown": "unknown",
    "NotReady": "running",
    "UnexpectedAdmissionError": "failed",
    "NodeAffinity": "failed",
    "Init:OOMKilled": "out_of_memory",
}
"""Reasons that stand in this list only; every other word is that of a pod that waits for something."""

_FAILED = ("ExitCode:", "Signal:", "Init:ExitCode:", "Init:Signal:", "OutOf")
"""How the others begin of which a number or a resource is a part; a node refuses a pod that it is out of something."""


def is_table(lines: Sequence[str]) -> bool:
    """Whether the head of a text is such a list from its first line on."""
    own = (line for line in lines if line.strip() and not _COMMAND.match(line))
    return _HEADER.match(next(own, "")) is not None


def read(lines: Iterable[str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Rows of `scheduler_jobs` (without the file's own columns), and rejects: lines that are no row of the list."""
    rows: list[dict[str, object]] = []
    odd: list[dict[str, object]] = []
    has_namespace = False
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip("\r\n")
        if header := _HEADER.match(line):
            has_namespace = header[1] is not None
        elif line.strip() and not _COMMAND.match(line):
            found = _ROW.match(re.sub(r"^\s*\S+\s+", "", line) if has_namespace else line)
            if found:
                rows.append(_row(found, number, line.strip()))
            else:
                reason = "does not have the columns of kubectl get pods"
                odd.append({"line_no": number, "column": None, "reason": reason, "raw": line[:200]})
    yield conform_rows(rows), pl.DataFrame(odd, schema=REJECTED)


def _row(found: re.Match[str], number: int, text: str) -> dict[str, object]:
    node = found[7] if found[7] and found[7] != "<none>" else None
    return {
        "scheduler": "kubernetes",
        "job_id": found[1],
        "job_state": _state(found[3]),
        "job_reason": found[3],
        "restarts": int(found[4]),
        "hosts": node,
        "num_nodes": 1 if node else None,
        "text": text,
        "line_no": number,
    }


def _state(word: str) -> str:
    known = STATES.get(word) or PHASES.get(word) or _WAITING.get(word)
    return known or ("failed" if word.startswith(_FAILED) else "pending")
