"""Rows of the page on failures: endings per value of a dimension, and which patterns fail clearly more often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.dashboard.format.numbers import number, significant
from sweepscope.dashboard.format.symbols import OUTCOME
from sweepscope.dashboard.queries.failures import PATTERNS
from sweepscope.dashboard.queries.query import Row
from sweepscope.schemas.thresholds import INTERVAL_RUNS

ROWS_SHOWN = 12
_COUNTS = tuple(name for name in OUTCOME if name not in ("completed", "undecided", "running"))
_NAMES = {"zero_stage": "ZeRO-", "recompute": "recompute ", "precision": ""}


@dataclass(frozen=True)
class Pattern:
    """One setting with its failure rate and 95 % interval; `is_above` when the interval lies above the overall rate."""

    dimension: str
    name: str
    judged: int
    failed: int
    rate: float
    low: float
    high: float
    is_above: bool


def rates_of(rates: pl.DataFrame, *dimensions: str) -> pl.DataFrame:
    """Those of the rows of `failure_rates` that are of some dimensions, in the order they have."""
    return rates.filter(pl.col("dimension").is_in(dimensions))


def default_dimension(offered: Sequence[str], values: Mapping[str, int]) -> str:
    """The first dimension; where one bar would hold most of its values, the first with a bar for each, if any.

    >>> default_dimension(["sweep", "model", "num_nodes"], {"sweep": 9_000, "model": 800, "num_nodes": 7})
    'num_nodes'
    >>> default_dimension(["sweep", "num_nodes"], {"sweep": 20, "num_nodes": 7})
    'sweep'
    """
    first = offered[0]
    if values.get(first, 0) <= 2 * ROWS_SHOWN:
        return first
    return next((name for name in offered if values.get(name, 0) <= ROWS_SHOWN), first)


def endings_by(rates: pl.DataFrame, limit: int = ROWS_SHOWN) -> pl.DataFrame:
    """One row per value with a column per class of ending, those with most failures first; the rest is one row.

    `rates` are rows of `failure_rates` of one dimension. Numbers keep their own order. Columns: `value`, `runs_tried`,
    the words of OUTCOME (running counts as undecided here), `others` (further values that a row covers).
    """
    shaped = rates.select(
        "value",
        "runs_tried",
        (pl.col("runs_completed") - pl.col("runs_held")).alias("completed"),
        *(pl.col(f"runs_{name}").alias(name) for name in _COUNTS),
        (pl.col("runs_tried") - pl.col("runs_judged")).alias("undecided"),
        "runs_failed",
        others=pl.lit(0, pl.Int64),
    )
    if shaped.height > limit:
        ordered = shaped.sort("runs_failed", "runs_tried", "value", descending=[True, True, False])
        others = ordered.slice(limit - 1)
        summed = others.select(pl.exclude("value").sum()).with_columns(
            value=pl.lit("others"), others=pl.lit(others.height, pl.Int64)
        )
        kept = shaped.join(ordered.head(limit - 1).select("value"), on="value", how="semi", maintain_order="left")
        shaped = pl.concat([kept, summed.select(shaped.columns)])
    is_numeric = rates["value"].cast(pl.Float64, strict=False).null_count() == 0
    is_dated = rates.height > 0 and rates["dimension"][0] == "day"
    if is_numeric or is_dated:
        return shaped
    return shaped.sort(pl.col("others") > 0, -pl.col("runs_failed"), -pl.col("runs_tried"), "value")


def pattern_name(dimension: str, value: str) -> str:
    """A setting in short.

    >>> pattern_name("tp", "8"), pattern_name("zero_stage", "1"), pattern_name("strategy", "DP+TP")
    ('TP8', 'ZeRO-1', 'DP+TP')
    >>> pattern_name("strategy", "DP"), pattern_name("strategy", "none")  # beside DP+TP, DP means nothing else
    ('DP alone', 'one GPU')
    """
    if dimension == "strategy":
        return "one GPU" if value == "none" else value if "+" in value else f"{value} alone"
    return f"{_NAMES.get(dimension, dimension.upper())}{value}"


def patterns(rates: pl.DataFrame, overall: float, limit: int = 9) -> list[Pattern]:
    """The settings that most surely fail, by the lower end of their interval; settings that every run shares stay out.

    `rates` are rows of `failure_rates` of the dimensions PATTERNS, `overall` is the failure rate of all those runs.
    """
    varied = rates.filter(
        pl.col("dimension").is_in(list(PATTERNS)),
        pl.col("runs_judged") >= INTERVAL_RUNS,
        pl.len().over("dimension") > 1,
    ).sort("failure_rate_low", "runs_judged", descending=True)
    return [
        Pattern(
            dimension=row["dimension"],
            name=pattern_name(row["dimension"], row["value"]),
            judged=row["runs_judged"],
            failed=row["runs_failed"],
            rate=row["failure_rate"],
            low=row["failure_rate_low"],
            high=row["failure_rate_high"],
            is_above=row["failure_rate_low"] > overall,
        )
        for row in varied.head(limit).iter_rows(named=True)
    ]


def hours_figure(hours: float) -> str:
    """GPU-hours in digits that suit their size.

    >>> hours_figure(1234.5), hours_figure(12.34), hours_figure(0.0123), hours_figure(0)
    ('1,234', '12.3', '0.0123', '0')
    """
    if hours >= 100:
        return number(hours)
    return number(hours, 1) if hours >= 1 else significant(hours)


def overall_rate(totals: Row) -> float | None:
    """Failed over judged runs; None when nothing could be judged."""
    return totals["runs_failed"] / totals["runs_judged"] if totals["runs_judged"] else None


def rate_without_cut_off(totals: Row) -> float | None:
    """The rate if the logs that stop without a reason were only copied too early; None when nothing else is left."""
    cut_off = totals["runs_cut_off"]
    judged = totals["runs_judged"] - cut_off
    return (totals["runs_failed"] - cut_off) / judged if judged else None
