"""Recomputation that a completed run must have done is assumed, and nothing of others."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from tests.pipeline.estimate.rows.test_estimate_rows import row

NOTE = "without which the run would not have fitted"
LARGE = {"micro_batch_size": 32, "recompute": None, "status": "success"}


def _notes(*rows: dict[str, Any]) -> list[str]:
    texts = [{k: None if v is None else str(v) for k, v in entry.items()} for entry in rows]
    found = estimate_frame(pl.DataFrame(texts, infer_schema_length=None), assumes=True)
    return [note or "" for note in found["est_assumptions"]]


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "oom"},
        {"status": None},
        {"recompute": "none"},
        {"micro_batch_size": 2},  # fits without
        {"micro_batch_size": 4096},  # does not fit with it either
    ],
)
def test_nothing_is_assumed_of_runs_that_may_have_done_without(changes: dict[str, Any]) -> None:
    assert all(NOTE not in note for note in _notes(row(**{**LARGE, **changes})))


def test_a_completed_run_that_could_not_have_fitted_recomputed_everything() -> None:
    rows = [row(**{**LARGE, "micro_batch_size": 2}), row(**LARGE), row(**{**LARGE, "recompute": "full"})]
    texts = [{k: None if v is None else str(v) for k, v in entry.items()} for entry in rows]
    found = estimate_frame(pl.DataFrame(texts, infer_schema_length=None), assumes=True)
    assert [NOTE in (note or "") for note in found["est_assumptions"]] == [False, True, False]
    assert found["est_assumptions"][1].endswith(NOTE)
    assert found["est_fits"].to_list() == [True, True, True]
    assert found["est_step_time_s"][1] == found["est_step_time_s"][2]
    assert found["est_time_recompute_s"][0] == 0
