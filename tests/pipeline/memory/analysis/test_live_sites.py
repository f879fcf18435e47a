"""What was alive along the record: levels that add up, sites in words, and what bounds their number."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import pytest

from sweepscope.pipeline.memory.analysis import live_sites
from sweepscope.pipeline.memory.analysis.analyse import analyse
from tests.pipeline.memory.allocator import Allocator, train

MIB = 1 << 20
Row = dict[str, Any]


def analysed(allocator: Allocator, **snapshot: Any) -> dict[str, Any]:
    return analyse(iter([pickle.dumps(allocator.snapshot(**snapshot))]))


def levels(rows: dict[str, Any], point: int, column: str = "bytes") -> dict[int, int]:
    """Level of each site at a point, as a reader of the table finds it."""
    names = ("site_no", "point", column)
    table = zip(*(rows["memory_alive"][name] for name in names), strict=True)
    return {site: value for site, at, value in table if at <= point}


def frames(name: str) -> list[Row]:
    return [{"name": name, "filename": f"/run/{name}.py", "line": 7}]


def test_sites_add_up_to_the_level_at_every_instant() -> None:
    allocator = Allocator()
    train(allocator, layers=3, steps=2)
    rows = analysed(allocator)
    totals = {row["point"]: row["requested_active_bytes"] for row in rows["memory_timeline"]}
    instants = sorted(set(rows["memory_alive"]["point"]))
    assert len(instants) > 100
    for point in instants:
        assert sum(levels(rows, point).values()) == totals[point]
        assert levels(rows, point, "blocks").keys() == levels(rows, point).keys()


def test_the_peak_is_an_instant_and_its_sites_are_those_of_the_peak() -> None:
    allocator = Allocator()
    train(allocator, layers=3, steps=2)
    rows = analysed(allocator)
    peak = rows["memory_snapshots"][0]["peak_after_events"]
    assert peak in rows["memory_alive"]["point"]
    categories: dict[str, int] = {}
    names = {row["site_no"]: row["category"] for row in rows["memory_sites"]}
    for site, size in levels(rows, peak).items():
        categories[names[site]] = categories.get(names[site], 0) + size
    at_peak: dict[str, int] = {}
    for row in rows["memory_at_peak"]:
        at_peak[row["category"]] = at_peak.get(row["category"], 0) + row["bytes"]
    assert {name: size for name, size in categories.items() if size} == at_peak


def test_a_site_holds_its_level_until_the_next_row() -> None:
    allocator = Allocator()
    kept = allocator.alloc(4 * MIB, frames("kept"))
    for _ in range(3):
        allocator.free(allocator.alloc(2 * MIB, frames("passing")))
    allocator.free(kept)
    rows = analysed(allocator)
    by_frame = {row["frame"]: row for row in rows["memory_sites"]}
    site = by_frame["/run/kept.py:7 kept"]
    assert (site["site_no"], site["max_bytes"], site["allocations"]) == (1, 4 * MIB, 1)
    passing = by_frame["/run/passing.py:7 passing"]
    assert (passing["max_bytes"], passing["allocations"], passing["allocated_in_all_bytes"]) == (2 * MIB, 3, 6 * MIB)
    table = rows["memory_alive"]
    changes = [(b, n) for s, b, n in zip(table["site_no"], table["bytes"], table["blocks"], strict=True) if s == 1]
    assert changes == [(4 * MIB, 1), (0, 0)]


def test_blocks_from_before_the_record_are_alive_at_its_begin() -> None:
    allocator = Allocator()
    allocator.alloc(3 * MIB, frames("before"))
    begin = len(allocator.trace)
    allocator.alloc(MIB, frames("after"))
    rows = analysed(allocator, last_events=len(allocator.trace) - begin)
    sites = {row["frame"]: row for row in rows["memory_sites"]}
    assert sites["/run/before.py:7 before"]["mem_origin"] == "from_block"
    assert levels(rows, 0) == {sites["/run/before.py:7 before"]["site_no"]: 3 * MIB}


def test_instants_and_sites_are_bounded_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_sites, "MAX_SITES", 3)
    monkeypatch.setattr(live_sites, "MAX_INSTANTS", 20)
    allocator = Allocator()
    blocks = [allocator.alloc(size * MIB, frames(f"line{size}")) for size in range(1, 30)]
    for block in blocks:
        allocator.free(block)
    rows = analysed(allocator)
    assert len(set(rows["memory_alive"]["point"])) <= 24
    kept = [row for row in rows["memory_sites"] if row["frame"]]
    assert {row["frame"] for row in kept} == {f"/run/line{size}.py:7 line{size}" for size in (27, 28, 29)}
    (rest,) = (row for row in rows["memory_sites"] if not row["frame"])
    assert rest["rule"] == "smaller sites put together"
    assert sum(row["allocations"] for row in rows["memory_sites"]) == 29
    peak = rows["memory_snapshots"][0]["peak_after_events"]
    assert sum(levels(rows, peak).values()) == sum(range(1, 30)) * MIB


def test_a_record_without_events_has_its_blocks() -> None:
    allocator = Allocator()
    allocator.alloc(3 * MIB, frames("kept"))
    rows = analysed(allocator, last_events=0)
    assert [row["max_bytes"] for row in rows["memory_sites"]] == [3 * MIB]
    assert rows["memory_alive"]["point"] == [0]


def test_changes_of_a_site_differ_from_one_to_the_next() -> None:
    allocator = Allocator()
    train(allocator, layers=2, steps=2)
    table = analysed(allocator)["memory_alive"]
    rows = sorted(zip(table["site_no"], table["point"], table["bytes"], table["blocks"], strict=True))
    for (site, _, *before), (following, _, *after) in itertools.pairwise(rows):
        assert site != following or before != after


def test_blocks_of_the_sizes_of_gradients_are_parameters_here_as_well() -> None:
    allocator = Allocator()
    for _ in range(3):  # parameters and two states of an optimizer, from before the record
        for size in (2, 3, 4):
            allocator.alloc(size * MIB)
    before = len(allocator.trace)
    gradients = [{"name": "torch::autograd::AccumulateGrad::apply()", "filename": "??", "line": 0}]
    for size in (2, 3, 4):
        allocator.alloc(size * MIB, gradients)
    rows = analysed(allocator, last_events=len(allocator.trace) - before)
    held = {row["category"]: row["max_bytes"] for row in rows["memory_sites"]}
    assert held == {"parameters": 9 * MIB, "optimizer_state": 18 * MIB, "gradients": 9 * MIB}
    peak = rows["memory_snapshots"][0]["peak_after_events"]
    assert sum(levels(rows, peak).values()) == 36 * MIB
