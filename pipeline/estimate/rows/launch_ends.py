"""How far an estimate may be off because nothing says whether a run is eager or compiled.

Where the device is busy longer than the processor launches, it is off by nothing: both ends are the estimate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.physics.estimate import Estimate, step_seconds
from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.profile import with_values
from sweepscope.pipeline.estimate.physics.question import Question

LAUNCH_ENDS: Final = pl.Schema({"compiled_share": pl.Float64(), "eager_share": pl.Float64()})
"""Step time compiled, and run eagerly, over the estimate; NULL where a row or its framework says which it is."""


def launch_ends(asked: Question, at: Layouts, predicted: Estimate) -> dict[str, list[Any]]:
    """Columns of LAUNCH_ENDS of a list of layouts."""
    profile = asked.profile
    if not profile.is_launch_open:
        return {name: [None] * at.shape[0] for name in LAUNCH_ENDS}
    columns = {}
    for name, launch_s in zip(LAUNCH_ENDS, (profile.compiled_launch_s, profile.eager_launch_s), strict=True):
        other = replace(asked, profile=with_values(profile, {"kernel_launch_s": launch_s}))
        share = step_seconds(other, at) / predicted.step_time_s
        columns[name] = np.broadcast_to(share, at.shape).tolist()
    return columns


def with_launch_ends(predicted: pl.DataFrame) -> pl.DataFrame:
    """`predicted` without the columns of LAUNCH_ENDS, its intervals of step time and MFU wider by them."""
    short, long = pl.col("compiled_share").fill_null(1.0), pl.col("eager_share").fill_null(1.0)
    return predicted.with_columns(
        pl.col("est_step_time_lo_s") * short,
        pl.col("est_step_time_hi_s") * long,
        pl.col("est_mfu_lo") / long,
        pl.col("est_mfu_hi") / short,
    ).drop(LAUNCH_ENDS.names())
