"""How far layouts lie apart, and lists of proposals in which no two are near-equal."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.advice.acquisition import NEAR
from sweepscope.pipeline.estimate.physics.layouts import RECOMPUTE_MODES, Array
from sweepscope.schemas.thresholds import RULE_NEAR

ALIKE = "much like a proposal above it: the same mesh or one step away, and as fast"
_DEGREES = ("tp", "pp", "cp", "ep", "vpp", "mbs")
_MESH = 4
"""The first so many of them are the mesh."""


def features(frame: pl.DataFrame) -> Array:
    """Where a layout lies among others: doublings of its degrees, ZeRO stage, recomputation."""
    degrees = [np.log2(frame[name].fill_null(1).cast(pl.Float64).to_numpy()) for name in _DEGREES]
    stage = frame["zero_stage"].fill_null(0).cast(pl.Float64).to_numpy()
    again = np.array([RECOMPUTE_MODES.index(mode or "none") for mode in frame["recompute"]], np.float64)
    return np.stack([*degrees, stage, again], axis=1)


def are_alike(points: Array, times_s: Array, row: int) -> NDArray[np.bool_]:
    """Whether each layout is much like that of `row`, which is like itself.

    Alike are layouts that are believed to take the same within RULE_NEAR and share a mesh (tp, pp, cp, ep), or lie no
    more than one step of one knob apart: then the same residual moves both.

    Args:
        points: `features` of the layouts.
        times_s: what each is believed to take.
        row: which one they are compared with.
    """
    steps = np.abs(points - points[row])
    is_near = (steps[:, :_MESH].sum(axis=1) == 0) | (steps.sum(axis=1) <= NEAR)
    alike: NDArray[np.bool_] = is_near & (np.abs(times_s / times_s[row] - 1.0) <= RULE_NEAR)
    return alike


def apart(ranked: pl.DataFrame, top: int) -> tuple[pl.DataFrame, int]:
    """(the first `top` of `ranked` that are not much like one before them, how many were passed over)."""
    points, times = features(ranked), ranked["believed_step_time_s"].to_numpy()
    kept: list[int] = []
    passed = 0
    for row in range(ranked.height):
        if len(kept) == top:
            break
        if are_alike(points[[*kept, row]], times[[*kept, row]], len(kept))[:-1].any():
            passed += 1
        else:
            kept.append(row)
    return ranked[kept], passed
