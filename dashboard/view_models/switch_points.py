"""Where the layout of a question has to change: the fastest of each kind over cluster sizes and batches, and runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.sizes import doublings
from sweepscope.pipeline.estimate.search.switch_points import (
    Flip,
    flips_over_gpus,
    least_batch,
    over_batches,
    over_gpus,
)

GPUS, BATCH = "num_gpus", "gbs_tokens"
_FARTHER = 16
"""Times beyond the question's own value that either axis goes."""
_LEAST_NODES = 512
_SMALLEST_PART = 64
"""Of the question's batch, down to which smaller ones are tried."""


@dataclass(frozen=True)
class Switches:
    """The fastest layout of each kind at each value of both axes, and what follows.

    `base_mfu` is that of the smallest cluster that fits, None where none of `counts` does; `least_tokens` the smallest
    batch that keeps 90 % of it on the question's accelerators.
    """

    counts: tuple[int, ...]
    over_gpus: pl.DataFrame
    over_batches: pl.DataFrame
    flips: tuple[Flip, ...]
    base_mfu: float | None
    least_tokens: int | None


def counts_for(num_gpus: int, gpus_per_node: int) -> list[int]:
    """Cluster sizes from one node to well beyond the question's, doubling, the question's among them.

    >>> counts_for(24, 8)
    [8, 16, 24, 32, 64, 128, 256, 512, 1024, 2048, 4096]
    """
    last = max(_FARTHER * num_gpus, _LEAST_NODES * gpus_per_node)
    powers = [count for count in doublings(gpus_per_node, 2 * last) if count <= last]
    return sorted({*powers, num_gpus} if num_gpus >= gpus_per_node else powers)


def batches_around(gbs: int) -> list[int]:
    """Batches in sequences: the question's, halved as long as they are whole, at most to a 64th, and doubled.

    >>> batches_around(12)
    [3, 6, 12, 24, 48, 96, 192]
    """
    parts = doublings(1, _SMALLEST_PART)
    return sorted(
        {*(gbs // part for part in parts if gbs % part == 0), *(gbs * part for part in parts if part <= _FARTHER)}
    )


@lru_cache(maxsize=24)
def switches_for(request: Request) -> Switches:
    """Both axes of a question, kept for the next reader of the same one."""
    cluster = request.asked.cluster
    counts = counts_for(request.num_gpus, cluster.gpus_per_node)
    sized = over_gpus(request, counts)
    first = sized.filter(pl.col(GPUS) == pl.col(GPUS).min())
    base = first["est_mfu"].max()
    base_mfu = float(base) if isinstance(base, int | float) else None
    batched = over_batches(request, batches_around(request.gbs))
    least = least_batch(batched, base_mfu) if base_mfu is not None else None
    flips = flips_over_gpus(sized, counts, request.gbs, cluster.gpus_per_domain)
    return Switches(tuple(counts), sized, batched, tuple(flips), base_mfu, least)


def measured(runs: pl.DataFrame, request: Request, axis: str) -> pl.DataFrame:
    """The fastest run of each kind at each value of an axis, all else as asked; `runs` as `queries.explorer.alike`."""
    asked, domain = request.asked, request.asked.cluster.gpus_per_domain
    fixed = pl.col(BATCH) == request.gbs * asked.seq_len if axis == GPUS else pl.col(GPUS) == request.num_gpus
    tp, pp = pl.col("tp").fill_null(1), pl.col("pp").fill_null(1)
    kind = (
        pl.when(tp > domain)
        .then(pl.lit("tensor_out"))
        .when(pp > 1)
        .then(pl.lit("pipeline"))
        .when(tp > 1)
        .then(pl.lit("tensor"))
        .otherwise(pl.lit("data"))
    )
    here = runs.filter(fixed & (pl.col("seq_len") == asked.seq_len) & pl.col("mfu").is_not_null())
    ordered = here.with_columns(kind=kind).sort("mfu", "run_id", descending=[True, False])
    return ordered.unique([axis, "kind"], keep="first", maintain_order=True).sort(axis, "kind")
