"""Runs whose speed rests on a guess that is not sure enough to rank them by."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.derive.normalize import derive_layout
from sweepscope.schemas.tables.inference import DOUBTFUL_SPEED
from sweepscope.schemas.tables.runs import RUNS

RATES = ("tokens_per_s", "tokens_per_s_per_gpu")
SPEEDS = ("step_time", *RATES)
"""Columns of `inferred_columns` from which every throughput is printed or follows."""

LEAST_SURE = "low"
"""Word of vocab.CONFIDENCE that keeps a run out of rankings."""

_ALIKE = 0.1
"""By which a rate that a log prints may differ from the batch over the median step time."""


def without_doubtful(runs: pl.DataFrame, inferred: pl.DataFrame) -> pl.DataFrame:
    """`runs` with a `quarantine_reason` where a speed of the run's log was read with the least confidence.

    Where only a rate is in doubt, and the time of a step and the batch are not, they give the speed: a rate that
    agrees with them is that of all accelerators, another one is left out.

    Args:
        runs: rows of `runs`, by `source_path`.
        inferred: INFERRED_COLUMNS rows of the same logs.
    """
    doubtful = inferred.filter("is_read", pl.col("column_name").is_in(SPEEDS), pl.col("confidence") == LEAST_SURE)
    if doubtful.is_empty():
        return runs

    def is_in_doubt(column: str) -> pl.Expr:
        paths = doubtful.filter(column_name=column)["source_path"].unique()
        return pl.col("source_path").is_in(paths.implode())

    layout = derive_layout(RUNS.conform(runs)).select("run_id", batch_tokens="gbs_tokens")
    rows = runs.join(layout, on="run_id", how="left", maintain_order="left")
    is_doubtful = pl.any_horizontal(map(is_in_doubt, SPEEDS))
    by_time = pl.when(~is_in_doubt("step_time")).then(pl.col("batch_tokens") / pl.col("step_time_s"))
    is_settled = is_doubtful & (by_time > 0).fill_null(value=False)
    is_alike = ((pl.col("tokens_per_s") / by_time - 1).abs() < _ALIKE).fill_null(value=False)
    known = pl.col("quarantine_reason") if "quarantine_reason" in runs.columns else pl.lit(None, pl.String)
    return rows.with_columns(
        pl.when(~(is_settled & is_in_doubt("tokens_per_s")) | is_alike).then("tokens_per_s"),
        pl.when(~(is_settled & is_in_doubt("tokens_per_s_per_gpu"))).then("tokens_per_s_per_gpu"),
        quarantine_reason=pl.coalesce(known, pl.when(is_doubtful & ~is_settled).then(pl.lit(DOUBTFUL_SPEED))),
    ).drop("batch_tokens")
