"""The bundled published tables as calibration reads them: text cells, with the columns that recipes split by."""

from __future__ import annotations

import polars as pl

from sweepscope import data
from sweepscope.pipeline.estimate.physics.profile import CALIBRATION

FOLDS = 5
TRANSFER = CALIBRATION / "transfer"


def published_table(name: str) -> pl.DataFrame:
    """A table of `data/published`, or of those that intervals alone rest on (TRANSFER), by name.

    Adds `fold` (rows dealt in turn) and `kind` (moe, cp or dense).
    """
    beside = TRANSFER / f"{name}.csv"
    plain = beside if beside.exists() else data.PUBLISHED / f"{name}.csv"
    table = pl.read_csv(plain if plain.exists() else plain.with_suffix(".csv.gz"), infer_schema=False)
    experts = pl.col("num_experts") if "num_experts" in table.columns else pl.lit(None, pl.String)
    cp = pl.col("cp") if "cp" in table.columns else pl.lit("1")
    return table.with_columns(
        # A stride that is prime to the table's own order, so that neighbouring rows fall into different folds.
        fold=(pl.int_range(pl.len()) * 7919 % FOLDS).cast(pl.String),
        kind=pl.when(experts.is_not_null())
        .then(pl.lit("moe"))
        .when(cp.fill_null("1") != "1")
        .then(pl.lit("cp"))
        .otherwise(pl.lit("dense")),
    )
