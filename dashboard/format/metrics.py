"""Metrics of a heatmap cell: column, text, and how the value becomes a colour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from sweepscope.dashboard.format import numbers
from sweepscope.dashboard.format.theme import MFU_SCALE_TOP

Paint = Literal["mfu", "per_row", "share"]


@dataclass(frozen=True)
class Metric:
    """`paint`: "mfu" = the fixed 0-50 % scale, "per_row" = scaled within each model, "share" = a grey bar, no colour.

    `is_less_better` turns the per-row scale round, so that bright is good on every page.
    """

    key: str
    label: str
    column: str
    paint: Paint
    text: Callable[[float], str]
    is_less_better: bool = False
    explanation: str = ""


_BY_MODEL = "Colour compares the node counts of one model; bright is fast."
METRICS: dict[str, Metric] = {
    metric.key: metric
    for metric in (
        Metric("mfu", "MFU", "mfu", "mfu", numbers.percent),
        Metric("throughput", "Tokens/s/GPU", "tokens_per_s_per_gpu", "per_row", numbers.number, explanation=_BY_MODEL),
        Metric("step_time", "Step time", "step_time_s", "per_row", numbers.seconds, True, _BY_MODEL),
        Metric(
            "cost",
            "$ per million tokens",
            "usd_per_m_tokens",
            "per_row",
            numbers.dollars,
            True,
            "Colour compares the node counts of one model; bright is cheap.",
        ),
        Metric(
            "memory",
            "Peak memory",
            "mem_peak_bytes",
            "share",
            lambda size: numbers.gib(size, 0),
            explanation="The bar is the share of the card's usable memory.",
        ),
        Metric(
            "failures",
            "Failure rate",
            "failure_rate",
            "share",
            lambda share: numbers.percent(share, 0),
            explanation="Failed tries, of those that completed or failed; the bar is that share.",
        ),
        Metric("hfu", "HFU", "hfu", "mfu", numbers.percent),
    )
}


def performance(row: Mapping[str, Any], *, unit: str = " MFU") -> str:
    """MFU of a run where it is known, followed by `unit`, else its tokens/s/GPU.

    >>> performance({"mfu": 0.363}).replace(numbers.NBSP, " "), performance({"mfu": None, "tokens_per_s_per_gpu": 6028})
    ('36.3 % MFU', '6,028 tokens/s/GPU')
    >>> performance({"mfu": 1.876}).replace(numbers.NBSP, " ")
    "187.6 % MFU (above the hardware's peak)"
    """
    if row["mfu"] is not None:
        impossible = " (above the hardware's peak)" if row["mfu"] > 1 else ""
        return f"{numbers.percent(row['mfu'])}{unit}{impossible}"
    return f"{numbers.number(row['tokens_per_s_per_gpu'])} tokens/s/GPU"


def offered(cells: pl.DataFrame) -> list[Metric]:
    """Metrics that at least one cell has a value for, in menu order."""
    return [metric for metric in METRICS.values() if metric.column in cells.columns and cells[metric.column].count()]


def paint_share(cells: pl.DataFrame, metric: Metric) -> pl.Series:
    """Position of each cell on its scale, 0 to 1; NULL where the cell has no value.

    "mfu": MFU over 50 %, clipped. "per_row": value over the model's best (or best over value). "share": memory over
    the card's usable memory, or the rate itself.
    """
    value = pl.col(metric.column)
    if metric.paint == "mfu":
        share = value / MFU_SCALE_TOP
    elif metric.paint == "per_row":
        best = value.min().over("model") if metric.is_less_better else value.max().over("model")
        share = best / value if metric.is_less_better else value / best
    else:
        share = value / pl.col("memory_bytes") if metric.column.endswith("_bytes") else value
    return cells.select(share.clip(0, 1).alias("share"))["share"]
