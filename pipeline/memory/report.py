"""Text of memory artefacts: summary per device, categories, top groups, differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
GIB, MIB = 1 << 30, 1 << 20


def size(count: float | None) -> str:
    """Bytes in GiB, or in MiB where GiB would read as nearly nothing.

    >>> size(16 << 30), size(26_000_000), size(None), size(-(1 << 30))
    ('16.00 GiB', '24.8 MiB', '-', '-1.00 GiB')
    """
    if count is None:
        return "-"
    if abs(count) >= GIB / 10:
        return f"{count / GIB:.2f} GiB"
    return f"{count / MIB:.1f} MiB" if abs(count) >= MIB / 10 or count == 0 else f"{count:,.0f} B"


def categories(groups: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows of category, bytes, blocks and share, the largest first."""
    totals: dict[str, dict[str, Any]] = {}
    for row in groups:
        total = totals.setdefault(row["category"], {"category": row["category"], "bytes": 0, "blocks": 0})
        total["bytes"] += row["bytes"]
        total["blocks"] += row["blocks"] or 0
    whole = sum(row["bytes"] for row in totals.values())
    ranked = sorted(totals.values(), key=lambda row: -row["bytes"])
    return [{**row, "share": row["bytes"] / whole if whole else None} for row in ranked]


def top(groups: Iterable[Row], count: int) -> list[dict[str, Any]]:
    """The `count` largest groups by category and source line, with the rule and stack of their largest part."""
    lines: dict[tuple[str, str | None], dict[str, Any]] = {}
    for row in sorted(groups, key=lambda row: -row["bytes"]):
        described = {name: row[name] for name in ("category", "frame", "rule", "stack")}
        line = lines.setdefault((row["category"], row["frame"]), {**described, "bytes": 0, "blocks": 0})
        line["bytes"] += row["bytes"]
        line["blocks"] += row["blocks"] or 0
    return sorted(lines.values(), key=lambda row: -row["bytes"])[:count]


def differences(groups: Iterable[Row], against: Iterable[Row], count: int) -> list[dict[str, Any]]:
    """The `count` categories and source lines whose bytes at the peak differ most between two files."""
    mine, theirs = ({(r["category"], r["frame"]): r for r in top(rows, 10**9)} for rows in (groups, against))
    rows = []
    for key in {**mine, **theirs}:
        here, there = mine.get(key), theirs.get(key)
        bytes_here, bytes_there = here["bytes"] if here else 0, there["bytes"] if there else 0
        if bytes_here != bytes_there:
            rows.append(
                {
                    "category": key[0],
                    "frame": key[1],
                    "bytes": bytes_here,
                    "against_bytes": bytes_there,
                    "difference_bytes": bytes_here - bytes_there,
                    "blocks": here["blocks"] if here else 0,
                    "against_blocks": there["blocks"] if there else 0,
                }
            )
    return sorted(rows, key=lambda row: -abs(row["difference_bytes"]))[:count]


def summary_lines(row: Row) -> list[tuple[str, str]]:
    """Lines of (name, text) about one device of one file; unknown values are left out."""
    lines = [("source", _source(row))]
    lines.append(("peak", _peak(row)))
    reserved = f"reserved {size(row['reserved_bytes'])}" if row["reserved_bytes"] is not None else "reserved unknown"
    lines.append(("at the end", f"allocated {size(row['allocated_bytes'])}, {reserved}{_fragmentation(row)}"))
    if row["oom_events"]:
        lines.append(("out of memory", _failure(row)))
    if row["allocator_settings"]:
        lines.append(("settings", row["allocator_settings"]))
    if row["warnings"]:
        lines.append(("note", row["warnings"]))
    return lines


def _source(row: Row) -> str:
    parts = [row["mem_source"].replace("_", " ")]
    if row["events"] is not None:
        parts.append(f"{row['events']:,} events")
    if row["segments"] is not None:
        parts.append(f"{row['segments']:,} segments")
    if row["recorded_from"] and row["recorded_until"]:
        parts.append(f"{(row['recorded_until'] - row['recorded_from']).total_seconds():,.1f} s recorded")
    return ", ".join(parts)


def _peak(row: Row) -> str:
    figures = []
    for column, name in (
        ("peak_requested_active_bytes", "requested and active"),
        ("peak_allocated_bytes", "allocated"),
        ("peak_reserved_bytes", "reserved"),
    ):
        if row[column] is not None:
            figures.append(f"{size(row[column])} {name}")
    where = f" after {row['peak_after_events']:,} events" if row["peak_after_events"] else ""
    phase = f" in {row['peak_phase']}" if row["peak_phase"] else ""
    bound = "; at least: memory was in use when the record began" if row["peak_is_lower_bound"] else ""
    return f"{', '.join(figures) or 'unknown'}{where}{phase}{bound}"


def _fragmentation(row: Row) -> str:
    if row["fragmentation"] is None:
        return ""
    text = f"; {row['fragmentation']:.1%} over allocated"
    if row["fragmentation_releasable"] is None:
        return text
    return (
        f"{text} = {row['fragmentation_releasable']:.1%} releasable cache + {row['fragmentation_split']:.1%} split "
        f"blocks; rounding {size(row['rounding_bytes'])}"
    )


def _failure(row: Row) -> str:
    times = "1 failed allocation" if row["oom_events"] == 1 else f"{row['oom_events']:,} failed allocations"
    if row["oom_requested_bytes"] is None:
        return times
    return (
        f"{times}; the last asked for {size(row['oom_requested_bytes'])} with "
        f"{size(row['oom_requested_active_bytes'])} active, {size(row['oom_reserved_bytes'])} reserved and "
        f"{size(row['oom_device_free_bytes'])} free on the device, after {row['oom_segments_freed']:,} cached segments "
        "had been given back"
    )


def group_lines(rows: Sequence[Row], whole: int) -> list[str]:
    """The top groups as lines: share, bytes, category, blocks, source line and rule."""
    return [
        f"{row['bytes'] / whole if whole else 0:6.1%} {size(row['bytes']):>10}  {row['category']:<15} "
        f"{row['blocks']:>6,} x  {row['frame'] or 'no stack'}\n{'':42}{row['rule']}"
        for row in rows
    ]


def difference_lines(rows: Sequence[Row]) -> list[str]:
    """Differences as lines: this file minus the other."""
    return [
        f"{size(row['difference_bytes']):>11}  {row['category']:<15} {size(row['bytes']):>10} against "
        f"{size(row['against_bytes']):>10}  {row['frame'] or 'no stack'}"
        for row in rows
    ]
