"""A plan: which candidates to run within a budget of GPU-hours, for each purpose. Requests and runs in, picks out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from sweepscope.pipeline.estimate.planning.candidates import Pool, Terms, pool_of
from sweepscope.pipeline.estimate.planning.order import Pick, as_listed, by_doubt, by_gain
from sweepscope.pipeline.estimate.planning.variations import variations
from sweepscope.pipeline.estimate.search.enumerate import Request
from sweepscope.pipeline.estimate.search.search import search

BEYOND = -0.15
"""Margin of a plan for memory: layouts are looked at up to this much above what an accelerator has."""
MOST_LIKELY_OOM = {"memory": 0.95}
TOO_DEAR = "over what is left of the budget"
Refuse = Callable[[dict[str, Any]], str | None]
"""Why a layout, a row of a search with `num_gpus`, is not to be run, or None."""


@dataclass(frozen=True)
class Plan:
    """`picks`, the most informative first; `excluded`: reason to layouts left out; `pools`: one per cell."""

    picks: tuple[Pick, ...]
    excluded: dict[str, int]
    pools: tuple[Pool, ...]

    @property
    def hours(self) -> float:
        """Accelerator-hours of all picks."""
        return sum(pick.hours for pick in self.picks)


@dataclass(frozen=True)
class Budget:
    """Accelerator-hours to spend, and how many runs at most."""

    gpu_hours: float
    most: int


def make_plan(
    cells: Sequence[tuple[Request, pl.DataFrame]],
    purpose: str,
    terms: Terms,
    budget: Budget,
    refuse: Refuse = lambda _row: None,
) -> Plan:
    """The runs worth making for a purpose (a word of PLAN_PURPOSE).

    Args:
        cells: question and measured runs of each cell, smallest first; several for scaling.
        purpose: what the plan is for.
        terms: what each run is.
        budget: where it ends.
        refuse: reason why the framework that is to run them cannot run a layout.
    """
    if purpose == "memory":
        terms = replace(terms, margin=min(terms.margin, BEYOND))
    excluded: Counter[str] = Counter()
    pools = []
    for request, runs in cells:
        pool = _pool(request, runs, terms, purpose)
        kept, refused = _accepted(pool, refuse)
        pools.append(kept)
        excluded.update(pool.excluded)
        excluded.update(refused)
    order = {"memory": by_doubt, "ablation": as_listed}.get(purpose, by_gain)
    picks, dear = _spend([order(pool) for pool in pools], budget)
    excluded.update({TOO_DEAR: dear} if dear else {})
    return Plan(tuple(picks), dict(excluded.most_common()), tuple(pools))


def _pool(request: Request, runs: pl.DataFrame, terms: Terms, purpose: str) -> Pool:
    if purpose != "ablation":
        return pool_of(request, runs, terms, most_likely_oom=MOST_LIKELY_OOM.get(purpose, 0.5))
    found = search(request, top=1, margin=terms.margin)
    return pool_of(request, runs, terms, found=replace(found, layouts=variations(request, found.layouts, runs)))


def _accepted(pool: Pool, refuse: Refuse) -> tuple[Pool, Counter[str]]:
    """The pool without what the framework cannot run, and the reasons."""
    reasons = [refuse({**row, "num_gpus": pool.request.num_gpus}) for row in pool.rows.iter_rows(named=True)]
    kept = [at for at, reason in enumerate(reasons) if reason is None]
    belief = replace(pool.belief, centre_s=pool.belief.centre_s[kept], spread=pool.belief.spread[kept])
    fewer = replace(
        pool,
        rows=pool.rows[kept],
        belief=belief,
        points=pool.points[kept],
        least_s=pool.least_s[kept],
        hours=pool.hours[kept],
    )
    return fewer, Counter(reason for reason in reasons if reason is not None)


def _spend(streams: list[Iterator[Pick]], budget: Budget) -> tuple[list[Pick], int]:
    """(picks of the streams in turn while the budget lasts, picks that it does not allow)."""
    picks: list[Pick] = []
    left, dear = budget.gpu_hours, 0
    waiting = list(streams)
    while waiting and len(picks) < budget.most:
        for stream in list(waiting):
            pick = next(stream, None)
            if pick is None:
                waiting.remove(stream)
            elif pick.hours > left:
                dear += 1
            elif len(picks) < budget.most:
                picks.append(pick)
                left -= pick.hours
    return picks, dear
