"""Sentences of the page on a snapshot, each computed from its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from sweepscope.dashboard.format.numbers import count, memory, moment, number, percent, seconds
from sweepscope.dashboard.queries.query import Row
from sweepscope.dashboard.view_models.snapshot import CATEGORIES, category_name
from sweepscope.schemas.vocab.memory import MEM_SOURCE

NO_SITES = (
    "What was alive is known at the peak only. Ingest the file again to have it along the record: older readers did "
    "not keep it, and only allocator snapshots hold it."
)
NOTHING_ALIVE = "It names no blocks, so live blocks are unknown; an allocator snapshot has them."
NO_EVENTS = "No events were recorded: only a state is known, without its history."
HOW_TO_READ = (
    "**How to read it.** Levels are replayed backwards from the segments, in requested bytes. Between two points "
    "that are drawn no curve leaves the range of what is drawn of their stretch: peaks are kept. What was alive is "
    "known at some 400 points, the peak and the failures among them. Categories are rules over stacks, phases and "
    "lives; each row names the rule that applied.",
    "**What it hides.** A ring buffer of events begins in the middle: blocks from before have the stack of the "
    "block that was left or of the event that freed them, or none. Backward passes run on threads of their own and "
    "have no Python "
    'stack unless the record was made with stacks="all".',
)


def none_chosen(path: str | None) -> str:
    """Why nothing is shown: no file is named, or one that is not here."""
    first = f"**This store has no memory file {path}.**" if path else "**No memory file is chosen.**"
    return f"{first} The page on memory lists all."


def title(row: Row) -> str:
    """File name."""
    return str(row["source_path"]).rsplit("/", 1)[-1]


def answer(row: Row, alive: Sequence[tuple[str, int]]) -> str:
    """The peak, what it was for, and what failed."""
    parts = [_peak(row)]
    if whole := sum(size for _, size in alive):
        name, largest = max(alive, key=lambda item: item[1])
        parts.append(f"{percent(largest / whole, 0)} of it were {CATEGORIES[name]}.")
    if row["oom_events"]:
        parts.append(_failure(row))
    return " ".join(parts)


def _peak(row: Row) -> str:
    known = (row[name] for name in ("peak_allocated_bytes", "peak_requested_active_bytes"))
    value = next((peak for peak in known if peak is not None), None)
    if value is None:
        return "**No peak is known.**"
    least = "At least " if row["peak_is_lower_bound"] else ""
    phase = f" in {row['peak_phase']}" if row["peak_phase"] else ""
    text = f"**{least}{memory(value)} at the peak**{phase}"
    if row["reserved_at_peak_bytes"] is not None:
        text += f", {memory(row['reserved_at_peak_bytes'])} reserved"
    return f"{text}."


def _failure(row: Row) -> str:
    if row["oom_requested_bytes"] is None:
        return f"**{count(row['oom_events'], 'allocation')} failed.**"
    missing = row["oom_requested_bytes"] - row["oom_device_free_bytes"]
    pieces = row["oom_inactive_bytes"]
    inside = f"; {memory(pieces)} were free inside the allocator's segments" if pieces is not None else ""
    return (
        f"**{count(row['oom_events'], 'allocation')} failed:** the last asked for "
        f"{memory(row['oom_requested_bytes'])}, {memory(missing)} more than the GPU had free{inside}."
    )


def meta(row: Row) -> str:
    """Kind, events, time, rank, device."""
    parts = [MEM_SOURCE[row["mem_source"]]]
    if row["events"] is not None:
        parts.append(count(row["events"], "event"))
    if row["recorded_from"] and row["recorded_until"]:
        took = seconds((row["recorded_until"] - row["recorded_from"]).total_seconds())
        parts.append(f"{took} from {moment(row['recorded_from'])} UTC")
    if row["rank"] is not None:
        parts.append(f"rank {row['rank']}")
    if row["device"] is not None:
        parts.append("CPU" if row["device"] == -1 else f"device {row['device']}")
    return " · ".join(parts)


def figures(row: Row) -> list[tuple[str, str, str]]:
    """Label, value and note of the plain figures."""
    reserved = "not known" if row["peak_reserved_bytes"] is None else memory(row["peak_reserved_bytes"])
    segments = "" if row["segments"] is None else f"{count(row['segments'], 'segment')} at the end"
    failed = "not known" if row["oom_events"] is None else number(row["oom_events"])
    violations = "not checked" if row["violations"] is None else number(row["violations"])
    agreement = "events and blocks agree" if row["violations"] == 0 else ""
    return [
        ("Reserved at most", reserved, segments),
        ("Reserved beyond active, at the peak", *_beyond_active(row)),
        ("Failed allocations", failed, _allocator(row)),
        ("Contradictions", violations, row["warnings"] or agreement),
    ]


def _beyond_active(row: Row) -> tuple[str, str]:
    """Value and note. At the end in bytes: where little is alive then, its share means little."""
    share = row["fragmentation_at_peak"]
    if share is None:
        return "not known", ""
    if share < 0:
        return "not known", "the record has more active than reserved"
    reserved, active, cache = row["reserved_bytes"], row["active_bytes"], row["releasable_bytes"]
    if None in (reserved, active, cache):
        return percent(share), ""
    pieces = memory(reserved - active - cache)
    return percent(share), f"at the end {memory(cache)} in whole segments, {pieces} in pieces"


def _allocator(row: Row) -> str:
    """Settings of the allocator, known from snapshots only."""
    if row["is_expandable"]:
        return "expandable segments are on"
    if row["allocator_settings"]:
        return str(row["allocator_settings"])
    return "the allocator has its default settings" if row["mem_source"] == "snapshot" else ""


def alive_title(point: int | None, peak: int | None, rows: pl.DataFrame) -> str:
    """Which instant the table shows."""
    where = "at the peak" if point is None or point == peak else f"after {number(point)} events"
    return f"{where}, {count(rows.height, 'site')}, {memory(int(rows['bytes'].sum()))}"


def stack_alt(levels: Mapping[str, Sequence[int]]) -> str:
    """The stack in one sentence."""
    tops = ", ".join(f"{CATEGORIES[name]} up to {memory(max(values))}" for name, values in levels.items())
    return f"What was alive over the record: {tops}." if tops else "Nothing is known by category."


def difference_note(rows: pl.DataFrame) -> str:
    """By how much the two peaks differ, and what grew most."""
    if rows.is_empty():
        return "At their peaks both hold the same source lines with the same bytes."
    total = int(rows["difference_bytes"].sum())
    first = rows.row(0, named=True)
    word = "more" if first["difference_bytes"] > 0 else "less"
    direction = "more" if total > 0 else "less"
    return (
        f"**{memory(abs(total))} {direction} at its peak.** Most by {category_name(first['category'])}: "
        f"{memory(abs(first['difference_bytes']))} {word} at {first['frame'] or 'blocks without a stack'}."
    )
