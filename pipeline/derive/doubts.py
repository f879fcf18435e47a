"""Runs whose speed rests on a guess that is not sure enough to rank them by."""

from __future__ import annotations

import polars as pl

from sweepscope.schemas.tables.inference import DOUBTFUL_SPEED

SPEEDS = ("step_time", "tokens_per_s", "tokens_per_s_per_gpu")
"""Columns of `inferred_columns` from which every throughput is printed or follows."""

LEAST_SURE = "low"
"""Word of vocab.CONFIDENCE that keeps a run out of rankings."""


def without_doubtful(runs: pl.DataFrame, inferred: pl.DataFrame) -> pl.DataFrame:
    """`runs` with a `quarantine_reason` where a speed of the run's log was read with the least confidence.

    Args:
        runs: rows of `runs`, by `source_path`.
        inferred: INFERRED_COLUMNS rows of the same logs.
    """
    doubtful = inferred.filter("is_read", pl.col("column_name").is_in(SPEEDS), pl.col("confidence") == LEAST_SURE)
    is_doubtful = pl.col("source_path").is_in(doubtful["source_path"].unique().implode())
    known = pl.col("quarantine_reason") if "quarantine_reason" in runs.columns else pl.lit(None, pl.String)
    return runs.with_columns(quarantine_reason=pl.coalesce(known, pl.when(is_doubtful).then(pl.lit(DOUBTFUL_SPEED))))
