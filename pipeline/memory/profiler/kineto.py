"""The `[memory]` events of a profiler trace (Chrome trace of Kineto), found without parsing the rest.

Format: libkineto/src/output_json.cpp, torch/csrc/profiler/kineto_shim.cpp and collection.cpp; `[OutOfMemory]` has the
same fields; what the device had free then is not told, so that such events are counted only. Traces reach gigabytes and
are not always valid JSON (unescaped names, cut off), so that events are looked for one by one. `Total Allocated` is the
allocator's level behind the event; the bytes of the events alone would miss what was there before. `ts` is in
microseconds, since 1970 or, where the file says so, since `baseTimeNanoseconds`. Levels are kept as printed, negative
ones too: validation rejects those.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from sweepscope.pipeline.memory.analysis.downsample import kept_points

Row = dict[str, Any]
Event = tuple[float, int, int | None]
"""Time as printed, and bytes allocated and reserved behind the event."""

_NAME = re.compile(rb'"\[(?:memory|OutOfMemory)\]"')
_FAILED = b'"[OutOfMemory]"'
_NAME_BYTES = len(_FAILED)
_EVENT = re.compile(rb"\{[^{}]*(?:\{[^{}]*\}[^{}]*)?\}")
_FIELD = re.compile(
    rb'"(ts|Bytes|Device Type|Device Id|Total Allocated|Total Reserved)"\s*:\s*"?(-?\d{1,19}(?:\.\d{1,9})?)"?'
)
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})')
_LOOK_BACK, _LOOK_AHEAD = 4_096, 4_096
_CPU = 0
_LATEST_US = 253_402_300_800_000_000
_EARLIEST_US = 10**15


def is_trace(head: bytes) -> bool:
    """Whether a file that begins so is a Chrome trace."""
    return b'"traceEvents"' in head or b'"schemaVersion"' in head or b'"ph"' in head


def read_trace(chunks: Iterable[bytes]) -> tuple[dict[str, list[Row]], int]:
    """Rows of the memory tables, one device after the other, and the number of events that could not be read."""
    events: dict[tuple[int, int], list[Event]] = {}
    failures: Counter[tuple[int, int]] = Counter()
    base_ns, odd = 0, 0
    for found in _objects(chunks):
        if isinstance(found, int):
            base_ns = found
            continue
        fields = dict(_FIELD.findall(found or b""))
        try:
            key = int(fields[b"Device Type"]), int(fields[b"Device Id"])
            reserved = fields.get(b"Total Reserved")
            event = float(fields[b"ts"]), int(fields[b"Total Allocated"]), None if reserved is None else int(reserved)
        except (KeyError, ValueError):
            odd += 1
            continue
        events.setdefault(key, []).append(event)
        failures[key] += _FAILED in (found or b"")
    rows: dict[str, list[Row]] = {"memory_snapshots": [], "memory_timeline": []}
    for (kind, number), mine in sorted(events.items()):
        summary, points = _device(mine, base_ns=base_ns, device=-1 if kind == _CPU else number, is_cpu=kind == _CPU)
        rows["memory_snapshots"].append(summary | {"oom_events": failures[kind, number] or None})
        rows["memory_timeline"] += points
    return rows, odd


def _objects(chunks: Iterable[bytes]) -> Iterator[bytes | int | None]:
    """Memory events as text, None for one that is no object, and the base time as a number."""
    held = b""
    base_seen = False
    for chunk in _with_end(chunks):
        held += chunk or b""
        is_last = chunk is None
        if not base_seen and (base := _BASE.search(held)):
            base_seen = True
            yield int(base[1])
        done = 0
        name = _NAME.search(held)
        while name and (is_last or name.start() + _LOOK_AHEAD <= len(held)):
            yield _object_around(held, name.start())
            done = name.end()
            name = _NAME.search(held, done)
        keep = name.start() if name else len(held) - _NAME_BYTES
        held = held[max(min(keep, len(held)) - _LOOK_BACK, done, 0) :]


def _with_end(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    yield from chunks
    yield None


def _object_around(text: bytes, at: int) -> bytes | None:
    """The object, with at most one object in it, that holds the name at `at`."""
    start = at
    for _ in range(2):  # its own brace, or that of its `args` when they come first
        start = text.rfind(b"{", max(start - _LOOK_BACK, 0), start)
        if start < 0:
            return None
        found = _EVENT.match(text, start, at + _LOOK_AHEAD)
        if found and found.end() > at:
            return found.group()
    return None


def _device(events: list[Event], *, base_ns: int, device: int, is_cpu: bool) -> tuple[Row, list[Row]]:
    """Summary and thinned timeline of one device; events come in any order."""
    events.sort(key=lambda event: event[0])
    allocated = np.array([event[1] for event in events], np.int64)
    # The CPU has no allocator that reserves.
    has_reserved = not is_cpu and all(event[2] is not None for event in events)
    reserved = np.array([event[2] if has_reserved else 0 for event in events], np.int64)
    times = [_time(event[0], base_ns) for event in events]
    peak = int(allocated.argmax())
    summary: Row = {
        "device": device,
        "mem_source": "kineto",
        "events": len(events),
        "allocated_bytes": int(allocated[-1]),
        "reserved_bytes": int(reserved[-1]) if has_reserved else None,
        "peak_allocated_bytes": int(allocated[peak]),
        "peak_reserved_bytes": int(reserved.max()) if has_reserved else None,
        "peak_is_lower_bound": True,
        "peak_after_events": peak + 1,
        "peak_at": times[peak],
        "reserved_at_peak_bytes": int(reserved[peak]) if has_reserved else None,
        "recorded_from": times[0],
        "recorded_until": times[-1],
        "violations": int((allocated < 0).sum() + has_reserved * ((reserved < 0) | (allocated > reserved)).sum()),
    }
    points = [
        {
            "device": device,
            "category": "total",
            "point": int(point) + 1,
            "ts": times[point],
            "allocated_bytes": int(allocated[point]),
            "reserved_bytes": int(reserved[point]) if has_reserved else None,
        }
        for point in kept_points(allocated, reserved)
    ]
    return summary, points


def _time(ts: float, base_ns: int) -> int | None:
    """Microseconds since 1970, where that can be."""
    value = base_ns // 1000 + int(ts)
    return value if _EARLIEST_US <= value < _LATEST_US else None
