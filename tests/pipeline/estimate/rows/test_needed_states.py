"""States in 16 bit are assumed of a table that a completed run shows to have them, and of no other."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from sweepscope.pipeline.estimate.rows.needed_states import NOTE
from tests.pipeline.estimate.rows.test_estimate_rows import row

SMALL = {
    **row(framework="a script of mine", dp=1, tp=1, num_gpus=1, recompute="full", micro_batch_size=1, status="success"),
    **{"loss_parallel": None, "master_precision": None},
}
"""Seven billion parameters on a card of 80 GB: 120 GB in mixed precision, 56 in 16 bit."""
WIDE = {**SMALL, "dp": 8, "num_gpus": 8, "zero_stage_or_fsdp": "zero3"}
"""Fits with either."""


def found(*rows: dict[str, Any]) -> pl.DataFrame:
    texts = [{k: None if v is None else str(v) for k, v in entry.items()} for entry in rows]
    return estimate_frame(pl.DataFrame(texts, infer_schema_length=None), assumes=True)


def shown(frame: pl.DataFrame) -> list[bool]:
    return [NOTE in (note or "") for note in frame["est_assumptions"]]


def test_a_run_that_fitted_decides_for_its_table() -> None:
    other = {**WIDE, "source_id": "another"}
    got = found(SMALL, WIDE, other)
    assert shown(got) == [True, True, False]
    assert got["est_fits"].to_list() == [True, True, True]
    assert got["est_mem_bytes"][1] < got["est_mem_bytes"][2]
    stated = found({**SMALL, **dict.fromkeys(("grad_precision", "moment_precision", "master_precision"), "bf16")})
    assert got["est_mem_bytes"][0] == stated["est_mem_bytes"][0]
    assert got["est_step_time_s"][0] == stated["est_step_time_s"][0]


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "oom"},
        {"status": None},
        {"framework": "megatron"},
        {"grad_precision": "fp32"},
        {"precision": "fp8"},
    ],
)
def test_nothing_is_assumed_where_no_run_shows_it(changes: dict[str, Any]) -> None:
    assert not any(shown(found({**SMALL, **changes}, {**WIDE, **changes})))
    assert not any(shown(found(WIDE)))
    assert not any(shown(found({**SMALL, "num_layers": 320})))  # fits with neither
    assert not any(shown(found({name: value for name, value in SMALL.items() if name != "status"})))
