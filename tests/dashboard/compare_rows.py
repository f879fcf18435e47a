"""Rows as `queries.compare` returns them, with overrides."""

from __future__ import annotations

from typing import Any

from sweepscope.dashboard.view_models.compare import Subject
from sweepscope.schemas.tables.runs import RUNS
from tests.dashboard.store_rows import estimate_row, run_row

Row = dict[str, Any]
_JOINED = (
    "memory_bytes",
    "comparability",
    "source_title",
    "source_url",
    "table_or_figure",
    "extra",
    "usd_per_m_tokens",
)


def compared(run_id: str = "a1", **changes: Any) -> Row:
    """A completed run with every column of `queries.compare.runs`; what is not stated is None."""
    return {**dict.fromkeys((*RUNS.column_names, *_JOINED)), **run_row(run_id), **changes}


def failed(run_id: str = "o1", **changes: Any) -> Row:
    """A run that ran out of memory before it had any speed."""
    nothing = dict.fromkeys(("mfu", "step_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "step_time_p10_s"))
    return compared(run_id, status="oom", status_evidence="CUDA out of memory", **{**nothing, **changes})


def subject(letter: str, *rows: Row) -> Subject:
    return Subject(letter, rows)


def estimated(run_id: str = "a1", **changes: Any) -> Row:
    """A row of `queries.compare.estimates`: 2 s a step estimated, 2.93 s measured."""
    run = run_row(run_id)
    measured = {name: run[name] for name in ("step_time_s", "mfu", "num_gpus", "gbs_tokens", "model", "accelerator")}
    return {**estimate_row(run_id), **measured, **changes}
