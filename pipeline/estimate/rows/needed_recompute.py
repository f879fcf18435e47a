"""Recomputation that a completed run must have done, where its row states nothing of it.

As `assumptions`, for tables that someone asks about: without recomputation, the usual assumption, such a run is
estimated to need far more than its card has, and too little time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.rows.asking import cluster_of
from sweepscope.pipeline.estimate.rows.needed_states import COMPLETED

_MEMORY_DOUBT: Final = 1.5
"""How far above what a card has an estimate must be to contradict a run that fitted. Peaks of frameworks that nothing
was fitted on are off by up to as much (torchtitan's 13 rows: half too high)."""
_NOTE: Final = "full recomputation, without which the run would not have fitted"


def with_needed_recompute(
    frame: pl.DataFrame, rows: pl.DataFrame, predict: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame:
    """Predictions of `rows` (`read_rows` of `frame`, with `assumed`), in order.

    A row whose `status` says that it completed is predicted with full recomputation where it states none, its estimate
    without any exceeds the card's memory _MEMORY_DOUBT times, and the one with it fits.
    """
    predicted = predict(rows)
    if "status" not in frame.columns:
        return predicted
    is_open = frame["status"].is_in(COMPLETED).fill_null(False) & rows["stated_recompute"].is_null()
    open_and_over = np.flatnonzero((is_open & ~predicted["est_fits"].fill_null(True)).to_numpy()).tolist()
    tight = [
        index
        for index in open_and_over
        if (cluster := cluster_of(rows.row(index, named=True))) is not None
        and predicted["est_mem_reserved_bytes"][index] > _MEMORY_DOUBT * cluster.memory_bytes
    ]
    if not tight:
        return predicted
    noted = pl.concat_str(pl.lit(_NOTE), pl.col("assumed").replace("", None), separator="; ", ignore_nulls=True)
    full = rows[tight].with_columns(recompute=pl.lit("full"), stated_recompute=pl.lit("full"), assumed=noted)
    again = predict(full)
    order = np.arange(rows.height)
    for place, index in enumerate(tight):
        if again["est_fits"][place]:
            order[index] = rows.height + place
    return pl.concat([predicted, again])[order]
