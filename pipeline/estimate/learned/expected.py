"""What a run is expected to take beside the physics: the learned penalty and the interval of comparable runs.

All of it comes from a profile's track record and is NULL without one. The physics' own columns stay as they are.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.learned.penalty import penalty_features
from sweepscope.pipeline.estimate.learned.placement_patterns import PATTERNS, has_unseen, pattern_codes
from sweepscope.pipeline.estimate.learned.record_file import find_record
from sweepscope.pipeline.estimate.learned.track_record import Interval, TrackRecord
from sweepscope.pipeline.estimate.physics.estimate import Estimate
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts
from sweepscope.pipeline.estimate.physics.question import Question

_COLUMNS: dict[str, pl.DataType] = {
    **dict.fromkeys(("est_penalty", "est_penalty_lo", "est_penalty_hi", "expected_step_time_s"), pl.Float64()),
    **dict.fromkeys(("est_step_time_lo_s", "est_step_time_hi_s", "est_mfu_lo", "est_mfu_hi"), pl.Float64()),
    "est_interval_runs": pl.Int64(),
    "est_interval_basis": pl.String(),
    **dict.fromkeys(("expected_mem_bytes", "est_mem_lo_bytes", "est_mem_hi_bytes"), pl.Float64()),
    "est_mem_interval_runs": pl.Int64(),
}
EXPECTED: Final = pl.Schema(_COLUMNS)
"""Columns beside the physics. `est_penalty` times `est_step_time_s` is `expected_step_time_s`; the interval of the step
time lies around that where there is a penalty, else it is where comparable runs fell beside the physics alone. Its
short end is never below what the fastest comparable runs took."""


def slowdown(asked: Question, at: Layouts, predicted: Estimate, record: TrackRecord | None) -> Array:
    """The learned penalty of each layout; NaN without one, beyond the sizes that it was learned on, and for choices
    that no run made. `at` is a list, no grid.
    """
    size = at.shape[0]
    if record is None or record.penalty is None:
        return np.full(size, np.nan)
    learned = record.penalty.slowdown(penalty_features(asked, at, predicted))
    return np.where(has_unseen(at, record.choices), np.nan, learned)


def memory_factor(asked: Question, at: Layouts, predicted: Estimate, record: TrackRecord) -> Array:
    """What comparable runs needed over the estimated peak memory; NaN where nothing was learned, as for `slowdown`."""
    if record.memory_factor is None:
        return np.full(at.shape[0], np.nan)
    learned = record.memory_factor.slowdown(penalty_features(asked, at, predicted))
    return np.where(has_unseen(at, record.choices), np.nan, learned)


def _factors(found: list[Interval | None]) -> tuple[Array, Array]:
    ends = [(part.low, part.high) if part is not None else (np.nan, np.nan) for part in found]
    both = np.array(ends, np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def expect(asked: Question, at: Layouts, predicted: Estimate) -> dict[str, list[Any]]:
    """Columns of EXPECTED for a list of layouts, from the record of the question's profile; None where nothing
    comparable was measured."""
    size = at.shape[0]
    record = find_record(asked.profile)
    if record is None:
        return {name: [None] * size for name in EXPECTED}
    penalty = slowdown(asked, at, predicted, record)
    patterns = [PATTERNS[code] for code in pattern_codes(at, asked.cluster.gpus_per_domain)]
    name = asked.profile.name
    of_physics = {pattern: record.time.interval(pattern, name) for pattern in set(patterns)}
    of_both = {pattern: record.penalised.interval(pattern, name) for pattern in set(patterns)}
    of_memory = {pattern: record.memory.interval(pattern, name) for pattern in set(patterns)}
    of_needed = {pattern: record.needed.interval(pattern, name) for pattern in set(patterns)}
    factor = memory_factor(asked, at, predicted, record)
    is_learned = np.isfinite(factor)
    known = np.isfinite(penalty)
    unseen = has_unseen(at, record.choices)
    found = [
        None if is_unseen else (of_both if has_penalty else of_physics)[pattern]
        for has_penalty, is_unseen, pattern in zip(known, unseen, patterns, strict=True)
    ]
    needed = [
        None if is_unseen else (of_needed if has_factor else of_memory)[pattern]
        for has_factor, is_unseen, pattern in zip(is_learned, unseen, patterns, strict=True)
    ]
    low, high = _factors(found)
    centre = np.where(known, penalty, 1.0)
    # The penalty's scatter is that of slowdowns: no run is to be promised more speed than any showed beside physics.
    fastest_of = {pattern: record.time.fastest(pattern) for pattern in set(patterns)}
    fastest = np.array([fastest_of[pattern] for pattern in patterns]) / centre
    low = np.where(np.isfinite(fastest), np.clip(fastest, low, 1.0), low)
    seconds, bytes_ = np.broadcast_to(predicted.step_time_s, size), np.broadcast_to(predicted.mem_bytes, size)
    mfu = np.broadcast_to(predicted.mfu, size)
    mem_low, mem_high = _factors(needed)
    values: dict[str, Array] = {
        "est_penalty": penalty,
        "est_penalty_lo": penalty * low,
        "est_penalty_hi": penalty * high,
        "expected_step_time_s": penalty * seconds,
        "est_step_time_lo_s": centre * low * seconds,
        "est_step_time_hi_s": centre * high * seconds,
        "est_mfu_lo": mfu / (centre * high),
        "est_mfu_hi": mfu / (centre * low),
        "expected_mem_bytes": factor * bytes_,
        "est_mem_lo_bytes": np.where(is_learned, factor, 1.0) * bytes_ * mem_low,
        "est_mem_hi_bytes": np.where(is_learned, factor, 1.0) * bytes_ * mem_high,
    }
    columns: dict[str, list[Any]] = {
        name: [value if np.isfinite(value) else None for value in column.tolist()] for name, column in values.items()
    }
    columns["est_interval_runs"] = [part.runs if part is not None else None for part in found]
    columns["est_interval_basis"] = [part.basis if part is not None else None for part in found]
    columns["est_mem_interval_runs"] = [part.runs if part is not None else None for part in needed]
    return {name: columns[name] for name in EXPECTED}
