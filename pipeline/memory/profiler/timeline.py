"""Exports of the profiler's memory timeline: `.json` and `.raw.json`, packed or not.

Format: torch/profiler/_memory_profiler.py, MemoryProfileTimeline. `.json` is `[times, sizes]` with times in
microseconds and nine numbers per time, a constant 0 and the categories below, bytes at that time. `.raw.json` is a list
of `[time in ns, action, bytes, category]` whose running sum is the level; time -1 marks allocations from before. The
device is not stored. Numbers are read one after the other, whatever the brackets and spacing. Levels below
0 are kept: validation rejects them.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sweepscope.pipeline.memory.analysis.downsample import MAX_POINTS, kept_points

Row = dict[str, Any]

CATEGORIES = (
    *("parameters", "optimizer_state", "input", "temporary"),
    *("activations", "gradients", "autograd_detail", "unknown"),
)
"""torch.profiler._memory_profiler._CATEGORY_TO_INDEX, in its order."""

_NUMBERS_ONLY = re.compile(rb"[\s\[\],\d.eE+-]*")
_RAW = re.compile(rb"\s*\[\s*\[\s*-?\d+\s*,\s*[1-4]\s*,\s*-?\d+\s*,\s*\d+\s*\]")
_COLUMNS = re.compile(rb"\s*\[\s*\[\s*\d{5,}")
_SEPARATORS = bytes.maketrans(b"[]\n\r\t", b"     ")
_LATEST_US = 253_402_300_800_000_000
_EARLIEST_US = 10**15  # below, times count from the boot of the machine


class Timeline(NamedTuple):
    """Levels in bytes, one column per category; times in microseconds since 1970, or -1."""

    time_us: npt.NDArray[np.int64]
    levels: npt.NDArray[np.int64]


def is_timeline(head: bytes) -> bool:
    """Whether a file that begins so is a memory timeline of the profiler."""
    return _RAW.match(head) is not None or _COLUMNS.match(head) is not None


def read_timeline(data: bytes) -> dict[str, list[Row]]:
    """Rows by table: `memory_snapshots`, `memory_timeline` and `memory_at_peak`.

    Raises ValueError for another format or a truncated file.
    """
    if not _NUMBERS_ONLY.fullmatch(data) or not data.rstrip().endswith(b"]"):
        raise ValueError("a memory timeline is lists of numbers to its end; this one is not, or is cut off")
    plain = data.translate(_SEPARATORS).replace(b" ", b"").decode("ascii")
    try:
        numbers = np.fromstring(plain, np.int64, sep=",")
    except ValueError as error:
        raise ValueError("a memory timeline of whole numbers was expected") from error
    if len(numbers) != plain.count(",") + 1:
        raise ValueError("a memory timeline of whole numbers was expected")
    timeline = _from_raw(numbers) if _RAW.match(data) else _from_columns(numbers)
    if not len(timeline.time_us):
        raise ValueError("a memory timeline without entries")
    return _rows(timeline)


def _from_columns(numbers: npt.NDArray[np.int64]) -> Timeline:
    if len(numbers) % 10:
        raise ValueError("a memory timeline has a time and nine sizes per entry")
    count = len(numbers) // 10
    sizes = numbers[count:].reshape(count, 9)
    return Timeline(numbers[:count], sizes[:, 1:])


def _from_raw(numbers: npt.NDArray[np.int64]) -> Timeline:
    if len(numbers) % 4:
        raise ValueError("a raw memory timeline has four numbers per entry")
    events = numbers.reshape(-1, 4)
    category = events[:, 3]
    if category.min(initial=0) < 0 or category.max(initial=0) >= len(CATEGORIES):
        raise ValueError("a category that the profiler does not have")
    if np.abs(events[:, 2]).sum(dtype=np.float64) > 2.0**62:
        raise ValueError("sizes that add up beyond any device")
    changes = np.zeros((len(events), len(CATEGORIES)), np.int64)
    changes[np.arange(len(events)), category] = events[:, 2]
    return Timeline(np.where(events[:, 0] < 0, -1, events[:, 0] // 1000), np.cumsum(changes, axis=0))


def _rows(timeline: Timeline) -> dict[str, list[Row]]:
    totals = timeline.levels.sum(axis=1)
    peak = int(totals.argmax())
    times = np.where((timeline.time_us >= _EARLIEST_US) & (timeline.time_us < _LATEST_US), timeline.time_us, -1)
    known = times[times >= 0]
    summary = {
        "device": None,
        "mem_source": "profiler_timeline",
        "events": len(totals),
        "allocated_bytes": int(totals[-1]),
        "peak_allocated_bytes": int(totals[peak]),
        "peak_is_lower_bound": False if totals[0] == 0 else None,
        "peak_after_events": peak + 1,
        "peak_at": _time(times[peak]),
        "recorded_from": int(known[0]) if len(known) else None,
        "recorded_until": int(known[-1]) if len(known) else None,
        "violations": int((timeline.levels < 0).sum()),
    }
    used = [at for at in range(len(CATEGORIES)) if timeline.levels[:, at].any()]
    kept = kept_points(totals, *(timeline.levels[:, at] for at in used), limit=MAX_POINTS // 2)
    curves = {"total": totals} | {CATEGORIES[at]: timeline.levels[:, at] for at in used}
    points = [
        {
            "device": None,
            "category": category,
            "point": int(point) + 1,
            "ts": _time(times[point]),
            "allocated_bytes": int(curve[point]),
        }
        for category, curve in curves.items()
        for point in kept
    ]
    at_peak = sorted(((int(timeline.levels[peak, at]), CATEGORIES[at]) for at in used), reverse=True)
    groups = [
        {"device": None, "group_no": number, "category": category, "rule": "the profiler's category", "bytes": size}
        for number, (size, category) in enumerate(at_peak, start=1)
        if size
    ]
    return {"memory_snapshots": [summary], "memory_timeline": points, "memory_at_peak": groups}


def _time(value: np.int64) -> int | None:
    return int(value) if value >= 0 else None
