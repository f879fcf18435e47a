"""The overlap checklist: what holds, what does not, what a layout does not need, and what nobody said."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.advice.overlap_checklist import checklist, launch_facts
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


def launched(**stated: str) -> dict[str, Any]:
    rows = [{"name": name.replace("__", "."), "value": value} for name, value in stated.items()]
    return launch_facts(pl.DataFrame(rows, schema={"name": pl.String, "value": pl.String}))


def test_what_a_run_was_launched_with_is_read_from_its_arguments() -> None:
    megatron = launched(
        ddp_bucket_size="40000000", overlap_grad_reduce="True", grad_reduce_in_fp32="True", num_workers="2"
    )
    assert megatron == {"bucket_mb": 160.0, "overlap_dp": True, "data_workers": 2}
    assert states(**megatron) == ["holds"] * 5
    assert launched(dataloader_num_workers="0")["data_workers"] == 0
    assert launched(train_loader__num_workers="8", eval_loader__num_workers="0")["data_workers"] == 8
    assert "data_workers" not in launched(preprocessing_num_workers="4", dataloader_num_workers="None")
    assert launched() == {}


def test_buckets_that_wait_for_the_backward_pass_hide_nothing() -> None:
    assert states(bucket_mb=25.0, overlap_dp=False)[0] == "open"
    assert states(bucket_mb=None, overlap_dp=True)[0] == "holds"
    assert states(bucket_mb=None, overlap_dp=False)[0] == "open"
