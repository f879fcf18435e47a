"""Sentences on two sweeps, each computed from the layouts that either has completed (`queries.sweeps.pairs`)."""

from __future__ import annotations

import polars as pl

from sweepscope.dashboard.format.numbers import NBSP, count, number, part_of, percent, plain
from sweepscope.dashboard.queries.query import Row

HOW_TO_READ = (
    "**How to read it.** A dot is a layout that both sweeps completed on the same work: model, GPUs, sequence, batch, "
    "degrees, micro-batch, ZeRO stage and recomputation. Above the line the second sweep is faster. Framework, "
    "accelerator, software and precision are not matched: they are what the sweeps differ in.",
    "**What it hides.** A layout that one sweep never ran, or that failed there, is in no figure here; the coverage "
    "counts those.",
)


def option(row: Row) -> str:
    """A sweep in a menu."""
    return f"{row['sweep']} ({row['origin']}, {count(row['layouts'], 'layout')})"


def answer(pairs: pl.DataFrame, first: str, second: str) -> str:
    """How many layouts both have, of how many, and how their speeds compare on those."""
    ours, theirs = (int(pairs[name].count()) for name in ("tokens_per_s_per_gpu", "other_tokens_per_s_per_gpu"))
    both = pairs.drop_nulls("ratio")
    coverage = f"{number(both.height)} of {count(ours, 'layout')} of {first} and {number(theirs)} of {second}"
    if both.is_empty():
        return f"**Nothing to compare: {first} and {second} have no completed layout in common** ({coverage})."
    shares = f"{part_of(both.height / ours)} and {part_of(both.height / theirs)}"
    middle = both["ratio"].median()
    gain = float(middle) - 1 if isinstance(middle, (int, float)) else 0.0
    faster = int((both["ratio"] > 1).sum())
    word = "faster" if gain >= 0 else "slower"
    return (
        f"**On the layouts that both completed, {second} is {percent(abs(gain))} {word} in the median**, and faster on "
        f"{number(faster)} of {number(both.height)}. Those are {coverage}: {shares}."
    )


def hover(row: Row, first: str, second: str) -> str:
    """A layout, and its speed in both sweeps."""
    size = f"{row['model']}, {count(row['num_gpus'], 'GPU')}"
    speeds = [
        f"{name}: {number(row[column])} tokens/s/GPU"
        for name, column in ((first, "tokens_per_s_per_gpu"), (second, "other_tokens_per_s_per_gpu"))
    ]
    change = f"{percent(row['ratio'] - 1)}{NBSP}against the first"
    return "<br>".join([f"<b>{plain(size)}</b>", plain(str(row["layout"])), *map(plain, speeds), change])


def alt(both: int) -> str:
    """The chart in a sentence."""
    return f"Throughput of {count(both, 'layout')} in the second sweep over that in the first, with the line of equals."
