"""The one way from a frame of runs, however it was read, to a complete one; published runs take it too."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.derive.flops import fill_expert_width, fill_params
from sweepscope.pipeline.derive.metrics import add_metrics
from sweepscope.pipeline.derive.normalize import Normalised, normalise_runs
from sweepscope.schemas.tables.runs import RUNS


def complete_runs(frame: pl.DataFrame, *, are_whole: bool = True) -> Normalised:
    """`runs` with parameters, layout, names, performance and quarantine filled, and what was filled.

    `frame` has any columns of `runs`; others are dropped. Idempotent. Rows of somebody's publication are not whole: it
    may leave out what was used (`normalise_runs`).
    """
    normalised = normalise_runs(fill_params(fill_expert_width(RUNS.conform(frame))), are_whole=are_whole)
    return Normalised(runs=add_metrics(normalised.runs), derived=normalised.derived)
