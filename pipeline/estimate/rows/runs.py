"""Estimates of the store's own runs."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.estimate.physics.profile import choose_profile
from sweepscope.pipeline.estimate.rows.estimate_rows import ChooseProfile, estimate_frame
from sweepscope.schemas.tables.estimates import ESTIMATES


def estimate_runs(runs: pl.DataFrame, choose: ChooseProfile = choose_profile) -> pl.DataFrame:
    """Rows of `estimates`, one per row of `runs`, in order. A run that cannot be estimated says why in est_status."""
    return ESTIMATES.conform(estimate_frame(runs, choose))
