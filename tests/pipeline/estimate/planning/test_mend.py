"""What mends a run out of memory: the smallest change that is expected to fit, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.planning.mend import EXPANDABLE, SPARE, Shortage, fails_with_expandable, mend
from sweepscope.pipeline.estimate.planning.planned_requests import choice_of, request_of
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.layout_table import layout_table, room_bytes
from sweepscope.pipeline.estimate.search.whatif import Choice, layouts_for
from tests.pipeline.estimate.planning.test_plan import request
from tests.pipeline.store.test_plan_status import planned_row


def accept(_row: dict[str, Any]) -> None:
    return None


def need(of: Request, choice: Choice) -> float:
    return float(layout_table(of, layouts_for(of, [choice]))["est_mem_reserved_bytes"][0])


def test_a_layout_that_only_lacks_what_lies_between_blocks_gets_another_allocator() -> None:
    of = request()
    found = mend(of, Choice(tp=4, mbs=4, zero_stage=1), accept)
    assert found is not None
    assert (found.change, found.cost, found.allocator_conf) == ("expandable segments", 0.0, EXPANDABLE)
    assert "GiB" in found.why


def test_expandable_segments_are_not_proposed_where_a_like_run_has_just_failed_with_them() -> None:
    of = request()
    found = mend(of, Choice(tp=4, mbs=4, zero_stage=1), accept, like_failed=True)
    assert found is not None
    assert found.change != "expandable segments"
    assert found.allocator_conf is None, "it ran without them, and they did not help"


def test_a_like_run_is_of_the_same_question_and_needs_no_more() -> None:
    planned = {"est_mem_bytes": 60 * 2**30, "precision": "bf16"}
    failed = planned_row(1, **planned, allocator_conf=None)
    tried = planned_row(2, **planned, allocator_conf=EXPANDABLE)
    assert fails_with_expandable(failed, [failed, tried])
    assert not fails_with_expandable(failed, [failed])
    assert not fails_with_expandable(failed, [{**tried, "est_mem_bytes": 70 * 2**30}]), "this one needs less"
    assert not fails_with_expandable(failed, [{**tried, "num_gpus": 2 * tried["num_gpus"]}])
    assert not fails_with_expandable(failed, [{**tried, "est_mem_bytes": None}])


@pytest.mark.parametrize("failed", [Choice(tp=4, mbs=4, zero_stage=1), Choice(tp=2, mbs=8), Choice(tp=2, pp=2, mbs=4)])
def test_the_change_is_on_the_same_mesh_and_is_expected_to_fit(failed: Choice) -> None:
    of = request()
    found = mend(of, failed, accept, has_expandable=True)
    assert found is not None
    changed = Choice.of(found.row)
    assert (changed.tp, changed.pp, changed.cp) == (failed.tp, failed.pp, failed.cp)
    assert changed != failed
    assert changed.mbs <= failed.mbs
    assert changed.zero_stage >= failed.zero_stage
    scale = max(room_bytes(of) / need(of, failed), 1.0)
    assert scale * need(of, changed) <= (1.0 - SPARE) * room_bytes(of) * (1 + 1e-9)
    assert found.allocator_conf == EXPANDABLE, "what it ran with stays"
    assert found.change


def test_of_changes_to_one_knob_the_cheapest_is_taken() -> None:
    of = request()
    found = mend(of, Choice(tp=4, mbs=4, zero_stage=1), accept, has_expandable=True)
    assert found is not None
    assert "," not in found.change, "one knob is enough"
    assert found.cost < 0.2


def test_without_anything_left_on_the_mesh_it_is_another_one() -> None:
    of = request()
    failed = Choice(tp=1, pp=1, mbs=1, zero_stage=3, recompute="full")
    found = mend(of, failed, accept, has_expandable=True)
    assert found is not None
    assert found.change.startswith("another mesh: ")


def test_nothing_is_advised_that_the_framework_refuses() -> None:
    of = request()

    def refuse(row: dict[str, Any]) -> str | None:
        return "no" if row["recompute"] != "none" or row["zero_stage"] > 1 else None

    found = mend(of, Choice(tp=4, mbs=4, zero_stage=1), refuse, has_expandable=True)
    assert found is not None
    assert found.change == "micro-batch 4 to 2"
    assert mend(of, Choice(tp=4, mbs=4, zero_stage=1), lambda _row: "never", has_expandable=True) is None


def test_a_planned_run_is_its_question_and_its_layout_again() -> None:
    of = request(max_cp=None)
    row = {
        "planned_run_id": "plan-0a1b2c-001",
        "accelerator": "H100-SXM-80GB",
        "gpus_per_node": 8,
        "framework": "nanotron",
        "num_gpus": 16,
        "gbs": 256,
        "seq_len": 4096,
        "precision": None,
        **{name: value for name, value in vars(of.asked.shape).items() if not name.startswith("shared")},
        **vars(Choice(tp=2, mbs=4, zero_stage=1)),
    }
    assert request_of(row, choose_profile) == of
    assert choice_of(row) == Choice(tp=2, mbs=4, zero_stage=1)
    with pytest.raises(InputError, match="planned for B9000, which is unknown"):
        request_of({**row, "accelerator": "B9000"}, choose_profile)


def shortage(of: Request, **changes: int) -> Shortage:
    """A line that says: all is allocated, and two gibibytes more were asked for."""
    figures = {"requested": 2 << 30, "free": 1 << 30, "allocated": int(room_bytes(of)), "reserved": int(room_bytes(of))}
    return Shortage(**figures | changes)


def test_another_allocator_is_advised_where_the_line_shows_room_between_blocks() -> None:
    of = request()
    failed = Choice(tp=4, mbs=4, zero_stage=1)
    full = mend(of, failed, accept, shortage=shortage(of))
    assert full is not None
    assert full.change != "expandable segments", "nothing lies between blocks"
    gaps = mend(of, failed, accept, shortage=shortage(of, allocated=int(room_bytes(of)) - (4 << 30)))
    assert gaps is not None
    assert gaps.change == "expandable segments"
    assert "It asked for 2.00 GiB with 1.00 GiB left on the device and 4.00 GiB free between blocks" in gaps.why


def test_what_the_line_says_was_needed_is_what_the_estimate_is_scaled_to() -> None:
    of = request()
    failed = Choice(tp=4, mbs=4, zero_stage=1)
    asked = shortage(of, requested=20 << 30)
    found = mend(of, failed, accept, shortage=asked)
    assert found is not None
    table = layout_table(of, layouts_for(of, [failed]))
    scale = asked.need / table["est_mem_bytes"][0]
    assert scale * need(of, Choice.of(found.row)) <= (1.0 - SPARE) * room_bytes(of) * (1 + 1e-9)
    assert "What ran out asked for 20.00 GiB" in found.why


def test_memory_that_others_hold_on_the_device_is_no_room() -> None:
    of = request()
    failed = Choice(tp=4, mbs=4, zero_stage=1)
    half = int(room_bytes(of)) // 2
    found = mend(of, failed, accept, shortage=shortage(of, allocated=half, reserved=half, free=0))
    assert found is not None
    assert need(of, Choice.of(found.row)) <= half
