"""Rows of a snapshot: parts add up, peaks survive thinning, phases are named, limits of the worker hold."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.memory.analysis.analyse import analyse
from sweepscope.pipeline.memory.analysis.downsample import kept_points
from sweepscope.pipeline.memory.analysis.phases import Phases
from sweepscope.pipeline.memory.isolation import SnapshotLimits, analyse_limited
from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError
from sweepscope.pipeline.memory.snapshot.snapshot import Annotation
from tests.pipeline.memory.allocator import MIB, Allocator, OutOfMemory, stack, train


def trained(**options: int) -> Allocator:
    allocator = Allocator()
    train(allocator, **options)
    return allocator


def rows_of(snapshot: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    return analyse([pickle.dumps(snapshot)])


def by_category(rows: dict[str, list[dict[str, Any]]]) -> dict[str, int]:
    bytes_of: dict[str, int] = {}
    for row in rows["memory_at_peak"]:
        bytes_of[row["category"]] = bytes_of.get(row["category"], 0) + row["bytes"]
    return bytes_of


def test_what_lived_at_the_peak_adds_up_to_it_and_is_what_the_driver_made() -> None:
    allocator = trained(layers=4, hidden=256, tokens=512, steps=2)
    rows = rows_of(allocator.snapshot())
    (summary,) = rows["memory_snapshots"]
    peak = max(level.active for level in allocator.levels)
    assert summary["peak_requested_active_bytes"] == peak
    by_category_bytes = by_category(rows)
    assert sum(by_category_bytes.values()) == peak
    matrix = 256 * 256
    assert by_category_bytes["parameters"] == by_category_bytes["gradients"] == 48 * 2 * matrix
    assert by_category_bytes["optimizer_state"] == 96 * 4 * matrix


def test_a_bare_list_of_segments_as_json_and_no_traces_at_all() -> None:
    snapshot = trained(layers=1).snapshot()
    (whole,) = rows_of({**snapshot, "device_traces": None})["memory_snapshots"]
    bare = analyse([json.dumps(snapshot["segments"], indent=1, sort_keys=True).encode()])
    assert bare["memory_snapshots"] == [{**whole, "allocator_settings": None}]


def test_stacks_of_a_snapshot_as_json_are_those_of_the_pickle() -> None:
    snapshot = trained(layers=2).snapshot()
    tables = analyse([json.dumps(snapshot).encode()])
    assert tables == rows_of(snapshot)


def test_a_snapshot_made_from_a_profile_knows_no_segments() -> None:
    """The shape of torch.cuda._memory_viz._profile_to_snapshot: one segment over all addresses, the CPU last."""
    frames = [{"filename": "none", "line": 0, "name": "/run/model.py(12): forward"}]
    made = {"action": "alloc", "addr": 8_192, "size": 100, "stream": 0, "frames": frames, "category": "parameter"}
    gone = {"addr": 1 << 40, "size": 300, "stream": 0, "frames": []}
    events = [
        made,
        {**gone, "action": "alloc", "category": "activation"},
        {**gone, "action": "free_requested"},
        {**gone, "action": "free_completed"},
    ]
    blocks = [
        {"size": 100, "state": "active_allocated", "requested_size": 100, "frames": frames},
        {"size": 1 << 40, "state": "inactive"},
    ]
    segment = {"address": 8_192, "total_size": 100 + (1 << 40), "stream": 0, "blocks": blocks}
    for device, number in ((0, 0), (1, -1)):
        snapshot = {"device_traces": [[], []], "segments": [{"device": device, **segment}]}
        snapshot["device_traces"][device] = events  # type: ignore[index]  # a dict of anything
        rows = rows_of(snapshot)
        (row,) = rows["memory_snapshots"]
        assert (row["device"], row["allocated_bytes"], row["peak_requested_active_bytes"]) == (number, 100, 400)
        assert (row["reserved_bytes"], row["peak_reserved_bytes"], row["fragmentation"]) == (None, None, None)
        assert row["peak_is_lower_bound"] is False
        assert "made from a profile" in row["warnings"]
        assert {point["reserved_bytes"] for point in rows["memory_timeline"]} == {None}
        assert {part["frame"] for part in rows["memory_at_peak"]} == {"/run/model.py:12 forward", None}


def test_gradients_name_the_parameters_also_where_none_is_alive_at_the_peak() -> None:
    """With gradients set to None between steps, the peak is at the end of a forward pass."""
    allocator = Allocator()
    sizes = (2 * MIB, 2 * MIB, 3 * MIB)
    for size in (*sizes, *sizes, *sizes):  # parameters, and two states of each, from before the record
        allocator.alloc(size)
    begun = len(allocator.trace)
    for _ in range(2):
        activations = [allocator.alloc(30 * MIB, stack("forward", "_call_impl")) for _ in range(2)]
        gradients = []
        for size, activation in zip(sizes, [*activations, None], strict=True):
            if activation:
                allocator.free(activation, stack("MulBackward0::apply", "autograd::Engine"))
            gradients.append(allocator.alloc(size, stack("torch::autograd::AccumulateGrad::apply")))
        for gradient in gradients:
            allocator.free(gradient, stack("zero_grad"))
    rows = rows_of(allocator.snapshot(last_events=len(allocator.trace) - begun))
    by_category_bytes = by_category(rows)
    assert by_category_bytes == {"activations": 60 * MIB, "parameters": 7 * MIB, "optimizer_state": 14 * MIB}
    sites = {row["category"]: row["max_bytes"] for row in rows["memory_sites"]}
    assert (sites["parameters"], sites["optimizer_state"]) == (7 * MIB, 14 * MIB)


def test_pages_given_back_before_a_failure_are_counted() -> None:
    made = {"addr": 8_192, "size": 100, "stream": 0, "frames": []}
    events = [
        {**made, "action": "segment_unmap", "size": 20 * MIB},
        {**made, "action": "segment_free", "size": 20 * MIB},
        {"action": "oom", "device_free": 5, "size": 100, "stream": 0, "frames": []},
    ]
    (row,) = rows_of({"segments": [], "device_traces": [events]})["memory_snapshots"]
    assert (row["oom_events"], row["oom_segments_freed"], row["oom_device_free_bytes"]) == (1, 2, 5)


def test_parts_of_fragmentation_add_up() -> None:
    allocator = trained(layers=2)
    (row,) = rows_of(allocator.snapshot())["memory_snapshots"]
    assert row["fragmentation"] == pytest.approx(row["fragmentation_releasable"] + row["fragmentation_split"])
    assert row["reserved_bytes"] == row["active_bytes"] + row["releasable_bytes"] + row["inactive_split_bytes"]
    assert row["rounding_bytes"] == row["active_bytes"] - row["requested_bytes"]


def test_blocks_from_before_the_record_are_known_by_their_sizes() -> None:
    allocator = Allocator()
    sizes = [2 * MIB, 3 * MIB, 4 * MIB]
    for _ in range(3):  # parameters and two states of an optimizer
        for size in sizes:
            allocator.alloc(size)
    before = len(allocator.trace)
    accumulate = [{"name": "torch::autograd::AccumulateGrad::apply()", "filename": "??", "line": 0}]
    for size in sizes:
        allocator.alloc(size, accumulate)
    rows = rows_of(allocator.snapshot(last_events=len(allocator.trace) - before))
    whole = sum(sizes)
    assert by_category(rows) == {"gradients": whole, "parameters": whole, "optimizer_state": 2 * whole}
    assert rows["memory_snapshots"][0]["peak_is_lower_bound"]


def test_a_failed_allocation_is_told_with_its_circumstances() -> None:
    allocator = Allocator(capacity=64 * MIB)
    block = allocator.alloc(22 * MIB)
    allocator.alloc(22 * MIB)
    allocator.free(block)
    with pytest.raises(OutOfMemory):
        allocator.alloc(60 * MIB, stack("forward"))
    (row,) = rows_of(allocator.snapshot())["memory_snapshots"]
    assert {name: row[name] for name in row if name.startswith("oom_")} == {
        "oom_events": 1,
        "oom_requested_bytes": 60 * MIB,
        "oom_device_free_bytes": 42 * MIB,
        "oom_requested_active_bytes": 22 * MIB,
        "oom_reserved_bytes": 22 * MIB,
        "oom_inactive_bytes": 0,
        "oom_segments_freed": 1,
    }


@pytest.mark.parametrize("goes_on", [False, True])
def test_what_was_free_inside_the_segments_at_the_failure(*, goes_on: bool) -> None:
    allocator = Allocator(capacity=64 * MIB)
    held = [allocator.alloc(3 * MIB) for _ in range(18)]  # three segments of 20 MiB, 6 blocks of 3 MiB in each
    for block in held[::2]:
        allocator.free(block)
    with pytest.raises(OutOfMemory):
        allocator.alloc(12 * MIB)
    if goes_on:
        for block in held[1::2]:  # the program unwinds
            allocator.free(block)
    (row,) = rows_of(allocator.snapshot())["memory_snapshots"]
    assert row["oom_reserved_bytes"] == 60 * MIB
    assert row["oom_inactive_bytes"] == 33 * MIB  # 27 in 9 holes, 2 at the end of each segment


def test_settings_that_differ_from_the_default_are_told() -> None:
    snapshot = trained(layers=1).snapshot()
    assert rows_of(snapshot)["memory_snapshots"][0]["allocator_settings"] is None
    settings = {
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "max_split_size": 2**64 - 1,
        "garbage_collection_threshold": 0.8,
    }
    row = rows_of(snapshot | {"allocator_settings": settings})["memory_snapshots"][0]
    assert row["allocator_settings"] == "expandable_segments:True,garbage_collection_threshold:0.8"


def test_phases_name_the_innermost_range() -> None:
    def at(time: int, name: str, *, start: bool) -> Annotation:
        return Annotation(time, start, name, 0)

    phases = Phases(
        [
            at(15, "step", start=True),
            at(25, "Optimizer.step#AdamW.step", start=True),
            at(35, "Optimizer.step#AdamW.step", start=False),
            at(45, "step", start=False),
            at(20, "compile (dynamo_timed)", start=True),
            at(48, "open", start=True),
            at(12, "shut", start=False),
        ],
        0,
        np.array([10, 20, 30, 40, 50], np.int64),
    )
    assert [phases.at(point) for point in range(6)] == [
        None,
        "shut",
        "step",
        "Optimizer.step#AdamW.step",
        "step",
        "open",
    ]
    assert phases.optimizer_ends(np.array([3, 2, 1, -1])).tolist() == [-1, 3, -1, -1]


def test_events_of_the_user_are_annotations_as_well() -> None:
    def mark(name: str, time_us: int) -> dict[str, Any]:
        frames = [{"name": name, "filename": "## forward ##", "line": 0}]
        return {"action": "user_defined", "addr": 0, "size": 0, "stream": 0, "time_us": time_us, "frames": frames}

    allocator = Allocator()
    allocator.free(allocator.alloc(3 * MIB))
    snapshot = allocator.snapshot()
    first, last = allocator.trace[0]["time_us"], allocator.trace[-1]["time_us"]
    snapshot["device_traces"] = [[mark("START", first - 1), *allocator.trace, mark("END", last + 1)]]
    (row,) = rows_of(snapshot)["memory_snapshots"]
    assert (row["peak_phase"], row["events"], row["violations"]) == ("## forward ##", 6, 0)


def test_annotations_of_another_device_name_nothing() -> None:
    assert Phases([Annotation(5, True, "step", 1)], 0, np.array([6], np.int64)).at(1) is None


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=3_000), st.integers(20, 200))
def test_thinning_keeps_every_peak(values: list[int], limit: int) -> None:
    curve = np.cumsum(np.array(values, np.int64))
    other = -curve
    kept = kept_points(curve, other, limit=limit)
    assert list(kept) == sorted(set(kept.tolist()))
    assert len(kept) <= max(limit, 0) + 8 or len(kept) == len(curve) <= limit
    for each in (curve, other):
        assert each[kept].max() == each.max()
        assert each[kept].min() == each.min()
        assert int(each.argmax()) in kept
    assert {0, len(curve) - 1} <= set(kept.tolist())


def test_the_worker_says_the_same_as_the_function() -> None:
    data = pickle.dumps(trained(layers=2).snapshot())
    assert analyse_limited([data[:100], data[100:]]) == analyse([data])


def test_a_refusal_comes_back_and_the_rest_of_the_file_is_read() -> None:
    read = []

    def chunks() -> Any:
        for chunk in (b"\x80\x04cos\nsystem\n.", *[b"\0" * (1 << 20)] * 5):
            read.append(len(chunk))
            yield chunk

    with pytest.raises(RefusedError, match="GLOBAL"):
        analyse_limited(chunks())
    assert len(read) == 6


def test_a_snapshot_beyond_the_memory_limit_is_refused_with_that_reason() -> None:
    data = b"\x80\x04](" + (b"}" * 1_000 + b"e(") * 12_000 + b"e."
    with pytest.raises(RefusedError, match="GiB"):
        analyse_limited([data], SnapshotLimits(memory_bytes=600 << 20))


@pytest.mark.slow
def test_a_snapshot_beyond_the_time_limit_is_refused_with_that_reason() -> None:
    def endless() -> Any:
        yield b"\x80\x04]("
        for _ in range(2_000):
            yield (b"\x95" + b"\0" * 8) * 7_000  # empty frames: nothing to keep

    with pytest.raises(RefusedError, match="more than 1 s"):
        analyse_limited(endless(), SnapshotLimits(cpu_s=1))
    with pytest.raises(RefusedError, match=r"takes more than 0\.5 s"):
        analyse_limited(endless(), SnapshotLimits(wall_s=0.5))


@pytest.mark.parametrize("text", ["many", "-1", "0", "nan"])
def test_a_limit_that_is_no_number_is_a_usage_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPSCOPE_SNAPSHOT_MEMORY_GIB", text)
    with pytest.raises(UsageError, match="SWEEPSCOPE_SNAPSHOT_MEMORY_GIB"):
        SnapshotLimits.from_environment()


def test_limits_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPSCOPE_SNAPSHOT_MEMORY_GIB", "0.5")
    monkeypatch.setenv("SWEEPSCOPE_SNAPSHOT_SECONDS", "10")
    limits = SnapshotLimits.from_environment()
    assert (limits.memory_bytes, limits.wall_s) == (1 << 29, 20.0)
