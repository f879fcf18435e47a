"""Snapshots that were tampered with either load or are refused: nothing runs, nothing crashes, no limit is passed.

`SWEEPSCOPE_FUZZ_ROUNDS=200000 pytest tests/pipeline/memory/test_hostile.py` for longer runs by hand.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import resource
import time
from collections.abc import Callable
from typing import Any

import pytest

from sweepscope.pipeline.memory.analysis.analyse import analyse
from sweepscope.pipeline.memory.isolation import SnapshotLimits, analyse_limited
from sweepscope.pipeline.memory.snapshot.checked_values import RefusedError
from tests.pipeline.memory.allocator import Allocator, train

ROUNDS = int(os.environ.get("SWEEPSCOPE_FUZZ_ROUNDS", "400"))
_OPCODES = b"}](eustaKMJGXhjqrNR.0bc\x81\x82\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d\x93\x94\x95\x96\x97"


def small(protocol: int) -> bytes:
    allocator = Allocator()
    train(allocator, layers=1, hidden=64, tokens=64, steps=1)
    return pickle.dumps(allocator.snapshot(), protocol)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """One to four changes of the kinds that break parsers: bytes, opcodes, lengths, cuts, repeats, shuffles."""
    for _ in range(rng.randint(1, 4)):
        at, size = rng.randrange(2, len(data)), rng.choice([1, 2, 5, 9, 40, 300])
        there = data[at : at + size]
        data = rng.choice(
            [
                lambda d, a=at: d[:a] + bytes([rng.randrange(256)]) + d[a + 1 :],
                lambda d, a=at: d[:a] + bytes([rng.choice(_OPCODES)]) + d[a:],
                lambda d, a=at, s=size: d[:a] + b"\xff" * s + d[a + s :],
                lambda d, a=at, s=size: d[:a] + d[a + s :],
                lambda d, a=at, t=there: d[:a] + t * rng.choice([2, 3, 200]) + d[a:],
                lambda d, a=at, t=there: d[:a] + d[a + len(t) :] + t,
                lambda d, a=at: d[:a],
                lambda d, a=at, s=size: d[:a] + d[a : a + s].replace(b"K", b"J").replace(b"h", b"j") + d[a + s :],
            ]
        )(data)
        if len(data) < 3:
            break
    return data


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_mutations_either_load_or_are_refused(protocol: int) -> None:
    rng = random.Random(protocol)  # noqa: S311 - mutations, not secrets
    original = small(protocol)
    outcomes = {"loaded": 0, "refused": 0}
    for _ in range(ROUNDS):
        data = mutated(original, rng)
        begin = time.process_time()
        try:
            rows = analyse([data[at : at + 5_000] for at in range(0, len(data), 5_000)])
            outcomes["loaded"] += 1
            for row in rows["memory_snapshots"]:
                assert row["peak_requested_active_bytes"] < 1 << 63
        except RefusedError:
            outcomes["refused"] += 1
        assert time.process_time() - begin < 20
    assert outcomes["refused"] > ROUNDS / 10
    assert outcomes["loaded"] > 0


def test_mutations_in_the_worker_leave_the_parent_alone() -> None:
    rng = random.Random(11)  # noqa: S311 - mutations, not secrets
    original = small(4)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(max(ROUNDS // 80, 3)):
        with contextlib.suppress(RefusedError):
            analyse_limited([mutated(original, rng)], SnapshotLimits(memory_bytes=1 << 30, cpu_s=20, wall_s=120))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def segment(**changes: Any) -> dict[str, Any]:
    block = {"address": 4096, "size": 512, "requested_size": 512, "state": "active_allocated", "frames": []}
    rest = {"address": 4608, "size": 1536, "requested_size": 0, "state": "inactive", "frames": []}
    return {"device": 0, "address": 4096, "total_size": 2048, "stream": 0, "blocks": [block, rest]} | changes


def shared_blocks() -> object:
    """Many segments that all hold one long list of blocks without addresses: quadratic to walk."""
    blocks = [{"size": 1, "state": "inactive"}] * 3_000
    return [segment(address=1 << 20 | at * 3_000, total_size=3_000, blocks=blocks) for at in range(2_000)]


IMPOSSIBLE: dict[str, Callable[[], object]] = {
    "blocks that leave their segment": lambda: [segment(total_size=1024)],
    "blocks that do not fill it": lambda: [segment(total_size=4096)],
    "segments that overlap": lambda: [segment(), segment()],
    "a block in no known state": lambda: [segment(blocks=[{"size": 2048, "state": "gone"}])],
    "a block without a size": lambda: [segment(blocks=[{"state": "inactive"}])],
    "a device out of range": lambda: [segment(device=10**6)],
    "blocks as text": lambda: [segment(blocks="x" * 100)],
    "traces as a dict": lambda: {"segments": [], "device_traces": {"0": []}},
    "a trace of numbers": lambda: {"segments": [], "device_traces": [[1, 2]]},
    "ten thousand devices": lambda: {"segments": [], "device_traces": [[] for _ in range(10_000)]},
    "one list of blocks a thousand times": shared_blocks,
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_no_allocator_writes_is_refused_soon(what: str) -> None:
    begin = time.process_time()
    with pytest.raises(RefusedError):
        analyse([pickle.dumps(IMPOSSIBLE[what]())])
    assert time.process_time() - begin < 20


def test_text_of_frames_is_kept_harmless() -> None:
    frame = {"name": "<script>\x1b[31m\x00\ud800", "filename": "=cmd|'/c calc'!A1.py", "line": -7}
    block = {"address": 4096, "size": 2048, "requested_size": 9, "state": "active_allocated", "frames": [frame]}
    (row,) = analyse([pickle.dumps([segment(blocks=[block])])])["memory_at_peak"]
    assert row["frame"] == "=cmd|'/c calc'!A1.py <script> [31m \ufffd"
    assert row["stack"].isprintable()


def test_a_list_of_segments_is_a_snapshot_and_so_is_a_state_of_its_own_release() -> None:
    user = {"addr": 4096, "real_size": 2000, "frames": [{"name": "f", "filename": "a.py", "line": 1}]}
    old = [{"size": 2048, "state": "active_allocated", "history": [user]}]
    rows = analyse([pickle.dumps([segment(blocks=old)])])
    (summary,) = rows["memory_snapshots"]
    assert (summary["requested_bytes"], summary["allocated_bytes"], summary["events"]) == (2000, 2048, 0)
    assert rows["memory_at_peak"][0]["frame"] == "a.py:1 f"
