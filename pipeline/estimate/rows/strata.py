"""The generation of accelerators and the precision of rows: what errors of estimates are grouped by."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.reference.accelerators import SIXTEEN_BIT
from sweepscope.pipeline.reference.clusters import find_cluster

STRATA = pl.Schema({"generation": pl.String, "is_below_16_bit": pl.Boolean})
"""Generation of the accelerator, NULL where it is unknown; whether products run in 8 bits and fewer."""


def strata_of(rows: pl.DataFrame) -> pl.DataFrame:
    """STRATA of rows of `read_rows`, in their order."""
    cards = {card: find_cluster(card) for card in rows["accelerator"].drop_nulls().unique()}
    known = {card: one for card, one in cards.items() if one is not None}
    generations = {card: one.generation for card, one in known.items()}
    with_fp8 = [card for card, one in known.items() if one.peak_flops_fp8 > one.peak_flops]
    is_short = ~pl.col("precision").fill_null("bf16").is_in(SIXTEEN_BIT)
    return rows.select(
        generation=rows["accelerator"].replace_strict(generations, default=None, return_dtype=pl.String),
        is_below_16_bit=is_short & pl.col("accelerator").is_in(with_fp8).fill_null(False),
    )
