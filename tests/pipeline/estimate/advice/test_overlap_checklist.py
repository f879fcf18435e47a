"""The overlap checklist: what holds, what does not, what a layout does not need, and what nobody said."""

from __future__ import annotations

from typing import Any

import pytest

from sweepscope.pipeline.estimate.advice.overlap_checklist import checklist
from sweepscope.pipeline.reference.accelerators import SIXTEEN_BIT

RUN: dict[str, Any] = {
    "dp": 8,
    "cp": 1,
    "pp": 4,
    "gas": 16,
    "recompute": "full",
    "precision": "bf16",
    "status": "completed",
    "bucket_mb": 25.0,
    "data_workers": 2,
}
GIB = 2**30


def states(**changes: Any) -> list[str]:
    return [item.state for item in checklist({**RUN, **changes})]


def test_all_may_hold() -> None:
    assert states() == ["holds"] * 5


def test_a_run_that_says_nothing_states_nothing() -> None:
    assert [item.state for item in checklist({})] == ["not_stated"] * 5
    assert all(item.reason for item in checklist({}))


@pytest.mark.parametrize(
    ("place", "changes", "state"),
    [
        (0, {"dp": 1}, "not_needed"),
        (0, {"dp": 1, "cp": 2}, "holds"),
        (0, {"bucket_mb": 0.0}, "open"),
        (1, {"data_workers": 0}, "open"),
        (2, {"pp": 1}, "not_needed"),
        (2, {"gas": 7}, "open"),
        (2, {"gas": 64}, "holds"),
        (2, {"gas": None}, "not_stated"),
        (3, {"recompute": "none", "status": "oom"}, "open"),
        (3, {"recompute": "none", "mem_peak_reserved_bytes": 30 * GIB, "memory_bytes": 80 * GIB}, "not_needed"),
        (3, {"recompute": "none", "mem_peak_reserved_bytes": 78 * GIB, "memory_bytes": 80 * GIB}, "open"),
        (3, {"recompute": "none"}, "not_stated"),
        (3, {"recompute": "none", "est_fits": True}, "not_needed"),
        (3, {"recompute": "none", "est_fits": False}, "open"),
        (4, {"precision": "fp32"}, "open"),
        (4, {"precision": "fp8"}, "holds"),
    ],
)
def test_each_item_by_its_facts(place: int, changes: dict[str, Any], state: str) -> None:
    assert states(**changes)[place] == state


def test_every_16_bit_precision_halves_communication() -> None:
    assert {states(precision=word)[4] for word in SIXTEEN_BIT} == {"holds"}
