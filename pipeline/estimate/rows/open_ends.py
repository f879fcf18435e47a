"""How far an estimate may be off because nothing says how a run does what decides its time.

Of what a row leaves open (constants `is_*_open` of its profile) the fastest and the slowest choices together are both
ends. Where none of them matters, both ends are the estimate: a device that is busy longer than the processor launches,
experts on one rank, a single stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.learned.transfer import is_measured
from sweepscope.pipeline.estimate.physics.elementwise import OPERATORS
from sweepscope.pipeline.estimate.physics.estimate import Estimate, step_seconds
from sweepscope.pipeline.estimate.physics.layouts import Layouts
from sweepscope.pipeline.estimate.physics.profile import with_values
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.reference.clusters import UNKNOWN

OPEN_ENDS: Final = pl.Schema({"fast_share": pl.Float64(), "slow_share": pl.Float64()})
"""Step time with the fastest and with the slowest of what is open, over the estimate; NULL where nothing is."""

SHARES_OF_PEAK: Final = (0.44, 0.85)
"""What products reach at least and at most of the peak of a card that nothing is known of: as on MI300X and on Gaudi 2,
the ends of those that anything is known of (`data/calibration`)."""
SHARES_OF_PUBLISHED: Final = (0.87, 1.18)
"""The same beside the constants of a generation that no bundled table has runs on: as far as fits to a framework's runs
lie from the constants of their generation (Blackwell's Megatron-LM, Ampere's)."""

_Values = Mapping[str, float | bool | str]


def _ends(asked: Question) -> tuple[_Values, _Values]:
    """(constants of the fastest, constants of the slowest) of what is open; estimates of experts and sends are slow."""
    profile, has_experts = asked.profile, asked.shape.num_experts > 0
    fast: dict[str, float | bool | str] = {}
    slow: dict[str, float | bool | str] = {}
    if profile.about.get("kind") != "fitted" and not is_measured(asked.cluster.generation):
        is_known = asked.cluster.generation != UNKNOWN
        shares = [profile.gemm_peak_share * end for end in SHARES_OF_PUBLISHED] if is_known else SHARES_OF_PEAK
        slow["gemm_peak_share"], fast["gemm_peak_share"] = shares
    if profile.is_loss_open:
        fast["head_bytes_per_logit"] = min(profile.head_bytes_per_logit, OPERATORS["loss"].forms["fused"].moved)
    if profile.is_launch_open:
        fast["kernel_launch_s"], slow["kernel_launch_s"] = profile.compiled_launch_s, profile.eager_launch_s
    if profile.is_dispatch_open and has_experts:
        fast["sends_once_per_domain"] = True
    if profile.is_experts_overlap_open and has_experts:
        fast["hides_experts"] = True
    if profile.is_send_open:
        fast["sends_beside"] = True
    return fast, slow


def open_ends(asked: Question, at: Layouts, predicted: Estimate) -> dict[str, list[Any]]:
    """Columns of OPEN_ENDS of a list of layouts."""
    ends = _ends(asked)
    if not any(ends):
        return {name: [None] * at.shape[0] for name in OPEN_ENDS}
    columns = {}
    for name, values in zip(OPEN_ENDS, ends, strict=True):
        other = replace(asked, profile=with_values(asked.profile, values))
        share = step_seconds(other, at) / predicted.step_time_s
        columns[name] = np.broadcast_to(share, at.shape).tolist()
    return columns


def with_open_ends(predicted: pl.DataFrame) -> pl.DataFrame:
    """`predicted` without the columns of OPEN_ENDS, its intervals of step time and MFU wider by them."""
    short, long = pl.col("fast_share").fill_null(1.0), pl.col("slow_share").fill_null(1.0)
    return predicted.with_columns(
        pl.col("est_step_time_lo_s") * short,
        pl.col("est_step_time_hi_s") * long,
        pl.col("est_mfu_lo") / long,
        pl.col("est_mfu_hi") / short,
    ).drop(OPEN_ENDS.names())
