"""The layouts of one cell in order, as bars with their gap to the winner. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from sweepscope.dashboard.format.numbers import MINUS, number, percent, points


@dataclass(frozen=True)
class RankedRow:
    """One layout, with what else sets it apart.

    `share` is its value over the winner's, `gap` says how far it is behind ("" for the winner).
    """

    run_id: str
    layout: str
    value: str
    gap: str
    share: float
    is_winner: bool
    is_tied: bool


def ranked_rows(ranked: pl.DataFrame, *, noise: float, limit: int = 6) -> list[RankedRow]:
    """The first `limit` layouts of a cell, given in rank order, with every row that ties with the winner marked.

    Values are MFU in percent when all shown rows have one, else tokens/s/GPU. `noise` is a share of tokens/s/GPU.
    """
    if ranked.is_empty():
        return []
    top = ranked.head(limit)
    has_mfu = top["mfu"].null_count() == 0
    column = "mfu" if has_mfu else "tokens_per_s_per_gpu"
    best, fastest = top[column][0], top["tokens_per_s_per_gpu"][0]
    widest = max(top[column].to_list())  # an MFU may exceed the winner's when runs of a cell differ in shape
    tied = [fastest / speed - 1 <= noise for speed in top["tokens_per_s_per_gpu"]]
    rows = []
    for index, row in enumerate(top.iter_rows(named=True)):
        value = row[column]
        behind = points(value - best) if has_mfu else f"{MINUS}{percent(1 - value / best)}"
        rows.append(
            RankedRow(
                run_id=row["run_id"],
                layout=" · ".join(part for part in (row["layout"] or "layout unknown", row["variant"]) if part),
                value=number(value * 100, 1) if has_mfu else number(value),
                gap="" if index == 0 else behind,
                share=value / widest if widest else 0.0,
                is_winner=index == 0,
                is_tied=tied[index] and sum(tied) > 1,
            )
        )
    return rows


GAP = "Behind the winner, %"


def with_gap(ranked: pl.DataFrame) -> pl.DataFrame:
    """`ranked` with a column `GAP`: how much less tokens/s/GPU than the winner of its cell, in percent."""
    fastest = pl.col("tokens_per_s_per_gpu").max().over("model", "num_nodes", "num_gpus")
    return ranked.with_columns(((1 - pl.col("tokens_per_s_per_gpu") / fastest) * 100).round(1).alias(GAP))
