"""Traces become columns, the same ones however they were pickled and cut, with one column entry per dict."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from sweepscope.pipeline.io.safe_pickle import PickleRefusedError
from sweepscope.pipeline.memory.snapshot.sink import decode_integers
from sweepscope.pipeline.memory.snapshot.snapshot import read_snapshot
from sweepscope.pipeline.memory.snapshot.trace import ACTIONS, NO_TIME, UNKNOWN
from tests.pipeline.memory.allocator import Allocator, stack, train


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


def dicts_of(data: bytes, *, size: int = 1 << 20) -> list[dict[str, Any]]:
    """The events of device 0 again as dicts, in the order of the columns."""
    snapshot = read_snapshot(cut(data, size))
    events = snapshot.devices[0].events
    return [
        {
            "action": "unknown" if events.action[at] == UNKNOWN else ACTIONS[events.action[at]],
            "addr": int(events.addr[at]),
            "size": int(events.size[at]),
            "stream": int(events.stream[at]),
            "time_us": int(events.time_us[at]),
            "frames": [vars(frame) for frame in snapshot.frames(int(events.stack[at]))],
            "label": snapshot.labels[events.label[at]],
        }
        for at in range(len(events))
    ]


def expected(trace: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "action": event["action"] if event["action"] in ACTIONS else "unknown",
            "addr": event.get("addr", event.get("device_free")),
            "size": event["size"],
            "stream": event["stream"],
            "time_us": event.get("time_us", NO_TIME),
            "frames": event.get("frames", []),
            "label": event.get("category") or event.get("user_metadata") or "",
        }
        for event in trace
    ]


def trained(**options: int) -> Allocator:
    allocator = Allocator()
    train(allocator, **options)
    return allocator


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_gives_the_same_columns(protocol: int) -> None:
    allocator = trained(layers=2)
    assert dicts_of(pickle.dumps(allocator.snapshot(), protocol)) == expected(allocator.trace)


@pytest.mark.parametrize("size", [7, 100, 4096, 65_536])
def test_blocks_of_any_size_give_the_same_columns(size: int) -> None:
    allocator = trained(layers=1)
    assert dicts_of(pickle.dumps(allocator.snapshot()), size=size) == expected(allocator.trace)


@pytest.mark.slow
def test_a_long_trace_in_many_batches_and_frames_of_the_pickler() -> None:
    allocator = trained(layers=8, steps=6)
    assert len(allocator.trace) > 2_500  # the pickler writes lists in batches of 1,000
    assert dicts_of(pickle.dumps(allocator.snapshot())) == expected(allocator.trace)


def test_keys_that_come_and_go_and_values_of_every_width() -> None:
    frames = stack("f", "g")
    trace: list[dict[str, Any]] = []
    for at in range(60):
        event: dict[str, Any] = {"action": "alloc", "addr": 1 << at, "size": at**5, "stream": 0x7F00 << at % 20}
        if at % 2:
            event |= {"time_us": 10**15 + at, "compile_context": f"{at % 3}/0", "user_metadata": "kv" * (at % 5 // 2)}
        if at % 3:
            event["frames"] = frames if at % 4 else list(frames)
        if at % 7 == 0:
            event = {"action": "snapshot", "addr": 0, "size": 5, "stream": 0, "frames": []}
        if at % 11 == 0:
            event = {"action": "oom", "device_free": 3, "size": 2**40, "stream": 0, "time_us": at, "frames": frames}
        if at % 13 == 0:
            event = {
                "frames": frames,
                "category": "PARAMETER",
                "size": 1,
                "addr": 2**64 - 1,
                "stream": 1,
                "action": "x",
            }
        trace.append(event)
    trace = [dict(event) for _ in range(40) for event in trace]
    assert dicts_of(pickle.dumps({"segments": [], "device_traces": [trace]}, 4)) == expected(trace)


def test_an_event_that_stands_twice_is_refused() -> None:
    trace = [{"action": "alloc", "addr": i, "size": 1, "stream": 0, "time_us": 1, "frames": []} for i in range(9)]
    with pytest.raises(PickleRefusedError, match=r"not there|not a dict"):
        read_snapshot([pickle.dumps({"segments": [], "device_traces": [[*trace, trace[5]]]})])


def test_a_pool_id_of_every_event_counts_in_the_memo() -> None:
    allocator = trained(layers=1)
    for at, event in enumerate(allocator.trace):
        frames = event.pop("frames")
        event |= {"pool_id": (0, at % 2), "frames": frames}
    assert dicts_of(pickle.dumps(allocator.snapshot())) == expected(allocator.trace)


def test_stacks_with_the_same_frames_are_one() -> None:
    frames = stack("f", "g")
    trace = [
        {"action": "alloc", "addr": at, "size": 1, "stream": 0, "time_us": at, "frames": list(frames)}
        for at in range(50)
    ]
    snapshot = read_snapshot([pickle.dumps({"segments": [], "device_traces": [trace]})])
    assert len(set(snapshot.devices[0].events.stack.tolist())) <= 2  # the first has its frames in full


def test_a_stack_of_over_a_thousand_frames() -> None:
    frames = stack(*(f"f{at}" for at in range(1_500)))
    trace = [
        {"action": "alloc", "addr": at, "size": 1, "stream": 0, "time_us": 1, "frames": list(frames)} for at in (1, 2)
    ]
    assert dicts_of(pickle.dumps({"segments": [], "device_traces": [trace]})) == expected(trace)


def test_unknown_actions_are_counted_by_name() -> None:
    trace = [{"action": "teleport", "addr": 1, "size": 1, "stream": 0}] * 1 + [
        {"action": "teleport", "addr": at, "size": 1, "stream": 0} for at in range(2)
    ]
    snapshot = read_snapshot([pickle.dumps({"segments": [], "device_traces": [trace]})])
    assert "teleport (3)" in snapshot.warnings[0]


@pytest.mark.parametrize(
    "change",
    [
        {"size": True},
        {"size": -1},
        {"size": float("nan")},
        {"size": "512"},
        {"size": 2**64},
        {"addr": -5},
        {"action": 3},
        {"stream": 2**70},
        {"time_us": 1.5},
    ],
)
@pytest.mark.parametrize("at", [0, 30])
def test_an_impossible_value_refuses_the_file_wherever_it_stands(change: dict[str, Any], at: int) -> None:
    trace = [{"action": "alloc", "addr": i, "size": 1, "stream": 0, "time_us": 1, "frames": []} for i in range(60)]
    trace[at] = trace[at] | change
    with pytest.raises(PickleRefusedError):
        read_snapshot([pickle.dumps({"segments": [], "device_traces": [trace]})])


def test_events_that_stand_in_two_places_are_refused() -> None:
    trace = [{"action": "alloc", "addr": 1, "size": 1, "stream": 0, "time_us": 1, "frames": []}]
    with pytest.raises(PickleRefusedError, match="several places"):
        read_snapshot([pickle.dumps({"segments": [], "device_traces": [trace, trace]})])


def test_integers_of_every_opcode() -> None:
    numbers = [0, 255, 256, 65_535, 65_536, 2**31 - 1, 2**31, 2**40, 2**55, 2**63 - 1, 2**63, 2**64 - 1]
    assert decode_integers([pickle.dumps(n, 2)[2:-1] for n in numbers]).tolist() == numbers
