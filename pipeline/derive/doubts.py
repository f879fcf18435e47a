"""Runs whose speed rests on a guess that is not sure enough to rank them by."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.derive.normalize import derive_layout, filled_runs
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
    agrees with them is that of all accelerators, another one is left out. Where nothing states the replicas, the rate
    has to agree with as many as the accelerators make without a parallelism that nobody states, of all or of each.

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

    known_columns = RUNS.conform(runs)
    stated = derive_layout(known_columns).select("run_id", stated_batch="gbs_tokens")
    assumed = filled_runs(known_columns, are_whole=True).select("run_id", assumed_batch="gbs_tokens", cards="num_gpus")
    rows = runs.join(stated, on="run_id", how="left", maintain_order="left")
    rows = rows.join(assumed, on="run_id", how="left", maintain_order="left")
    is_doubtful = pl.any_horizontal(map(is_in_doubt, SPEEDS))
    time_s = pl.when(~is_in_doubt("step_time")).then("step_time_s")
    batch = pl.coalesce("stated_batch", "assumed_batch")
    is_alike = ((pl.col("tokens_per_s") * time_s / batch - 1).abs() < _ALIKE).fill_null(value=False)
    of_each = is_in_doubt("tokens_per_s") & pl.col("stated_batch").is_null() & (pl.col("cards") > 1)
    of_each &= (pl.col("tokens_per_s") * pl.col("cards") * time_s / batch - 1).abs() < _ALIKE
    is_of_each = of_each.fill_null(value=False)
    is_settled = is_doubtful & ((pl.col("stated_batch") / time_s > 0).fill_null(value=False) | is_alike | is_of_each)
    known = pl.col("quarantine_reason") if "quarantine_reason" in runs.columns else pl.lit(None, pl.String)
    return rows.with_columns(
        tokens_per_s=pl.when(~(is_settled & is_in_doubt("tokens_per_s")) | is_alike).then("tokens_per_s"),
        tokens_per_s_per_gpu=pl.when(is_of_each)
        .then("tokens_per_s")
        .when(~(is_settled & is_in_doubt("tokens_per_s_per_gpu")))
        .then("tokens_per_s_per_gpu"),
        quarantine_reason=pl.coalesce(known, pl.when(is_doubtful & ~is_settled).then(pl.lit(DOUBTFUL_SPEED))),
    ).drop("stated_batch", "assumed_batch", "cards")
