"""States in 16 bit, of runs that could not have fitted with the optimizer's in 32.

As `assumptions`, for tables that someone asks about: mixed precision keeps 16 or 18 bytes a parameter, a trainer with
everything in 16 bit 8. Of a trainer that nothing is known of, a completed run decides between both; the other runs of
its table are of the same trainer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import polars as pl

from sweepscope.pipeline.estimate.rows.stated_facts import are_states_open
from sweepscope.pipeline.reference.accelerators import SIXTEEN_BIT
from sweepscope.pipeline.reference.vocabulary import framework_of

COMPLETED: Final = ("success", "completed")
"""Statuses of runs that fitted."""
NOTE: Final = "all states in 16 bit, without which runs of this table would not have fitted"
_TABLE: Final = ("source_id", "framework")
_STATES: Final = ("grad_precision", "moment_precision", "master_precision")


def with_needed_states(
    frame: pl.DataFrame, rows: pl.DataFrame, predict: Callable[[pl.DataFrame], pl.DataFrame]
) -> pl.DataFrame:
    """`rows` (`read_rows` of `frame`, with `assumed`), in order, with all states in 16 bit where a run shows them.

    A table's rows have them where it states no precision of states, and one of its completed runs is estimated not to
    fit with the usual ones and to fit with these.
    """
    if "status" not in frame.columns:
        return rows
    is_open = pl.Series(
        [
            are_states_open(row, row["framework"] or framework_of(row["source_id"] or ""))
            and (row["precision"] is None or row["precision"] in SIXTEEN_BIT)
            for row in rows.iter_rows(named=True)
        ],
        dtype=pl.Boolean,
    )
    ran = is_open & frame["status"].is_in(COMPLETED).fill_null(False)
    if not ran.any():
        return rows
    over = rows.filter(ran).filter(~predict(rows.filter(ran))["est_fits"].fill_null(True))
    if over.is_empty():
        return rows
    shown = over.filter(predict(_in_16_bit(over))["est_fits"].fill_null(False)).select(_TABLE).unique()
    is_of = rows.select(_TABLE).join(
        shown.with_columns(is_of=True), on=_TABLE, how="left", nulls_equal=True, maintain_order="left"
    )["is_of"]
    return _in_16_bit(rows, is_open & is_of.fill_null(False))


def _in_16_bit(rows: pl.DataFrame, which: pl.Series | None = None) -> pl.DataFrame:
    """`rows` with all states of those of `which` in 16 bit, noted; of all of them by default."""
    chosen = pl.lit(True) if which is None else pl.lit(which)
    note = pl.concat_str(pl.lit(NOTE), pl.col("assumed").replace("", None), separator="; ", ignore_nulls=True)
    return rows.with_columns(
        *(pl.when(chosen).then(pl.lit("bf16")).otherwise(name).alias(name) for name in _STATES),
        assumed=pl.when(chosen).then(note).otherwise("assumed"),
    )
