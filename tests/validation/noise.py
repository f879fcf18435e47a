"""How well a perfect estimate would rank runs: what repeats of a run leave of rank correlation and of regret.

Runs that differ in nothing that a table states differ in what they took. An estimate of what a layout takes as a rule,
however good, orders single runs no better than the rule itself does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.physics.layouts import Array
from tests.validation.cells import SMALLEST, spearman

DRAWS, SEED = 200, 0
FEWEST = 8
"""Pairs of equal runs that a size of cluster needs to have noise of its own; below, all of the table count."""


@dataclass(frozen=True)
class Ceiling:
    """Means over cells of what the rule behind the runs reaches on runs with noise: rank correlation, and regret of the
    layout that is fastest as a rule. `pairs` of equal runs, which differ by `apart` in the median (a share)."""

    cells: int
    spearman: float
    regret: float
    pairs: int
    apart: float


def apart(layouts: Sequence[object], seconds: Array) -> Array:
    """Logarithms of slower over faster of every pair of runs of one layout."""
    of: dict[object, list[float]] = {}
    for layout, spent in zip(layouts, seconds, strict=True):
        of.setdefault(layout, []).append(float(np.log(spent)))
    pairs = [abs(a - b) for runs in of.values() for at, a in enumerate(runs) for b in runs[:at]]
    return np.array(pairs)


def ceiling(cells: Sequence[object], layouts: Sequence[object], sizes: Sequence[object], seconds: Array) -> Ceiling:
    """Ranking of runs by the rule behind them, within the cells of SMALLEST runs and more.

    Noise only slows: a run takes what the rule has or, as often, as much longer as the slower of two equal runs takes.
    The rule is what was measured, drawn together by what noise adds to its spread, and runs are drawn anew from it.

    Args:
        cells: the cell of each run; layouts in it compete.
        layouts: all that is stated of each run; equal ones are repeats.
        sizes: what noise depends on, as the number of accelerators.
        seconds: what each run took.
    """
    frame = pl.DataFrame({"at": range(len(seconds)), "size": sizes})
    everywhere = apart(layouts, seconds)
    if not everywhere.size:
        return Ceiling(0, float("nan"), float("nan"), 0, float("nan"))
    noise: dict[object, Array] = {}
    for (size,), rows in frame.group_by("size"):
        at = rows["at"].to_list()
        own = apart([layouts[i] for i in at], seconds[at])
        noise[size] = own if own.size >= FEWEST else everywhere
    members: dict[object, list[int]] = {}
    for at, cell in enumerate(cells):
        members.setdefault(cell, []).append(at)
    large = [at for at in members.values() if len(at) >= SMALLEST]
    draw = np.random.default_rng(SEED)
    found = [_of_cell(np.log(seconds[at]), noise[sizes[at[0]]], draw) for at in large]
    means = np.mean(found, axis=0) if found else (float("nan"), float("nan"))
    return Ceiling(
        len(large), float(means[0]), float(means[1]), everywhere.size, float(np.expm1(np.median(everywhere)))
    )


def _of_cell(measured: Array, slower: Array, draw: np.random.Generator) -> tuple[float, float]:
    """(rank correlation, regret) of the rule behind logarithms of times, under noise of `slower` or none."""
    drawn = np.concatenate([slower, np.zeros_like(slower)])
    spread = float(measured.var())
    kept = np.sqrt(max(1.0 - float(drawn.var()) / spread, 0.0)) if spread else 0.0
    rule = measured.mean() + kept * (measured - measured.mean())
    orders, regrets = [], []
    for _ in range(DRAWS):
        again = rule + draw.choice(drawn, rule.size)
        orders.append(spearman(rule, again))
        regrets.append(-np.expm1(again.min() - again[np.argmin(rule)]))
    return float(np.mean(orders)), float(np.mean(regrets))
