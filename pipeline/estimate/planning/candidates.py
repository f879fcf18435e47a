"""Candidates of one cell for a plan: what `next` knows of each layout, how sure that is, and whether it may not fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import erf, sqrt
from typing import Any

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.advice.acquisition import Belief
from sweepscope.pipeline.estimate.advice.near_equal import features
from sweepscope.pipeline.estimate.advice.next_runs import BOUND, EARLY, POOL, NextRuns, next_runs
from sweepscope.pipeline.estimate.learned.transfer import load_transfers, transfer_interval, with_transfers
from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.rows.open_ends import OPEN_ENDS, open_ends, with_open_ends
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.layout_table import room_bytes
from sweepscope.pipeline.estimate.search.search import Found, search
from sweepscope.pipeline.estimate.search.whatif import Choice, layouts_for

STARTUP_S = 180.0
"""Seconds before the first step where no run of the cell has them: imports, process groups, compilation and loading."""
LIKELIER_NOT = 0.5
"""Candidates that are likelier to run out of memory than not are left out, except where memory is the question."""

LISTED = "listed"
"""Column with the place of a layout in a list that has an order of its own."""


@dataclass(frozen=True)
class Terms:
    """What every run of a plan is: `steps`, and `startup_s` before them (None: as runs of the cell took).

    `margin` is the share of memory that the estimate must leave free; negative to look beyond what fits.
    """

    steps: int
    startup_s: float | None = None
    margin: float = 0.0


@dataclass(frozen=True)
class Pool:
    """Candidates of one cell, one row or entry each.

    Attributes:
        request: the cell's question.
        rows: layouts with the columns of a search and of `next`, and `oom_probability`.
        belief: step times as believed, by physics, track record and measured neighbours.
        points: where each lies among the others (`near_equal.features`).
        least_s: no step takes less.
        hours: accelerator-hours that each is expected to take.
        best: the fastest measured run of the cell (run_id, layout, step_time_s), or None.
        excluded: reason to number of layouts that are no candidates.
        basis: source of the uncertainty, as text.
        startup_s: seconds before the first step.
    """

    request: Request
    rows: pl.DataFrame
    belief: Belief
    points: Array
    least_s: Array
    hours: Array
    best: dict[str, Any] | None
    excluded: dict[str, int]
    basis: str
    startup_s: float

    @property
    def oom(self) -> Array:
        """Chance of each to run out of memory; an unknown one counts as none, for all rows fit by the estimate."""
        chance: Array = self.rows["oom_probability"].fill_null(0.0).to_numpy()
        return chance


def pool_of(
    request: Request,
    runs: pl.DataFrame,
    terms: Terms,
    *,
    found: Found | None = None,
    most_likely_oom: float = LIKELIER_NOT,
) -> Pool:
    """Candidates for the cell of `request`. `runs`: rows of the table `runs` of that cell, of any outcome.

    `found`: layouts to look at, where they are not to be those of a search with the terms' margin; in the order of
    their column LISTED, where they have one.
    """
    looked = found or search(request, top=POOL, margin=terms.margin)
    known = next_runs(
        request,
        runs,
        top=max(looked.layouts.height, 1),
        test_steps=terms.steps,
        startup_s=terms.startup_s,
        found=replace(looked, layouts=_with_intervals(request, looked.layouts)),
        keeps_alike=True,
    )
    rows = known.candidates.with_columns(oom_probability=oom_probability(known.candidates, room_bytes(request)))
    if LISTED in rows.columns:
        rows = rows.sort(LISTED)
    is_hopeless = pl.col("oom_probability").fill_null(0.0) > most_likely_oom
    excluded = {**looked.pruned, **known.excluded}
    if dropped := rows.filter(is_hopeless).height:
        excluded[f"likelier than {most_likely_oom:.0%} to run out of memory"] = dropped
    return _pool(request, rows.filter(~is_hopeless), known, excluded, terms)


def _pool(request: Request, rows: pl.DataFrame, known: NextRuns, excluded: dict[str, int], terms: Terms) -> Pool:
    centre = rows["believed_step_time_s"].to_numpy()
    high = rows["believed_hi_s"].fill_null(np.nan).to_numpy()
    spread = np.log(high / centre) / BOUND
    if not np.isfinite(spread).all():
        spread = np.where(np.isfinite(spread), spread, spread_elsewhere(request))
    startup = known.startup_s if known.startup_s is not None else STARTUP_S
    return Pool(
        request=request,
        rows=rows,
        belief=Belief(centre, spread),
        points=features(rows),
        least_s=EARLY * rows["est_step_time_s"].to_numpy(),
        hours=request.num_gpus * (startup + terms.steps * centre) / 3600.0,
        best=known.best,
        excluded=excluded,
        basis=known.basis,
        startup_s=startup,
    )


def _with_intervals(request: Request, layouts: pl.DataFrame) -> pl.DataFrame:
    """Rows of a search with the intervals of other frameworks' runs where their own has none, wider by what is open."""
    known = with_transfers(layouts, _stratum(request, layouts.height))
    if layouts.is_empty():
        return known
    at = layouts_for(request, [Choice.of(row) for row in layouts.iter_rows(named=True)])
    ends = open_ends(request.asked, at, estimate(request.asked, at))
    return with_open_ends(known.with_columns(pl.Series(name, ends[name], pl.Float64) for name in OPEN_ENDS))


def _stratum(request: Request, rows: int) -> pl.DataFrame:
    """STRATA of so many layouts of a request."""
    asked = request.asked
    return pl.select(
        generation=pl.repeat(asked.cluster.generation, rows, dtype=pl.String),
        is_below_16_bit=pl.repeat(asked.is_below_16_bit, rows, dtype=pl.Boolean),
    )


def spread_elsewhere(request: Request) -> float:
    """Standard deviation of the log of measured over estimated step time in runs of other frameworks."""
    asked = request.asked
    interval = transfer_interval(
        load_transfers(), "time", asked.cluster.generation, is_below_16_bit=asked.is_below_16_bit
    )
    # Without the file nothing is known: a factor of two either way at one standard deviation.
    return float(np.log(interval.high / interval.low) / (2.0 * BOUND)) if interval is not None else float(np.log(2.0))


def oom_probability(rows: pl.DataFrame, room: float) -> pl.Series:
    """Chance that each layout needs more than `room` bytes; NULL where no interval of its memory is known.

    Needs are log-normal around the middle of the 80 % interval of comparable runs' peaks (`est_mem_lo_bytes`,
    `est_mem_hi_bytes`), with the estimate's own allowance for fragmentation on top.
    """
    low, high = (rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in _MEMORY_ENDS)
    allowance = rows["est_mem_reserved_bytes"].to_numpy() / rows["est_mem_bytes"].to_numpy()
    middle, spread = np.sqrt(low * high) * allowance, np.log(high / low) / (2.0 * BOUND)
    beyond = np.log(middle / room) / np.maximum(spread, 1e-3)
    chance = pl.Series("oom_probability", [_normal(z) for z in beyond], dtype=pl.Float64)
    return chance.fill_nan(None)


_MEMORY_ENDS = ("est_mem_lo_bytes", "est_mem_hi_bytes")


def _normal(z: float) -> float:
    """The standard normal distribution's share below `z`."""
    return 0.5 * (1.0 + erf(z / sqrt(2.0)))
