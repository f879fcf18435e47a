"""How far an estimate may be off because nothing says how a run does what decides its time and its memory.

Of what a row leaves open (constants `is_*_open` of its profile) the fastest and the slowest choices together are both
ends of its step time, those that keep the least and the most both ends of its memory. Where none of them matters, both
ends are the estimate: a device that is busy longer than the processor launches, experts on one rank, a single stage.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.learned.transfer import is_measured
from sweepscope.pipeline.estimate.physics.elementwise import OPERATORS
from sweepscope.pipeline.estimate.physics.estimate import Estimate, allocated_bytes, step_seconds
from sweepscope.pipeline.estimate.physics.layouts import Array, Layouts
from sweepscope.pipeline.estimate.physics.profile import with_values
from sweepscope.pipeline.estimate.physics.question import Question
from sweepscope.pipeline.estimate.rows.kernels import eager_forms
from sweepscope.pipeline.reference.clusters import UNKNOWN

OPEN_ENDS: Final = pl.Schema(
    {"fast_share": pl.Float64(), "slow_share": pl.Float64(), "least_share": pl.Float64(), "most_share": pl.Float64()}
)
"""Step time with the fastest and with the slowest of what is open, over the estimate, and memory with what keeps the
least and the most; NULL where nothing is."""

SHARES_OF_PEAK: Final = (0.44, 0.85)
"""What products reach at least and at most of the peak of a card that nothing is known of: as on MI300X and on Gaudi 2,
the ends of those that anything is known of (`data/calibration`)."""
SHARES_OF_PUBLISHED: Final = (0.87, 1.18)
"""The same beside the constants of a generation that no bundled table has runs on: as far as fits to a framework's runs
lie from the constants of their generation (Blackwell's Megatron-LM, Ampere's)."""
STATES_IN_16_BIT: Final = {"grad_bytes": 2.0, "grad_held_bytes": 2.0, "optimizer_bytes": 4.0}
"""Gradients, and both moments without a copy of the weights, of a trainer that has no state in 32 bit."""

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
        slow |= eager_forms(profile)
    if profile.is_dispatch_open and has_experts:
        fast["sends_once_per_domain"] = True
    if profile.is_experts_overlap_open and has_experts:
        fast["hides_experts"] = True
    if profile.is_send_open:
        fast["sends_beside"] = True
    if profile.is_state_open:
        fast["grad_bytes"] = STATES_IN_16_BIT["grad_bytes"]
    if profile.is_gather_open:
        slow["gathers_logits"] = True
    return fast, slow


def _ends_of_memory(asked: Question) -> tuple[_Values, _Values]:
    """(constants of what keeps the least, constants of what keeps the most) of what is open."""
    profile = asked.profile
    least = STATES_IN_16_BIT if profile.is_state_open else {}
    most = {**eager_forms(profile), **({"gathers_logits": True} if profile.is_gather_open else {})}
    return least, most


def open_ends(asked: Question, at: Layouts, predicted: Estimate) -> dict[str, list[Any]]:
    """Columns of OPEN_ENDS of a list of layouts."""

    def share(values: _Values, of: Array, *, is_time: bool) -> list[Any]:
        if not values:
            return [None] * at.shape[0]
        other = replace(asked, profile=with_values(asked.profile, values))
        changed = step_seconds(other, at) if is_time else allocated_bytes(other, at)
        shares: list[Any] = np.broadcast_to(changed / of, at.shape).tolist()
        return shares

    (fast, slow), (least, most) = _ends(asked), _ends_of_memory(asked)
    columns = (
        share(fast, predicted.step_time_s, is_time=True),
        share(slow, predicted.step_time_s, is_time=True),
        share(least, predicted.mem_bytes, is_time=False),
        share(most, predicted.mem_bytes, is_time=False),
    )
    return dict(zip(OPEN_ENDS, columns, strict=True))


def with_open_ends(predicted: pl.DataFrame) -> pl.DataFrame:
    """`predicted` without the columns of OPEN_ENDS, its intervals of step time, MFU and memory wider by them."""
    short, long, least, most = (pl.col(name).fill_null(1.0) for name in OPEN_ENDS)
    return predicted.with_columns(
        pl.col("est_step_time_lo_s") * short,
        pl.col("est_step_time_hi_s") * long,
        pl.col("est_mfu_lo") / long,
        pl.col("est_mfu_hi") / short,
        pl.col("est_mem_lo_bytes") * least,
        pl.col("est_mem_hi_bytes") * most,
    ).drop(OPEN_ENDS.names())
