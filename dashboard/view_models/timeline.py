"""The entries of a run's timeline as a chart shows them: lanes, grades, positions, the first sign of trouble."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sweepscope.dashboard.format.symbols import Mark
from sweepscope.dashboard.queries.query import Row

LANES = {
    "log": "Log",
    "nccl": "NCCL",
    "flight_recorder": "Flight recorder",
    "memory": "Memory",
    "scheduler": "Scheduler",
}
"""Name of each kind of source, from top to bottom."""

GRADES = {
    "failure": Mark("✕", "failure", "failed"),
    "warning": Mark("▲", "warning", "warning"),
    "context": Mark("●", "context", "axis"),
}
"""How an entry counts, the gravest first."""

_FAILURES = frozenset(
    (
        *("oom", "host_oom", "hang", "nccl_error", "traceback", "exception", "child_failed", "worker_failed"),
        *("rendezvous", "sigkill", "timeout", "node_fail", "oom_by_others", "gpu_busy", "hang_timeout", "hang_died"),
        *("nccl_fatal", "suspect", "memory_oom", "job_failed", "job_out_of_memory", "job_timeout", "job_deadline"),
        *("job_node_fail", "job_boot_fail", "diverged"),
    )
)
_WARNINGS = frozenset(
    (
        *("aborted", "cancelled", "preempted", "interrupted", "sigterm", "exit_code", "nan_loss", "skipped_step"),
        *("silence", "slowdown", "straggler", "held_after_end", "gpu_shared", "not_ending", "hang_stuck", "hang_lags"),
        *("hang_status", "hang_dump", "nccl_follower", "nccl_fallback", "nccl_unknown", "nccl_finding", "gpus_idle"),
        *("job_cancelled", "job_preempted", "job_evicted", "job_requeued"),
    )
)
_LEVELS = 5
_NEAR = 0.012
"""Share of the time shown within which entries of a lane would lie upon each other."""
_QUEUE_SHARE = 0.5
"""Of the time shown, what the wait in the queue may take; a longer one lies to the left of the first view."""


_WORDS = 60
"""Letters of a text, without its numbers, by which entries are alike."""


@dataclass(frozen=True)
class Point:
    """One entry at its place: `lane` from the top, `level` from 0 up where several come at once."""

    entry: Row
    at: datetime
    lane: int
    level: int
    grade: str


@dataclass(frozen=True)
class Timeline:
    """Points with a time, the lanes that have any, and the span that is shown at first."""

    points: tuple[Point, ...]
    lanes: tuple[str, ...]
    begin: datetime
    end: datetime
    is_queue_cut: bool


def grade(kind: str) -> str:
    """How an entry of a kind counts.

    >>> grade("oom"), grade("straggler"), grade("first_step")
    ('failure', 'warning', 'context')
    """
    return "failure" if kind in _FAILURES else "warning" if kind in _WARNINGS else "context"


def timeline(entries: Sequence[Row]) -> Timeline | None:
    """Entries (rows of `run_timeline` in order) on their lanes; None where none has a time."""
    timed = [row for row in entries if row["ts"] is not None]
    if not timed:
        return None
    lanes = tuple(name for name in LANES if any(row["entry_source"] == name for row in timed))
    begin, end, is_queue_cut = _span(timed)
    reach = _NEAR * max((end - begin).total_seconds(), 1.0)
    last: dict[int, list[datetime]] = defaultdict(list)
    points = []
    for row in timed:
        lane = lanes.index(row["entry_source"])
        level = _free_level(last[lane], row["ts"], reach)
        points.append(Point(row, row["ts"], lane, level, grade(row["entry_kind"])))
    return Timeline(tuple(points), lanes, begin, end, is_queue_cut)


def _free_level(taken: list[datetime], at: datetime, reach: float) -> int:
    """The lowest level whose last entry is far enough; the topmost where none is. Remembers it in `taken`."""
    for level, before in enumerate(taken):
        if (at - before).total_seconds() >= reach:
            taken[level] = at
            return level
    if len(taken) < _LEVELS:
        taken.append(at)
        return len(taken) - 1
    taken[-1] = at
    return _LEVELS - 1


def _span(timed: Sequence[Row]) -> tuple[datetime, datetime, bool]:
    """Begin and end of what is shown at first with a margin, and whether the wait in the queue is left out of it."""
    times = [row["ts"] for row in timed]
    queued = [row["ts"] for row in timed if row["entry_kind"] == "job_submitted"]
    others = [row["ts"] for row in timed if row["entry_kind"] != "job_submitted"] or times
    begin, end = min(times), max(times)
    is_cut = bool(queued) and (min(others) - begin) > _QUEUE_SHARE * (end - begin)
    begin = min(others) if is_cut else begin
    margin = max((end - begin) * 0.03, timedelta(seconds=1))
    return begin - margin, end + margin, is_cut


def with_findings(entries: Sequence[Row], findings: Sequence[Row]) -> list[Row]:
    """Entries and, behind them, findings on NCCL's output (rows of `nccl_findings`), which have no time."""
    total = int(entries[0]["found"]) + len(findings)
    added = [
        {
            "run_id": entries[0]["run_id"],
            "entry_no": None,
            "ts": None,
            "is_time_printed": False,
            "entry_source": "nccl",
            "entry_kind": "nccl_finding",
            "rank": None,
            "host": row["host"],
            "text": f"{row['nccl_rule'].replace('_', ' ')}: {row['evidence']}",
            "source_path": row["source_path"],
            "line_no": row["line_no"],
        }
        for row in findings
    ]
    return [{**row, "found": total} for row in [*entries, *added]]


def first_sign(entries: Sequence[Row]) -> Row | None:
    """The earliest entry with a time of its own that counts as failure or warning."""
    return next((row for row in entries if row["is_time_printed"] and grade(row["entry_kind"]) != "context"), None)


def first_in_log(entries: Sequence[Row]) -> Row | None:
    """The earliest failure or warning that the log itself has, with a time of its own or of a line before it."""
    in_log = (row for row in entries if row["entry_source"] == "log" and row["ts"] is not None)
    return next((row for row in in_log if grade(row["entry_kind"]) != "context"), None)


@dataclass(frozen=True)
class Group:
    """Entries of one source and kind whose texts differ in numbers alone, at the place of the first."""

    first: Row
    count: int
    ranks: tuple[int, ...]
    hosts: tuple[str, ...]
    until: datetime | None


def grouped(entries: Sequence[Row]) -> list[Group]:
    """Entries as groups in the order of their first ones: what each rank reports is one line of a table."""
    members: dict[tuple[str, str, str], list[Row]] = defaultdict(list)
    for row in entries:
        words = re.sub(r"[\d.:]+", "", str(row["text"] or ""))[:_WORDS]
        members[row["entry_source"], row["entry_kind"], words].append(row)
    groups = []
    for rows in members.values():
        ranks = sorted({row["rank"] for row in rows if row["rank"] is not None})
        hosts = sorted({row["host"] for row in rows if row["host"]})
        groups.append(Group(rows[0], len(rows), tuple(ranks), tuple(hosts), rows[-1]["ts"]))
    return groups
