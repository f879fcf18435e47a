"""The `[memory]` events of a profiler trace (Chrome trace of Kineto), found without parsing the rest.

Format: libkineto/src/output_json.cpp, torch/csrc/profiler/kineto_shim.cpp and collection.cpp; `[OutOfMemory]` has the
same fields but not the free bytes of the device, so such events are only counted. Traces reach gigabytes and are not
always valid JSON (unescaped names, truncated), so events are searched one by one. `Total Allocated` is the
allocator's level after the event; the bytes of events alone would miss what was allocated before. `ts` is in
microseconds, since 1970 or since `baseTimeNanoseconds` of the file. Levels are kept as printed, negative
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
    """Rows by table (`memory_snapshots`, `memory_timeline`) and the number of unreadable events."""
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
    for (kind, number), device_events in sorted(events.items()):
        summary, points = _device(
            device_events, base_ns=base_ns, device=-1 if kind == _CPU else number, is_cpu=kind == _CPU
        )
        rows["memory_snapshots"].append(summary | {"oom_events": failures[kind, number] or None})
        rows["memory_timeline"] += points
    return rows, odd


def _objects(chunks: Iterable[bytes]) -> Iterator[bytes | int | None]:
    """Memory events as text (None: malformed), and the base time as a number."""
    buffer = b""
    base_seen = False
    for chunk in _with_end(chunks):
        buffer += chunk or b""
        is_last = chunk is None
        if not base_seen and (base := _BASE.search(buffer)):
            base_seen = True
            yield int(base[1])
        done = 0
        name = _NAME.search(buffer)
        while name and (is_last or name.start() + _LOOK_AHEAD <= len(buffer)):
            yield _object_around(buffer, name.start())
            done = name.end()
            name = _NAME.search(buffer, done)
        keep = name.start() if name else len(buffer) - _NAME_BYTES
        buffer = buffer[max(min(keep, len(buffer)) - _LOOK_BACK, done, 0) :]


def _with_end(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    yield from chunks
    yield None


def _object_around(text: bytes, at: int) -> bytes | None:
    """The object around the name at `at`; None where there is none with at most one nested object."""
    start = at
    for _ in range(2):  # the brace of the event, or of its `args` when they come first
        start = text.rfind(b"{", max(start - _LOOK_BACK, 0), start)
        if start < 0:
            return None
        found = _EVENT.match(text, start, at + _LOOK_AHEAD)
        if found and found.end() > at:
            return found.group()
    return None


def _device(events: list[Event], *, base_ns: int, device: int, is_cpu: bool) -> tuple[Row, list[Row]]:
    """Summary and downsampled timeline of one device; events are in any order."""
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
    """Microseconds since 1970; None outside of what a timestamp can be."""
    value = base_ns // 1000 + int(ts)
    return value if _EARLIEST_US <= value < _LATEST_US else None
