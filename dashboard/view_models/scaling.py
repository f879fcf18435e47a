"""Scaling efficiency of a set of lines against a chosen baseline: tokens/s/GPU over that of the baseline."""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from sweepscope.dashboard.format.devices import CPU, are_ranks
from sweepscope.dashboard.format.devices import noun as device_noun
from sweepscope.dashboard.selection.slices import Slice

MAX_LINES = 6
COST = "usd_per_m_tokens"


@dataclass(frozen=True)
class Baseline:
    """What 100 % is: the line's "best" point, its "first" (smallest size), or the point at `size`."""

    kind: str
    size: int | None = None

    @classmethod
    def parse(cls, text: str) -> Baseline:
        """Reads "best", "first" or a size; anything else is "best".

        >>> Baseline.parse("8"), Baseline.parse("?")
        (Baseline(kind='size', size=8), Baseline(kind='best', size=None))
        """
        if text.isascii() and text.isdigit():
            return cls("size", int(text))
        return cls("first") if text == "first" else cls("best")


def curves_elsewhere(chosen: Slice, found: pl.DataFrame) -> list[tuple[Slice, str, int]]:
    """Other grids with a curve: each with a model of it and its node counts, the longest first.

    `found` are rows of `queries.scaling.grids_with_curves`.
    """
    grids = [
        (Slice(chosen.origin, row["accelerator"], row["seq_len"], row["gbs_tokens"]), row["model"], row["num_sizes"])
        for row in found.iter_rows(named=True)
    ]
    return [grid for grid in grids if grid[0] != replace(chosen, sweep=None)]


def size_noun(points: pl.DataFrame) -> str:
    """What the curves grow in: "node", or "GPU" ("CPU rank") where a node count has several counts of them."""
    per_node = points.group_by("num_nodes").agg(pl.col("num_gpus").n_unique())
    return "node" if (per_node["num_gpus"] == 1).all() else device_noun(CPU if are_ranks(points) else None)


def with_size(points: pl.DataFrame, noun: str) -> pl.DataFrame:
    """Adds `size` (nodes or GPUs) and keeps one point per line and size, the fastest.

    The same GPUs on fewer nodes are another cell; where the curve grows in GPUs, the better of the two is kept.
    """
    sized = points.with_columns(size=pl.col("num_nodes" if noun == "node" else "num_gpus")).drop_nulls("size")
    fastest = sized.sort("tokens_per_s_per_gpu", descending=True).unique(["line", "size"], keep="first")
    return sized.join(fastest.select("line", "size", "run_id"), on=["line", "size", "run_id"], maintain_order="left")


def against(points: pl.DataFrame, baseline: Baseline) -> pl.DataFrame:
    """Adds `baseline_size`, `scaling_efficiency` (fraction) and `ideal_tokens_per_s` to each point.

    `points` has one row per `line` and `size`. A line without a point at the chosen size keeps NULL. The ideal is the
    baseline's tokens/s times the growth in GPUs; it is NULL below the baseline.
    """
    speed = pl.col("tokens_per_s_per_gpu")
    if baseline.kind == "best":
        bases = points.sort("size").filter(speed == speed.max().over("line"))
    elif baseline.kind == "first":
        bases = points.filter(pl.col("size") == pl.col("size").min().over("line"))
    else:
        bases = points.filter(pl.col("size") == baseline.size)
    base = {"base_speed": "tokens_per_s_per_gpu", "base_tokens_per_s": "tokens_per_s", "base_gpus": "num_gpus"}
    bases = bases.unique("line", keep="first", maintain_order=True).select("line", baseline_size="size", **base)
    ideal = pl.col("base_tokens_per_s") * pl.col("num_gpus") / pl.col("base_gpus")
    return (
        points.join(bases, on="line", how="left", maintain_order="left")
        .with_columns(
            scaling_efficiency=speed / pl.col("base_speed"),
            ideal_tokens_per_s=pl.when(pl.col("size") >= pl.col("baseline_size")).then(ideal),
        )
        .drop(*base)
    )


def drawn_lines(points: pl.DataFrame) -> list[str]:
    """The lines to draw, at most six: those with most sizes, in the order given. Single points are no line."""
    counts = points.group_by("line", maintain_order=True).len().filter(pl.col("len") > 1)
    kept = counts.sort("len", descending=True, maintain_order=True).head(MAX_LINES)["line"].to_list()
    return [line for line in counts["line"] if line in kept]
