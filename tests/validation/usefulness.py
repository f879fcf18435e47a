"""What the estimator is good for: do intervals hold what they promise, and do proposals find the best layout soon."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.advice.acquisition import Belief, believe, improvement
from sweepscope.pipeline.estimate.advice.next_runs import BOUND, EARLY
from sweepscope.pipeline.estimate.calibration.cross_validate import Unseen, fit_recipe
from sweepscope.pipeline.estimate.calibration.learn import cell_folds, learn, look, penalised_unseen
from sweepscope.pipeline.estimate.calibration.recipe_rows import Rows
from sweepscope.pipeline.estimate.learned.placement_patterns import PATTERNS
from sweepscope.pipeline.estimate.learned.track_record import residuals_by_pattern
from sweepscope.pipeline.estimate.physics.layouts import Array
from tests.validation.cells import SMALLEST

NEAR = 1.02
"""A layout that takes at most this much of the best's time counts as found."""
DRAWS = 20


def intervals(found: dict[str, Unseen]) -> pl.DataFrame:
    """Per profile: the share of rows of left-out groups that lie in the interval which the others give them."""
    today = datetime.now(UTC).date()
    rows = []
    for name, unseen in found.items():
        about = learn(unseen.rows, fit_recipe(unseen.rows), unseen, on=today).about
        for what in ("time", "memory", "penalty"):
            facts = about.get(what, {})
            if "interval_coverage" in facts:
                shown = "time with penalty" if what == "penalty" else what
                split = facts.get("split", about["physics_split"])
                rows.append((name, shown, facts["interval_rows"], 100 * facts["interval_coverage"], split))
    return pl.DataFrame(rows, schema=["profile", "what", "rows", "inside, % (80)", "split"], orient="row")


def _features(rows: Rows) -> Array:
    table = rows.table
    doublings = [np.log2(table[name].cast(pl.Float64).to_numpy()) for name in ("tp", "pp", "micro_batch_size")]
    return np.stack([*doublings, table["zero_stage_or_fsdp"].str.extract(r"(\d)").cast(pl.Float64).to_numpy()], axis=1)


def proposals(rows: Rows) -> pl.DataFrame:
    """Test runs until a layout within 2 % of the best was measured, from nothing; the penalty never saw the cell.

    In each cell of at least SMALLEST runs: layouts drawn at random, in the order of the physics, of the expectation,
    and as `next_runs` proposes them. `cost` is in step times of the best layout.
    """
    seen = look(rows, fit_recipe(rows))
    usable = np.isfinite(seen.step_time_s) & np.isfinite(rows.step_time_s)
    folds = cell_folds(rows)
    expected = penalised_unseen(rows, seen, usable, folds)
    features, ratios = _features(rows), np.log(rows.step_time_s / expected)
    facts: dict[str, list[tuple[int, float]]] = {}
    for fold in np.unique(folds[usable]):
        cell = np.flatnonzero(usable & (folds == fold))
        if cell.size < SMALLEST:
            continue
        measured = rows.step_time_s[cell]
        others = residuals_by_pattern(seen.codes[folds != fold], np.where(usable, ratios, np.nan)[folds != fold])
        lows = [others.interval(PATTERNS[code], "") for code in seen.codes[cell]]
        spread = np.array([max(-np.log(one.low), 0.02) if one else 0.1 for one in lows]) / BOUND
        belief = Belief(expected[cell], spread)
        chance = np.random.default_rng(0)
        facts.setdefault("drawn at random", []).extend(
            _tests(chance.permutation(cell.size).tolist(), measured) for _ in range(DRAWS)
        )
        facts.setdefault("by physics", []).append(_tests(np.argsort(seen.step_time_s[cell]).tolist(), measured))
        facts.setdefault("by expectation", []).append(_tests(np.argsort(expected[cell]).tolist(), measured))
        order = _proposed(belief, features[cell], seen.step_time_s[cell], measured)
        facts.setdefault("as proposed", []).append(_tests(order, measured))
    return pl.DataFrame(
        [
            (
                name,
                len(runs),
                float(np.mean([n for n, _ in runs])),
                float(np.median([n for n, _ in runs])),
                float(np.mean([cost for _, cost in runs])),
            )
            for name, runs in facts.items()
        ],
        schema=["order", "searches", "tests, mean", "tests, median", "cost, mean"],
        orient="row",
    )


def _tests(order: list[int], measured: Array) -> tuple[int, float]:
    """(tests, their time over the best's) until one is near the best."""
    hit = next(place for place, layout in enumerate(order) if measured[layout] <= NEAR * measured.min())
    return hit + 1, float(measured[order[: hit + 1]].sum() / measured.min())


def _proposed(belief: Belief, features: Array, physics: Array, measured: Array) -> list[int]:
    """The order in which layouts would be proposed: the most expected gain per time, given what was measured so far."""
    order = [int(np.argmin(belief.centre_s))]
    while len(order) < len(measured):
        left: NDArray[np.intp] = np.setdiff1d(np.arange(len(measured)), order)

        def of(places: NDArray[np.intp] | list[int]) -> Belief:
            return Belief(belief.centre_s[places], belief.spread[places])

        now = believe(of(left), features[left], of(order), features[order], measured[order])
        gain, _ = improvement(now, float(measured[order].min()), EARLY * physics[left])
        order.append(int(left[np.argmax(gain / now.centre_s)]))
    return order
