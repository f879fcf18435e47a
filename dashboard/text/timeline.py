"""Sentences on a run's timeline, each computed from its entries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sweepscope.dashboard.format.entry_kinds import kind_name
from sweepscope.dashboard.format.numbers import MISSING, count, in_sentence, number, shortened
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.network import ranks_text
from sweepscope.dashboard.view_models.timeline import LANES, Group, Timeline, first_in_log, first_sign, grade

_SIGN_CHARS = 150
_TEXT_CHARS = 220
NAMED_HOSTS = 3
HOW_TO_READ = (
    "**How to read it.** Each mark is a line or a fact of a file: ✕ failure, ▲ warning, ● context. A hollow mark has "
    "no time of its own and is placed at the nearest line that has one. Drag to zoom, double-click for all.",
    "**What it hides.** Files print no time zone: where a file's times do not overlap the log's, they are moved by "
    "whole half hours. Files beside the log count where they can be of no other run.",
)


def qualifier(entries: Sequence[Row]) -> str:
    """How many entries there are, and from what."""
    found = int(entries[0]["found"])
    named = [LANES[name].lower() if name != "nccl" else "NCCL" for name in LANES if _has(entries, name)]
    shown = f", the first {number(len(entries))} shown" if found > len(entries) else ""
    return f"{count(found, 'entry', 'entries')} from {_listed(named)}{shown}"


def _has(entries: Sequence[Row], source: str) -> bool:
    return any(row["entry_source"] == source for row in entries)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def sign(entries: Sequence[Row]) -> str:
    """What gave the first sign of trouble, and how long before the log's own first line on it; "" where nothing did."""
    first = first_sign(entries)
    if first is None:
        return ""
    where = f", {LANES[first['entry_source']]}" if first["entry_source"] != "log" else f", line {first['line_no']}"
    what = shortened(" ".join(str(first["text"] or "").split()), _SIGN_CHARS)
    sentence = f"**First sign: {in_sentence(kind_name(first['entry_kind']))}** at {clock(first['ts'])}{where}: {what}"
    logged = first_in_log(entries)
    if logged is None or first["entry_source"] == "log":
        return sentence
    lead_s = (logged["ts"] - first["ts"]).total_seconds()
    return f"{sentence}. {_lead(lead_s)}" if lead_s >= 1 else sentence


def _lead(lead_s: float) -> str:
    return f"The log's first line on it came {duration(lead_s)} later."


def duration(seconds: float) -> str:
    """A time span in its largest units.

    >>> duration(42), duration(600), duration(8040)
    ('42 s', '10 min', '2 h 14 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def clock(at: datetime | None) -> str:
    """A time of day to the second.

    >>> clock(datetime(2026, 3, 1, 9, 5, 7)), clock(None)
    ('09:05:07', '–')
    """
    return MISSING if at is None else f"{at:%H:%M:%S}"


def group_time(group: Group, *, is_one_day: bool) -> str:
    """When a group's entries came; "≥" before the time of another line."""
    first = group.first
    if first["ts"] is None:
        return MISSING
    day = "" if is_one_day else f"{first['ts']:%d %b} "
    last = group.until
    until = f" to {clock(last)}" if last and (last - first["ts"]).total_seconds() >= 1 else ""
    return f"{'' if first['is_time_printed'] else '~'}{day}{clock(first['ts'])}{until}"


def group_ranks(group: Group) -> str:
    """Ranks of a group, those in a row as a range."""
    return f"rank {ranks_text(','.join(map(str, group.ranks)))}"


def group_text(group: Group) -> str:
    """The first entry's text, and how many are alike."""
    text = shortened(" ".join(str(group.first["text"] or "").split()), _TEXT_CHARS)
    return f"{text} ({number(group.count)} alike)" if group.count > 1 else text


def alt(timeline: Timeline) -> str:
    """The chart in a sentence."""
    failures = sum(point.grade == "failure" for point in timeline.points)
    warnings = sum(point.grade == "warning" for point in timeline.points)
    lanes = _listed([LANES[name] for name in timeline.lanes])
    return (
        f"{count(len(timeline.points), 'entry', 'entries')} from {timeline.begin:%H:%M} to {timeline.end:%H:%M} on the "
        f"lanes {lanes}: {count(failures, 'failure')}, {count(warnings, 'warning')}."
    )


def queue_note(entries: Sequence[Row]) -> str:
    """That the wait in the queue lies left of the chart's first view."""
    submitted = next(row for row in entries if row["entry_kind"] == "job_submitted")
    return f"The job entered the queue at {clock(submitted['ts'])}, left of what is shown; a double click shows all."


def is_incident(entries: Sequence[Row]) -> bool:
    """Whether anything on the timeline counts as failure or warning."""
    return any(grade(row["entry_kind"]) != "context" for row in entries)
