"""A sweep's cells (model x accelerators x sequence x batch): how well an estimate ranks the layouts within each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.physics.layouts import Array

SMALLEST = 8
"""Cells with fewer runs are not ranked."""
FAR = 2.0
"""A run that took more than so many times its estimate waited for what no layout decides."""
NOISE = 0.1
"""What equal runs of a sweep differ by (the playbook's, on 32 nodes): closer ones have no order."""


@dataclass(frozen=True)
class Ranking:
    """Over all cells: top-5 hits (a run within 2 % of the best is among the five that the estimate likes most), mean
    rank correlation, regret of the estimate's favourite (mean, median, and mean over the cells whose favourite took at
    most FAR times its estimate; NaN without such), errors on the fastest quarter of each cell, and the mean share of
    pairs more than NOISE apart that are in the measured order."""

    cells: int
    top5: int
    spearman: float
    regret: float
    median_regret: float
    near_regret: float
    best_quarter_median: float
    pairs_right: float


def ranks(values: Array) -> Array:
    """Ranks; equal values, as of a layout that was run twice, share the mean of theirs."""
    return pl.Series(values).rank("average").to_numpy()


def spearman(one: Array, other: Array) -> float:
    """Rank correlation; 0 where either side has all values alike, which order nothing."""
    if np.ptp(one) == 0 or np.ptp(other) == 0:
        return 0.0
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def favourite_s(predicted: Array, measured: Array) -> float:
    """What the runs of the smallest estimate took, in the mean where a layout was run more than once."""
    return float(np.mean(measured[predicted == predicted.min()]))


def _pairs_right(predicted: Array, measured: Array) -> float:
    """Share of the pairs more than NOISE apart that are in the measured order; NaN without such pairs."""
    one, other = np.triu_indices(measured.size, 1)
    by_measure, by_estimate = np.log(measured[one] / measured[other]), np.log(predicted[one] / predicted[other])
    is_far = np.abs(by_measure) > np.log1p(NOISE)
    return float(np.mean((by_measure * by_estimate > 0)[is_far])) if is_far.any() else float("nan")


def rank_cells(cell_of: Sequence[object], predicted: Array, measured: Array, *, smallest: int = SMALLEST) -> Ranking:
    """Judge `predicted` step times against `measured` ones within each cell of `smallest` runs and more."""
    both = np.isfinite(predicted) & np.isfinite(measured)
    cells: dict[object, list[int]] = {}
    for index in np.flatnonzero(both):
        cells.setdefault(cell_of[index], []).append(int(index))
    top5, orders, regret, is_near, quarter, pairs = 0, [], [], [], [], []
    large = [np.array(indices) for indices in cells.values() if len(indices) >= smallest]
    for indices in large:
        best = measured[indices].min()
        liked = indices[np.argsort(predicted[indices])]
        top5 += bool(best / measured[liked[:5]].min() >= 0.98)
        favourite = favourite_s(predicted[indices], measured[indices])
        regret.append(1 - best / favourite)
        is_near.append(favourite <= FAR * predicted[liked[0]])
        orders.append(spearman(predicted[indices], measured[indices]))
        pairs.append(_pairs_right(predicted[indices], measured[indices]))
        fast = indices[np.argsort(measured[indices])][: max(3, len(indices) // 4)]
        quarter.append(np.abs(predicted[fast] / measured[fast] - 1))
    return Ranking(
        cells=len(large),
        top5=top5,
        spearman=float(np.mean(orders)),
        regret=float(np.mean(regret)),
        median_regret=float(np.median(regret)),
        near_regret=float(np.mean(np.array(regret)[is_near])) if any(is_near) else float("nan"),
        best_quarter_median=float(np.median(np.concatenate(quarter))),
        pairs_right=float(np.nanmean(pairs)),
    )


_CELL = ("model", "accelerator", "num_gpus", "seq_len", "global_batch_tokens")


def fastest_quarter(table: pl.DataFrame, seconds: Array) -> NDArray[np.bool_]:
    """Mask of the fastest quarter of each cell of at least SMALLEST runs, and of all runs of smaller cells."""
    names = [name for name in _CELL if name in table.columns]
    known = table.select(names).with_columns(s=pl.Series(seconds).fill_nan(None))
    count, limit = pl.col("s").count().over(names), pl.col("s").quantile(0.25, "higher").over(names)
    return known.select(((count < SMALLEST) | (pl.col("s") <= limit)).fill_null(False).alias("kept"))["kept"].to_numpy()
