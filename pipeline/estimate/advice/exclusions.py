"""Layouts that are no candidates for a test, because of what was measured in their cell."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import Any, Final

import polars as pl

from sweepscope.pipeline.estimate.physics.memory import Memory
from sweepscope.pipeline.reference.layout_text import layout_key

MEASURED = "already measured"
RAN_OUT = "ran out of memory"
AS_LARGE = "needs at least as much memory in every part as a layout that ran out of it"
FAILED = "failed before, for a reason that the log does not give"
_PARTS: Final = [f"est_mem_{part.name}_bytes" for part in fields(Memory)]


def exclude(
    pool: pl.DataFrame, tried: list[tuple[tuple[Any, ...], str]], ran_out: pl.DataFrame
) -> tuple[dict[str, int], list[bool]]:
    """(reason to count, whether each layout of the pool is still a candidate).

    Args:
        pool: layouts with the columns of PREDICTED.
        tried: layout (`layout_key`) and status of every run of the cell.
        ran_out: the same columns, of the runs that ran out of memory.
    """
    outcomes: dict[tuple[Any, ...], set[str]] = {}
    for key, status in tried:
        outcomes.setdefault(key, set()).add(status)
    needed = ran_out.select(_PARTS).unique().to_numpy()
    parts = pool.select(_PARTS).to_numpy()
    as_large: list[bool] = [bool((part >= needed * (1.0 - 1e-9)).all(axis=1).any()) for part in parts]
    counts: Counter[str] = Counter()
    kept = []
    for row, large in zip(pool.iter_rows(named=True), as_large, strict=True):
        reason = _reason(outcomes.get(layout_key(row), set()), is_as_large=large)
        kept.append(reason is None)
        if reason is not None:
            counts[reason] += 1
    return dict(counts.most_common()), kept


def _reason(statuses: set[str], *, is_as_large: bool) -> str | None:
    if "completed" in statuses:
        return MEASURED
    if "oom" in statuses:
        return RAN_OUT
    if statuses & {"failed", "unknown"}:
        return FAILED
    return AS_LARGE if is_as_large else None
