"""Scaling efficiency of a set of lines against a chosen baseline. Pure.

Efficiency is MFU(N) / MFU(baseline). Within one line model, sequence and card are the same, so the ratio of
tokens/s/GPU is the same number; it serves where no MFU can be computed.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

MAX_LINES = 6


@dataclass(frozen=True)
class Baseline:
    """What 100 % is: the line's "best" point, its "first" (smallest node count), or the point at `num_nodes`."""

    kind: str
    num_nodes: int | None = None

    @classmethod
    def parse(cls, text: str) -> Baseline:
        """Reads "best", "first" or a node count; anything else is "best".

        >>> Baseline.parse("8"), Baseline.parse("?")
        (Baseline(kind='nodes', num_nodes=8), Baseline(kind='best', num_nodes=None))
        """
        if text.isascii() and text.isdigit():
            return cls("nodes", int(text))
        return cls("first") if text == "first" else cls("best")


def against(points: pl.DataFrame, baseline: Baseline) -> pl.DataFrame:
    """Adds `baseline_num_nodes`, `scaling_efficiency` (fraction) and `ideal_tokens_per_s` to each point.

    `points` has one row per `line` and `num_nodes`. A line without a point at the chosen node count keeps NULL. The
    ideal is the baseline's tokens/s times the growth in GPUs; it is NULL below the baseline.
    """
    speed = pl.col("tokens_per_s_per_gpu")
    if baseline.kind == "best":
        bases = points.sort("num_nodes").filter(speed == speed.max().over("line"))
    elif baseline.kind == "first":
        bases = points.filter(pl.col("num_nodes") == pl.col("num_nodes").min().over("line"))
    else:
        bases = points.filter(pl.col("num_nodes") == baseline.num_nodes)
    bases = bases.unique("line", keep="first", maintain_order=True).select(
        "line",
        baseline_num_nodes="num_nodes",
        base_speed="tokens_per_s_per_gpu",
        base_tokens_per_s="tokens_per_s",
        base_gpus="num_gpus",
    )
    ideal = pl.col("base_tokens_per_s") * pl.col("num_gpus") / pl.col("base_gpus")
    return (
        points.join(bases, on="line", how="left", maintain_order="left")
        .with_columns(
            scaling_efficiency=speed / pl.col("base_speed"),
            ideal_tokens_per_s=pl.when(pl.col("num_nodes") >= pl.col("baseline_num_nodes")).then(ideal),
        )
        .drop("base_speed", "base_tokens_per_s", "base_gpus")
    )


def drawn_lines(points: pl.DataFrame) -> list[str]:
    """The lines to draw, at most six: those with most node counts, in the order given. Single points are no line."""
    counts = points.group_by("line", maintain_order=True).len().filter(pl.col("len") > 1)
    kept = counts.sort("len", descending=True, maintain_order=True).head(MAX_LINES)["line"].to_list()
    return [line for line in counts["line"] if line in kept]
