"""A replay of what the allocator dumped gives the allocator's own counters back, whatever part of the trace is left."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.io.safe_pickle import PickleRefusedError
from sweepscope.pipeline.memory.analysis.lifetimes import NO_RECORD, RECORDED
from sweepscope.pipeline.memory.analysis.replay import Replay, replay
from sweepscope.pipeline.memory.snapshot.snapshot import read_snapshot
from tests.pipeline.memory.allocator import MIB, Allocator, Block, OutOfMemory, merged, stack, train

SIZES = st.sampled_from([1, 511, 513, 70_000, MIB, MIB + 1, 3 * MIB, 11 * MIB, 40 * MIB])
# Allocate (size, stream), or free the n-th live block (at once, or while another stream uses it), or wait for streams.
STEPS = st.one_of(
    st.tuples(st.just("alloc"), SIZES, st.integers(0, 1)),
    st.tuples(st.just("free"), st.integers(0, 50), st.integers(0, 1)),
    st.tuples(st.just("settle"), st.just(0), st.just(0)),
)


def replayed(snapshot: dict[str, Any], device: int = 0) -> Replay:
    return replay(read_snapshot([pickle.dumps(snapshot)]).devices[device])


def driven(steps: list[tuple[str, int, int]], *, capacity: int = 100 * MIB) -> Allocator:
    allocator = Allocator(capacity=capacity)
    live: list[Block] = []
    for what, number, other in steps:
        if what == "alloc":
            try:
                live.append(allocator.alloc(number, stack("f"), stream=7 * other))
            except OutOfMemory:
                continue
        elif what == "free" and live:
            allocator.free(live.pop(number % len(live)), is_used_elsewhere=bool(other))
        else:
            allocator.settle()
    return allocator


def trained() -> Allocator:
    allocator = Allocator()
    train(allocator, layers=2)
    return allocator


@given(st.lists(STEPS, max_size=60), st.integers(0, 200))
def test_levels_are_the_allocators_own_in_every_window(steps: list[tuple[str, int, int]], window: int) -> None:
    allocator = driven(steps)
    window = min(window, len(allocator.trace))
    snapshot = allocator.snapshot(last_events=window)
    if not (snapshot["segments"] or window):
        return
    result = replayed(snapshot)
    assert not result.violations
    if result.notes:  # a window with completed frees only cannot tell what was requested when
        return
    truth = allocator.levels[len(allocator.levels) - window - 1 :]
    assert result.active.tolist() == [level.active for level in truth]
    assert result.allocated.tolist() == [level.allocated for level in truth]
    assert result.reserved.tolist() == [level.reserved for level in truth]
    assert result.is_cut == (window == 0 or truth[0].active > 0 or truth[0].reserved > 0)


@given(st.lists(STEPS, max_size=60), st.integers(1, 200), st.integers(0, 200))
def test_live_blocks_add_up_to_the_level_at_every_moment(
    steps: list[tuple[str, int, int]], window: int, moment: int
) -> None:
    allocator = driven(steps)
    window = min(window, len(allocator.trace))
    if not window:
        return
    result = replayed(allocator.snapshot(last_events=window))
    moment = min(moment, window)
    assert int(result.lifetimes.size[result.lifetimes.at(moment)].sum()) == result.active[moment]


def test_a_peak_before_the_window_is_a_lower_bound() -> None:
    allocator = trained()
    peak = max(level.active for level in allocator.levels)
    whole = replayed(allocator.snapshot())
    cut = replayed(allocator.snapshot(last_events=20))
    assert (int(whole.active.max()), whole.is_cut) == (peak, False)
    assert int(cut.active.max()) < peak
    assert cut.is_cut


def test_without_events_the_state_is_all_there_is() -> None:
    allocator = trained()
    result = replayed({"segments": allocator.snapshot()["segments"]})
    assert result.active.tolist() == [allocator.levels[-1].active]
    assert result.is_cut
    assert set(result.lifetimes.origin.tolist()) == {1}  # the blocks keep their stacks


def test_blocks_without_a_stack_from_before_the_record() -> None:
    allocator = Allocator()
    allocator.alloc(1000)
    allocator.alloc(2000, stack("f"))
    result = replayed(allocator.snapshot(last_events=1))
    assert sorted(zip(result.lifetimes.size.tolist(), result.lifetimes.origin.tolist(), strict=True)) == [
        (1000, NO_RECORD),
        (2000, RECORDED),
    ]


def test_two_devices_are_replayed_apart() -> None:
    first, second = Allocator(), Allocator(device=1, base=0x7F80_0000_0000)
    first.alloc(5 * MIB)
    second.alloc(7)
    both = merged([first.snapshot(), second.snapshot()])
    assert replayed(both, 0).active.max() == 5 * MIB
    assert replayed(both, 1).active.max() == 7


@pytest.mark.parametrize(
    ("missing", "stands_in"), [("free_requested", "free_completed"), ("free_completed", "free_requested")]
)
def test_events_that_were_not_recorded_on_purpose(missing: str, stands_in: str) -> None:
    allocator = trained()
    snapshot = allocator.snapshot()
    snapshot["device_traces"][0] = [event for event in allocator.trace if event["action"] != missing]
    result = replayed(snapshot)
    assert not result.violations
    assert result.notes == [f"no {missing} events were recorded; {stands_in} stands for both"]
    assert result.active.max() == result.allocated.max() == max(level.active for level in allocator.levels)


def test_pending_frees_at_the_end_are_no_missing_events() -> None:
    allocator = Allocator()
    blocks = [allocator.alloc(1000) for _ in range(3)]
    for block in blocks:
        allocator.free(block, is_used_elsewhere=True)
    result = replayed(allocator.snapshot())
    assert not result.notes
    assert (result.active[-1], result.allocated[-1]) == (3000, 0)


def event(action: str, addr: int, size: int, time_us: int = 1) -> dict[str, Any]:
    return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time_us, "frames": []}


def with_trace(*trace: dict[str, Any]) -> dict[str, Any]:
    """One segment of 2 MiB at 4096 whose first block of 512 bytes is in use, behind these events."""
    blocks = [
        {"address": 4096, "size": 512, "requested_size": 500, "state": "active_allocated", "frames": []},
        {"address": 4608, "size": 2 * MIB - 512, "requested_size": 7, "state": "inactive", "frames": []},
    ]
    segment = {"device": 0, "address": 4096, "total_size": 2 * MIB, "stream": 0, "blocks": blocks}
    return {"segments": [segment], "device_traces": [list(trace)]}


@pytest.mark.parametrize(
    ("trace", "violations"),
    [
        ([event("alloc", 4096, 500)], {}),
        ([event("alloc", 8192, 500)], {"addresses that do not match": 1}),
        ([event("alloc", 2**63 + 8, 500)], {"addresses that do not match": 1}),
        ([event("alloc", 4096, 400)], {"sizes that do not match": 1}),
        (
            [event("free_completed", 4096, 9), event("free_completed", 4096, 9), event("alloc", 4096, 500)],
            {"addresses that do not match": 1},
        ),
        ([event("free_completed", 4096, 3 * MIB), event("alloc", 4096, 500)], {"active above reserved": 1}),
        (
            [event("alloc", 8192, 7 * MIB), event("free_completed", 8192, MIB), event("alloc", 4096, 500)],
            {"sizes that do not match": 1, "negative levels": 2},
        ),
        ([event("alloc", 4096, 500, 5), event("snapshot", 0, 0, 4)], {"times going backwards": 1}),
        ([event("alloc", 4096, 500), event("free_requested", 4096, 500)], {"addresses that do not match": 1}),
    ],
)
def test_what_contradicts_itself_is_counted(trace: list[dict[str, Any]], violations: dict[str, int]) -> None:
    assert replayed(with_trace(*trace)).violations == violations


def test_an_address_that_is_allocated_twice_refuses_the_file() -> None:
    with pytest.raises(PickleRefusedError, match="allocated twice"):
        replayed(with_trace(event("alloc", 4096, 500), event("alloc", 4096, 500)))


def test_sizes_that_overflow_refuse_the_file() -> None:
    with pytest.raises(PickleRefusedError, match="add up"):
        replayed(with_trace(*(event("alloc", 8192 + i, 2**62) for i in range(9))))
