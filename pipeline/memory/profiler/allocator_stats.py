"""Rows of `memory_snapshots` from `torch.cuda.memory_stats()`, as JSON or printed, and `torch.cuda.memory_summary()`.

Formats: memory_stats and memory_summary in torch/cuda/memory.py. Peaks count from the start of the process or the last
reset_peak_memory_stats. The summary rounds down to its unit (1024-based; before PyTorch 2.1 spelled KB and MB), counts
to K and M (1000-based). The summary names its device, the statistics do not.
"""

from __future__ import annotations

import json
import re
from typing import Any

Row = dict[str, Any]

_PAIR = re.compile(r"""["']([a-z_]+(?:\.[a-z0-9_]+)*)["']\s*[:,]\s*(-?\d{1,19})\b""")
_PEAK = re.compile(r"""["']allocated_bytes\.all\.peak["']""")
_DEVICE = re.compile(r"(?:[a-z]+[:_ ]?)?(\d{1,3})")
_FLAT = {
    "segment.all.current": "segments",
    "reserved_bytes.all.current": "reserved_bytes",
    "allocated_bytes.all.current": "allocated_bytes",
    "active_bytes.all.current": "active_bytes",
    "requested_bytes.all.current": "requested_bytes",
    "inactive_split_bytes.all.current": "inactive_split_bytes",
    "inactive_split.all.current": "inactive_split_blocks",
    "reserved_bytes.all.peak": "peak_reserved_bytes",
    "allocated_bytes.all.peak": "peak_allocated_bytes",
    "requested_bytes.all.peak": "peak_requested_active_bytes",
    "num_ooms": "oom_events",
    "num_alloc_retries": "alloc_retries",
}
# CUDA and ROCm print CUDA; other back ends print other names, such as torch_npu/npu/memory.py.
_CURRENT = ("allocated_bytes.all.current", "num_ooms")
_SUMMARY = re.compile(r"PyTorch [A-Z]+ memory summary")
_TITLE = re.compile(r"memory summary, device ID (\d{1,4})")
_COUNTERS = re.compile(r"[A-Z]+ OOMs:\s*(\d+)\s*\|\s*\w+ retries:\s*(\d+)")
_RESERVED = re.compile(r"^[A-Z]+ (?=reserved )")
# Row of the summary -> columns of the current value and of the peak.
_ROWS = {
    "Allocated memory": ("allocated_bytes", "peak_allocated_bytes"),
    "Active memory": ("active_bytes", None),
    "Requested memory": ("requested_bytes", "peak_requested_active_bytes"),
    "reserved memory": ("reserved_bytes", "peak_reserved_bytes"),
    "Non-releasable memory": ("inactive_split_bytes", None),
    "reserved segments": ("segments", None),
    "Non-releasable allocs": ("inactive_split_blocks", None),
}
_QUANTITY = re.compile(r"(-?\d+)\s*(?:([KMGTPE])(i?B)?|B)?")
_POWER = {None: 0, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}


def is_statistics(text: str) -> bool:
    """Whether a text holds allocator statistics as PyTorch names them."""
    is_known = "num_alloc_retries" in text or _PEAK.search(text) is not None  # XPU counts no retries
    return "allocated_bytes" in text and "reserved_bytes" in text and is_known


def is_summary(text: str) -> bool:
    """Whether a text holds a memory summary."""
    return _SUMMARY.search(text) is not None


def read_statistics(text: str) -> list[Row]:
    """Rows of `memory_snapshots` from a flat or nested dict, as JSON or as Python prints it; of several the last.

    A dict of such dicts by device, `{"cuda:0": {...}}`, gives a row each. Raises ValueError without statistics.
    """
    if by_device := _by_device(text):
        return [{**_statistics(json.dumps(part)), "device": number} for number, part in by_device.items()]
    row = _statistics(text)
    count = max(len(re.findall(rf"""["']{re.escape(name)}["']""", text)) for name in _CURRENT)
    return [row | {"warnings": f"the last of {count} records"}] if count > 1 else [row]


def _by_device(text: str) -> dict[int, Any]:
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(parsed, dict):
        return {}
    found = [(_DEVICE.fullmatch(name), part) for name, part in parsed.items()]
    return {int(name[1]): part for name, part in found if name and isinstance(part, dict) and "num_ooms" in part}


def _statistics(text: str) -> Row:
    values = dict(_PAIR.findall(text)) or {}
    values |= _nested(text)
    row: Row = {column: int(values[name]) for name, column in _FLAT.items() if name in values}
    if "allocated_bytes" not in row:
        raise ValueError("no allocator statistics: allocated_bytes is missing")
    return {"device": None, "mem_source": "memory_stats", **row, **_fragmentation(row)}


def _nested(text: str) -> dict[str, str]:
    """Values of memory_stats_as_nested_dict: {"allocated_bytes": {"all": {"current": 1, ...}}}."""
    nested: dict[str, str] = {}
    for metric in {name.split(".")[0] for name in _FLAT if "." in name}:
        for all_of in re.finditer(rf"""["']{metric}["']\s*:\s*\{{[^{{}}]*["']all["']\s*:\s*\{{([^{{}}]*)\}}""", text):
            nested |= {f"{metric}.all.{name}": value for name, value in _PAIR.findall(all_of[1])}
    return nested


def read_summaries(text: str) -> list[Row]:
    """Rows of `memory_snapshots`, one per device; of several summaries of a device the last.

    Raises ValueError where every summary is truncated.
    """
    starts = [found.start() for found in _TITLE.finditer(text)]
    rows: dict[int, Row] = {}
    counts: dict[int, int] = {}
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        row = _summary(text[start:end])
        if "allocated_bytes" in row:
            rows[row["device"]] = row
            counts[row["device"]] = counts.get(row["device"], 0) + 1
    if not rows:
        raise ValueError("a memory summary without its table")
    for device, row in rows.items():
        more = f"; the last of {counts[device]} summaries" if counts[device] > 1 else ""
        row["warnings"] = f"rounded down as printed{more}"
    return list(rows.values())


def _summary(text: str) -> Row:
    title, counters = _TITLE.search(text), _COUNTERS.search(text)
    row: Row = {"device": int(title[1]) if title else None, "mem_source": "memory_summary"}
    if counters:
        row |= {"oom_events": int(counters[1]), "alloc_retries": int(counters[2])}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        names = [_RESERVED.sub("", cell) for cell in cells]
        at = next((i for i, name in enumerate(names) if name in _ROWS), None)  # behind a launcher's prefix
        if at is not None and len(cells) >= at + 3:
            for column, cell in zip(_ROWS[names[at]], cells[at + 1 : at + 3], strict=True):
                if column and (value := _quantity(cell)) is not None:
                    row[column] = value
    return row | _fragmentation(row)


def _quantity(text: str) -> int | None:
    """A printed quantity in bytes, or a count.

    >>> _quantity("74278 MiB"), _quantity("829 K"), _quantity("1 KB"), _quantity("36202"), _quantity("?")
    (77886128128, 829000, 1024, 36202, None)
    """
    found = _QUANTITY.fullmatch(text)
    if not found:
        return None
    is_bytes = found[3] is not None
    factor: int = (1024 if is_bytes else 1000) ** _POWER[found[2]]
    return int(found[1]) * factor


def _fragmentation(row: Row) -> Row:
    reserved, allocated = row.get("reserved_bytes"), row.get("allocated_bytes")
    if reserved is None or not allocated or not reserved >= allocated > 0:  # of impossible values, which are rejected
        return {}
    return {"fragmentation": reserved / allocated - 1}
