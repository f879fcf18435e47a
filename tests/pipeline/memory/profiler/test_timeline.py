"""Memory timelines of the profiler and the memory events of its traces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sweepscope.pipeline.memory.profiler.kineto import read_trace
from sweepscope.pipeline.memory.profiler.timeline import is_timeline, read_timeline

T = 1_700_000_000_000_000  # microseconds


def columns(*levels: list[int]) -> bytes:
    return json.dumps([[T + 10 * at for at in range(len(levels))], [[0, *level] for level in levels]]).encode()


def test_levels_by_category() -> None:
    data = columns([10, 0, 0, 0, 0, 0, 0, 0], [10, 0, 0, 5, 100, 0, 0, 1], [10, 40, 0, 0, 0, 0, 0, 1])
    assert is_timeline(data)
    rows = read_timeline(data)
    (summary,) = rows["memory_snapshots"]
    assert (summary["peak_allocated_bytes"], summary["peak_after_events"], summary["peak_at"]) == (116, 2, T + 10)
    assert (summary["allocated_bytes"], summary["device"]) == (51, None)
    assert [(row["category"], row["bytes"]) for row in rows["memory_at_peak"]] == [
        ("activations", 100),
        ("parameters", 10),
        ("temporary", 5),
        ("unknown", 1),
    ]
    total = [row["allocated_bytes"] for row in rows["memory_timeline"] if row["category"] == "total"]
    assert total == [10, 116, 51]


def test_raw_events_add_up() -> None:
    raw = [
        [-1, 1, 1000, 0],
        [T * 1000, 2, 500, 4],
        [T * 1000 + 7000, 3, -1000, 0],
        [T * 1000 + 7000, 3, 1000, 0],
        [T * 1000 + 9000, 4, -500, 4],
    ]
    data = json.dumps(raw).encode()
    assert is_timeline(data)
    (summary,) = read_timeline(data)["memory_snapshots"]
    assert (summary["peak_allocated_bytes"], summary["allocated_bytes"]) == (1500, 1000)
    assert (summary["peak_at"], summary["recorded_until"]) == (T, T + 9)


def test_a_long_timeline_is_thinned_and_keeps_its_peak() -> None:
    raw = [[T * 1000 + at, 2, 1, 4] for at in range(9_000)] + [[T * 1000 + at, 4, -1, 4] for at in range(9_000, 18_000)]
    rows = read_timeline(json.dumps(raw).encode())["memory_timeline"]
    assert len(rows) < 2_500
    assert max(row["allocated_bytes"] for row in rows) == 9_000


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (columns([1] * 8)[:-5], "cut off"),
        (b"[[-1, 1, 5, 99]]", "category"),
        (b"[[-1, 1, 5, 0], [7]]", "four numbers"),
        (b"[[1700000000000000], [[0, 1, 2]]]", "nine sizes"),
        (b'[[-1, 1, 5, 0], ["x"]]', "numbers"),
        (b"[[-1, 1, 5.5, 0], [-1, 1, 5, 0]]", "whole numbers"),
        (b"[" * 100_000, "cut off"),
    ],
)
def test_other_shapes_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_timeline(data)


def event(ts: float | str, total: int, *, device: int = 0, reserved: int = 8_000, args_first: bool = False) -> str:
    args = (
        f'"args": {{ "Total Reserved": {reserved}, "Total Allocated": {total}, "Bytes": 5, "Device Id": {device}, '
        f'"Device Type": {int(device >= 0)}, "Addr": 94745856042752, "Ev Idx": 7 }}'
    )
    head = f'"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": {ts}\n'
    return "{" + (f"{args}, {head}" if args_first else f"{head}, {args}") + "}"


OP = '{"ph": "X", "name": "aten::mm", "ts": 1, "dur": 2, "args": {"Input Dims": [[1, 2]], "x": {"y": 1}}}'


def trace(*events: str, base: int | None = None) -> bytes:
    top = f'"baseTimeNanoseconds": {base},' if base is not None else ""
    return f'{{"schemaVersion": 1, {top} "traceEvents": [{", ".join(events)}]}}'.encode()


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("size", [64, 1000, 1 << 20])
def test_events_of_each_device_in_order_of_time(size: int) -> None:
    data = trace(
        OP,
        event(T + 3, 700),
        event(T + 1, 300, args_first=True),
        OP,
        event(T + 2, 900, device=1),
        event(T, 50, device=-1, reserved=0),
    )
    rows, odd = read_trace(cut(data, size))
    assert odd == 0
    snapshots: list[dict[str, Any]] = rows["memory_snapshots"]
    assert [(r["device"], r["events"], r["allocated_bytes"], r["peak_reserved_bytes"]) for r in snapshots] == [
        (-1, 1, 50, None),
        (0, 2, 700, 8_000),
        (1, 1, 900, 8_000),
    ]
    assert [row["allocated_bytes"] for row in rows["memory_timeline"]] == [50, 300, 700, 900]
    assert snapshots[1]["recorded_from"] == T + 1


def test_times_count_from_the_base_that_the_file_names() -> None:
    rows, _ = read_trace([trace(event("123.456", 5), base=T * 1000)])
    assert rows["memory_snapshots"][0]["peak_at"] == T + 123


def test_a_trace_that_is_cut_off_and_one_that_is_no_json() -> None:
    data = trace(event(T, 5), '{"name": "un"escaped"}', event(T + 1, 6), event(T + 2, 7))
    rows, odd = read_trace([data[:-60]])
    assert rows["memory_snapshots"][0]["events"] == 2
    assert odd == 1


def test_old_events_without_a_total_are_counted_as_unread() -> None:
    old = '{"ph": "i", "name": "[memory]", "ts": 5, "args": {"Device Type": 1, "Device Id": 0, "Bytes": 9}}'
    assert read_trace([trace(old)]) == ({"memory_snapshots": [], "memory_timeline": []}, 1)


@pytest.mark.parametrize("size", [64, 1 << 20])
def test_failed_allocations_of_a_trace(size: int) -> None:
    failed = event(T + 2, 700).replace("[memory]", "[OutOfMemory]").replace('"Bytes": 5', '"Bytes": 4096')
    rows, odd = read_trace(cut(trace(event(T, 300), event(T + 1, 700), failed, event(T + 3, 100, device=1)), size))
    first, other = rows["memory_snapshots"]
    assert odd == 0
    assert (first["oom_events"], other["oom_events"]) == (1, None)
    assert (first["events"], first["peak_allocated_bytes"]) == (3, 700)
