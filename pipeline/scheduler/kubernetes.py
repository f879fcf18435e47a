"""Pods of Kubernetes, as `kubectl describe pod` and `kubectl get pods` print them. A pod is a job.

Descriptions (kubectl pkg/describe/describe.go describePod, describeContainerState; of a Job, `describe job`, the number
of its pods by state): the state of a pod is that of its first container, unless the pod as a whole has a reason
(Evicted). The state of the container before its last restart becomes a step.

Lists (kubernetes pkg/printers/internalversion/printers.go printPod; also with `-o wide` and `-A`): the column STATUS is
the reason of the pod or of one of its containers, else the phase. With some reasons a node refuses a pod
(pkg/kubelet/lifecycle/predicate.go). RESTARTS may hold the time of the last one: `3 (4m12s ago)`. There are no times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime

import polars as pl

from sweepscope.pipeline.scheduler.cells import REJECTED, conform_rows, rejected_line, without_commands

_COMMAND = re.compile(r"\s*(?:[$#+>]|kubectl\b)")
_FIELD = re.compile(r"( *)((?:[a-z.]+/)?[A-Za-z][\w -]*):(?: +(\S.*?))? *$")
_STATES = (
    {"Completed": "completed", "OOMKilled": "out_of_memory", "Error": "failed", "ContainerCannotRun": "failed"}
    | {"StartError": "failed", "DeadlineExceeded": "timeout", "Evicted": "evicted", "Preempting": "preempted"}
    | {"NodeLost": "node_fail", "NodeShutdown": "node_fail", "Terminated": "node_fail", "Shutdown": "node_fail"}
)
"""Reason of a pod or of a terminated container -> word of JOB_STATE."""

_PHASES = {
    "Running": "running",
    "Pending": "pending",
    "Succeeded": "completed",
    "Failed": "failed",
    "Waiting": "pending",
    "Terminating": "running",
}
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
_Fields = dict[str, str]


def is_description(lines: Sequence[str]) -> bool:
    """Whether the head of a text is a description from its first line on."""
    printed = without_commands(lines, _COMMAND)
    return re.match(r"Name:\s+\S", next(printed, "")) is not None and "Namespace:" in next(printed, "")


def read_descriptions(lines: Iterable[str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Rows of `scheduler_jobs` (without the file's own columns); there are no rejects."""
    pods: list[_Pod] = []
    for number, line in enumerate(lines, 1):
        match = _FIELD.match(line.rstrip("\r\n"))
        if not match:
            continue
        depth, name, value = len(match[1]), match[2], match[3] or ""
        if depth == 0 and name == "Name":
            pods.append(_Pod(number, value))
        elif pods:
            pods[-1].add(number, depth, name, value, line.strip())
    yield conform_rows([row for pod in pods for row in pod.rows()]), pl.DataFrame(schema=REJECTED)


class _Pod:
    """Fields of one pod, and those of the present and last state of its first container."""

    def __init__(self, line_no: int, name: str) -> None:
        self.line_no, self.name = line_no, name
        self.fields: _Fields = {}
        self.states: dict[str, tuple[int, str, _Fields]] = {}
        self.gpus = 0
        self._section = self._state = ""
        self._containers = 0

    def add(self, number: int, depth: int, name: str, value: str, text: str) -> None:
        """Store one field. Containers have depth 2, their states 4, the fields of these 6."""
        if depth == 0:
            self._section, self._state = name, ""
            self.fields.setdefault(name, value)
        elif self._section == "Containers":
            if depth == 2:
                self._containers += 1
            elif depth == 4:
                self._state = name
                if name in ("State", "Last State") and self._containers == 1:
                    self.states[name] = (number, text, {"State": value})
                elif name == "Restart Count" and self._containers == 1:
                    self.fields[name] = value
            elif self._state in self.states and self._containers == 1:
                self.states[self._state][2][name] = value
            elif self._state == "Limits" and name in _GPUS and _whole(value):
                self.gpus += _whole(value) or 0

    def rows(self) -> list[dict[str, object]]:
        """Rows of `scheduler_jobs`: the pod, and its container's state before the last restart."""
        host = self.fields.get("Node", "").split("/")[0]
        restarts = self.fields.get("Restart Count", "")
        shared: dict[str, object] = {
            "scheduler": "kubernetes",
            "job_id": self.name,
            "num_nodes": 1 if host and host != "<none>" else None,
            "num_gpus": self.gpus or None,
            "hosts": host if host and host != "<none>" else None,
            "restarts": _whole(restarts),
        }
        number, text, now = self.states.get("State", (self.line_no, "", {}))
        reason = _STATES.get(self.fields.get("Reason", ""))
        message = self.fields.get("Message")
        if reason == "evicted" and "low on resource: memory" in (message or ""):
            reason = "out_of_memory"
        whole = {
            **_outcome(now, self.fields.get("Status") or _phase(self.fields.get("Pods Statuses", ""))),
            **({"job_state": reason} if reason else {}),
            "job_reason": message or self.fields.get("Reason") or now.get("Reason"),
        }
        whole["started_at"] = whole["started_at"] or _moment(self.fields.get("Start Time", ""))
        texts = ", ".join(
            part for part in (self.name, self.fields.get("Reason", ""), text, now.get("Reason", "")) if part
        )
        found = [{**shared, **whole, "text": texts, "line_no": self.line_no}]
        if self.states.get("Last State", (0, "", {}))[2].get("Reason"):
            number, text, before = self.states["Last State"]
            step = {**_outcome(before, ""), "job_step": "before restart", "job_reason": before["Reason"]}
            found.append({**shared, **step, "text": f"{text}, {before['Reason']}", "line_no": number})
        return found


