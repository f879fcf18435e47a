"""Pods as `kubectl describe pod` prints them, one block per pod; of a Job (`describe job`) what its pods became.

Format: kubectl pkg/describe/describe.go describePod, describeContainerState. A pod is a job: its state is that of its
first container, unless the pod as a whole has a reason of its own (Evicted). What the container was before its last
restart is a step of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from email.utils import parsedate_to_datetime

import polars as pl

from sweepscope.pipeline.scheduler.cells import REJECTED
from sweepscope.schemas.tables.scheduler import SCHEDULER_JOBS

_FIELD = re.compile(r"( *)((?:[a-z.]+/)?[A-Za-z][\w -]*):(?: +(\S.*?))? *$")
STATES = {
    "Completed": "completed",
    "OOMKilled": "out_of_memory",
    "Error": "failed",
    "ContainerCannotRun": "failed",
    "StartError": "failed",
    "DeadlineExceeded": "timeout",
    "Evicted": "evicted",
    "Preempting": "preempted",
    "NodeLost": "node_fail",
    "NodeShutdown": "node_fail",
    "Terminated": "node_fail",
    "Shutdown": "node_fail",
}
"""Reason of a pod or of a terminated container -> word of JOB_STATE."""

PHASES = {
    "Running": "running",
    "Pending": "pending",
    "Succeeded": "completed",
    "Failed": "failed",
    "Waiting": "pending",
    "Terminating": "running",
}
_GPUS = ("nvidia.com/gpu", "amd.com/gpu")
_Fields = dict[str, str]


def is_table(lines: Sequence[str]) -> bool:
    """Whether the head of a text is such a description from its first line on."""
    own = (line for line in lines if line.strip() and not re.match(r"\s*[$#+>]", line))
    return re.match(r"Name:\s+\S", next(own, "")) is not None and "Namespace:" in next(own, "")


def read(lines: Iterable[str]) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
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
    rows = [row for pod in pods for row in pod.rows()]
    frame = pl.DataFrame(rows, schema=_SCHEMA) if rows else pl.DataFrame(schema=_SCHEMA)
    yield SCHEDULER_JOBS.conform(frame), pl.DataFrame(schema=REJECTED)


_WRITTEN = (
    "job_id",
    "job_step",
    "job_state",
    "job_reason",
    "exit_code",
    "exit_signal",
    "started_at",
    "ended_at",
    "restarts",
    "num_nodes",
    "num_gpus",
    "hosts",
    "text",
    "line_no",
    "scheduler",
)
_SCHEMA = pl.Schema({name: SCHEDULER_JOBS.polars_schema[name] for name in _WRITTEN})


class _Pod:
    """What is read of one pod: its own fields, and those of the present and last state of its first container."""

    def __init__(self, line_no: int, name: str) -> None:
        self.line_no, self.name = line_no, name
        self.fields: _Fields = {}
        self.states: dict[str, tuple[int, str, _Fields]] = {}
        self.gpus = 0
        self._section = self._state = ""
        self._containers = 0

    def add(self, number: int, depth: int, name: str, value: str, text: str) -> None:
        """One field. Containers stand at depth 2, their states at 4, what these consist of at 6."""
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
        """The pod, and its container's state before the last restart."""
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
        own = STATES.get(self.fields.get("Reason", ""))
        message = self.fields.get("Message")
        if own == "evicted" and "low on resource: memory" in (message or ""):
            own = "out_of_memory"
        whole = {
            **_outcome(now, self.fields.get("Status") or _phase(self.fields.get("Pods Statuses", ""))),
            **({"job_state": own} if own else {}),
            "job_reason": message or self.fields.get("Reason") or now.get("Reason"),
        }
        whole["started_at"] = whole["started_at"] or _moment(self.fields.get("Start Time", ""))
        said = ", ".join(
            part for part in (self.name, self.fields.get("Reason", ""), text, now.get("Reason", "")) if part
        )
        found = [{**shared, **whole, "text": said, "line_no": self.line_no}]
        if self.states.get("Last State", (0, "", {}))[2].get("Reason"):
            number, text, before = self.states["Last State"]
            step = {**_outcome(before, ""), "job_step": "before restart", "job_reason": before["Reason"]}
            found.append({**shared, **step, "text": f"{text}, {before['Reason']}", "line_no": number})
        return [{name: row.get(name) for name in _WRITTEN} for row in found]


def _outcome(state: _Fields, phase: str) -> dict[str, object]:
    code = state.get("Exit Code", "")
    exit_code = _whole(code)
    known = STATES.get(state.get("Reason", "")) if state.get("State") == "Terminated" else None
    if known is None and exit_code is not None:
        known = "failed" if exit_code else "completed"
    return {
        "job_state": known or PHASES.get(state.get("State", "")) or PHASES.get(phase),
        "exit_code": exit_code,
        "exit_signal": None if exit_code is None else exit_code - 128 if 128 < exit_code <= 192 else 0,
        "started_at": _moment(state.get("Started", "")),
        "ended_at": _moment(state.get("Finished", "")),
    }


def _phase(pods: str) -> str:
    """Of a Job, whose description counts its pods: `0 Active (0 Ready) / 0 Succeeded / 4 Failed`."""
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
    return found if found.year > 1970 else None  # the epoch stands for a container that never started
