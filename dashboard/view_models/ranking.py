"""Layouts of one cell in rank order, as bars with how much faster the winner is than each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from sweepscope.dashboard.format.implementation import differing, label
from sweepscope.dashboard.format.numbers import dollars, number, percent, ratio


@dataclass(frozen=True)
class RankedRow:
    """One layout, with its variant; `ran_by` names framework, version or cluster where those of its cell differ.

    `share` is its tokens/s/GPU over the highest end of an interval drawn, `gap` how much faster the winner is: in
    percent of this layout's tokens/s/GPU, as every lead is stated, or a ratio from twice on ("" for the winner).
    `interval` (95 %) and `repeats` (none of one run) are over its own tokens/s/GPU.
    """

    run_id: str
    layout: str
    ran_by: str
    value: str
    gap: str
    share: float
    interval: tuple[float, float]
    repeats: tuple[float, ...]
    is_winner: bool
    is_tied: bool


def ranked_rows(ranked: pl.DataFrame, *, metric: str = "", limit: int = 6) -> list[RankedRow]:
    """The first `limit` layouts of a cell; `ranked` are rows of `queries.cells.ranking`.

    Values are in the unit that `unit` decides for the chosen `metric`.
    """
    if ranked.is_empty():
        return []
    top = ranked.head(limit)
    shown = _VALUES[unit(top, metric)]
    has_tie = ranked["ties_with_first"].sum() > 1
    several = differing(ranked.iter_rows(named=True))  # of the whole cell, whatever of it is drawn
    rows = []
    highest = max([*top["tokens_per_s_per_gpu"], *top["high_tokens_per_s_per_gpu"]])
    for index, row in enumerate(top.iter_rows(named=True)):
        speed = row["tokens_per_s_per_gpu"]
        rows.append(
            RankedRow(
                run_id=row["run_id"],
                layout=" · ".join(part for part in (row["layout"] or "layout unknown", row["variant"]) if part),
                ran_by=label(row, several),
                value=shown(row),
                gap="" if index == 0 else _gap(row["winner_lead"]),
                share=speed / highest,
                interval=(row["low_tokens_per_s_per_gpu"] / speed, row["high_tokens_per_s_per_gpu"] / speed),
                repeats=tuple(float(each) / speed for each in row["repeat_speeds"].split())
                if row["repeats"] > 1
                else (),
                is_winner=index == 0,
                is_tied=row["ties_with_first"] and has_tie,
            )
        )
    return rows


def _gap(lead: float) -> str:
    """How much faster the winner is, as a bar has room for.

    >>> [_gap(lead).replace("\u00a0", " ") for lead in (0.051, 0.0001, 2.81)]
    ['+5.1 %', '0.0 %', '3.8 ×']
    """
    if lead >= 1:
        return ratio(1 + lead)
    text = percent(lead)
    return text if text.startswith("0.0") else f"+{text}"


_VALUES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "cost": lambda row: dollars(row["usd_per_m_tokens"]),
    "mfu": lambda row: number(row["mfu"] * 100, 1),
    "throughput": lambda row: number(row["tokens_per_s_per_gpu"]),
}


def unit(top: pl.DataFrame, metric: str = "") -> str:
    """What layouts are shown by, as a key of `format.metrics`: cost where it is the chosen `metric` and all have one.

    Else MFU where `shows_mfu`, or throughput. The order is the same by each: the price is one per accelerator.
    """
    if metric == "cost" and "usd_per_m_tokens" in top.columns and top["usd_per_m_tokens"].null_count() == 0:
        return "cost"
    return "mfu" if shows_mfu(top) else "throughput"


def with_named_options(cell: Mapping[str, Any], ranked: pl.DataFrame) -> dict[str, Any]:
    """A row of `queries.cells.cells` with `options` and `runner_up_options`, by which its first two layouts differ.

    They are those of runs that state options; "" where nothing does, or the layouts differ anyway.
    """
    stated = ranked.filter(pl.col("options_id").is_not_null() & pl.col("variant").is_not_null())
    options = dict(stated.select("run_id", "variant").iter_rows())
    both = {"options": cell["run_id"], "runner_up_options": cell["runner_up_run_id"]}
    return {**cell, **{name: options.get(run_id, "") for name, run_id in both.items()}}


def shows_mfu(top: pl.DataFrame) -> bool:
    """Whether MFU can be shown for these layouts: each has one, and it orders them as tokens/s/GPU does.

    It does not where runs of a cell count FLOPs of different shapes.
    """
    return top["mfu"].null_count() == 0 and top["mfu"].is_sorted(descending=True)