def _outcome(state: _Fields, phase: str) -> dict[str, object]:
    code = state.get("Exit Code", "")
    exit_code = _whole(code)
    known = _STATES.get(state.get("Reason", "")) if state.get("State") == "Terminated" else None
    if known is None and exit_code is not None:
        known = "failed" if exit_code else "completed"
    return {
        "job_state": known or _PHASES.get(state.get("State", "")) or _PHASES.get(phase),
        "exit_code": exit_code,
        "exit_signal": None if exit_code is None else exit_code - 128 if 128 < exit_code <= 192 else 0,
        "started_at": _moment(state.get("Started", "")),
        "ended_at": _moment(state.get("Finished", "")),
    }


def _phase(pods: str) -> str:
    """Phase of a Job, whose description counts its pods: `0 Active (0 Ready) / 0 Succeeded / 4 Failed`."""
    counts = {word: int(number) for number, word in re.findall(r"(\d{1,9}) (Active|Running|Succeeded|Failed)", pods)}
    if counts.get("Active") or counts.get("Running"):
        return "Running"
    return next((word for word in ("Failed", "Succeeded") if counts.get(word)), "")


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(r"\d{1,9}", text) else None


def _moment(text: str) -> datetime | None:
    """`Fri, 16 Feb 2024 15:22:17 +0000`, as printed."""
    try:
        found = parsedate_to_datetime(text).replace(tzinfo=None)
    except (ValueError, TypeError):
        return None
    return found if found.year > 1970 else None  # the epoch means that the container never started


_HEADER = re.compile(r"\s*(NAMESPACE\s+)?NAME\s+READY\s+STATUS\s+RESTARTS\s+AGE\b(.*)")
_ROW = re.compile(r"\s*(\S+)\s+(\d+/\d+)\s+(\S+)\s+(\d+)(?:\s+\([^)]*ago\))?\s+(\S+)(?:\s+(\S+)\s+(\S+))?")
_WAITING = (
    {"CrashLoopBackOff": "failed", "RunContainerError": "failed", "Init:Error": "failed", "Unknown": "unknown"}
    | {"Init:CrashLoopBackOff": "failed", "ContainerStatusUnknown": "unknown", "NotReady": "running"}
    | {"UnexpectedAdmissionError": "failed", "NodeAffinity": "failed", "Init:OOMKilled": "out_of_memory"}
)
"""Reasons of lists only. Any other reason is that of a pod that waits."""

_FAILED = ("ExitCode:", "Signal:", "Init:ExitCode:", "Init:Signal:", "OutOf")
"""Beginning of reasons that hold a number or a resource (OutOfcpu: the node refuses the pod)."""


def is_pod_list(lines: Sequence[str]) -> bool:
    """Whether the head of a text is a list of pods from its first line on."""
    return _HEADER.match(next(without_commands(lines, _COMMAND), "")) is not None


def read_pod_list(lines: Iterable[str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
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
                rows.append(_listed(found, number, line.strip()))
            else:
                odd.append(rejected_line(number, line, "does not have the columns of kubectl get pods"))
    yield conform_rows(rows), pl.DataFrame(odd, schema=REJECTED)


def _listed(found: re.Match[str], number: int, text: str) -> dict[str, object]:
    node = found[7] if found[7] and found[7] != "<none>" else None
    return {
        "scheduler": "kubernetes",
        "job_id": found[1],
        "job_state": _listed_state(found[3]),
        "job_reason": found[3],
        "restarts": int(found[4]),
        "hosts": node,
        "num_nodes": 1 if node else None,
        "text": text,
        "line_no": number,
    }


def _listed_state(word: str) -> str:
    known = _STATES.get(word) or _PHASES.get(word) or _WAITING.get(word)
    return known or ("failed" if word.startswith(_FAILED) else "pending")
