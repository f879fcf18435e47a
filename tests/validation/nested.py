"""What hangs on how errors weigh in the playbook's fit, and on which runs an estimate is scored.

Nothing is chosen here: `Recipe.weights` are chosen within each fit. These tables show what other choices and other
criteria would have given, and errors on sets of runs that measurement alone selects, which every version shares.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.calibration.cross_validate import (
    BEATEN,
    Criterion,
    Unseen,
    choose_weights,
    fastest,
    shortfall,
    unseen_step_s,
)
from sweepscope.pipeline.estimate.calibration.fit import figures
from sweepscope.pipeline.estimate.calibration.recipe_rows import Rows, Weights
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.schemas.thresholds import PENALISED_RATIO
from tests.validation.cells import rank_cells


def near_runs(rows: Rows, predicted: Array) -> Array:
    """Predictions of runs at most PENALISED_RATIO times slower than predicted; NaN for the others."""
    return np.where(rows.step_time_s <= PENALISED_RATIO * predicted, predicted, np.nan)


def beaten(rows: Rows, predicted: Array) -> float:
    """Share of runs that took less than BEATEN times what was predicted."""
    ratio = rows.step_time_s / predicted
    return float(np.mean(ratio[np.isfinite(ratio)] < BEATEN))


def healthy_error(rows: Rows, predicted: Array) -> float:
    """Mean error of the runs that the estimate itself calls healthy."""
    return float(figures(near_runs(rows, predicted), rows.step_time_s)["mape"])


def capped_error(rows: Rows, predicted: Array) -> float:
    """Mean absolute logarithm of predicted over measured of all runs, each capped at PENALISED_RATIO."""
    errors = np.abs(np.log(predicted / rows.step_time_s))
    return float(np.mean(np.minimum(errors[np.isfinite(errors)], np.log(PENALISED_RATIO))))


def quarter_error(rows: Rows, predicted: Array) -> float:
    """The same of the fastest quarter of each cell."""
    return capped_error(rows, np.where(fastest(rows, 0.25), predicted, np.nan))


CRITERIA: dict[str, Criterion] = {
    "chosen in each fold, as published": shortfall,
    "chosen in each fold by the error of the fastest quarter": quarter_error,
    "chosen in each fold by the error of all runs": capped_error,
    "chosen in each fold by the error of healthy runs": healthy_error,
}


def _named(weights: Weights) -> str:
    return f"{weights.pull:g}/{weights.early:g}"


def choices(rows: Rows) -> pl.DataFrame:
    """Errors of left-out models by how errors weigh (`pull`/`early`): chosen in each fold, and the same for all."""
    groups = sorted(set(rows.groups))
    fixed = {one: unseen_step_s(rows, rows.everywhere, one) for one in rows.recipe.weights}
    entries = []
    for name, criterion in CRITERIA.items():
        chosen = {group: choose_weights(rows, rows.groups != group, criterion) for group in groups}
        unseen_s = np.full(rows.table.height, np.nan)
        for group, one in chosen.items():
            unseen_s[rows.groups == group] = fixed[one][rows.groups == group]
        on_all = choose_weights(rows, rows.everywhere, criterion)
        used = " ".join(_named(chosen[group]) for group in groups)
        entries.append((name, used, _named(on_all), *_scores(rows, unseen_s)))
    entries += [("the same in all folds", _named(one), "", *_scores(rows, unseen_s)) for one, unseen_s in fixed.items()]
    schema = [
        "how errors weigh",
        "pull/early",
        "on all runs",
        "healthy",
        "median %",
        "MAPE %",
        "best quarter %",
        "beaten by 10 % %",
        "top 5",
        "shortfall",
    ]
    return pl.DataFrame(entries, schema=schema, orient="row")


def _scores(rows: Rows, predicted: Array) -> tuple[float, ...]:
    near = figures(near_runs(rows, predicted), rows.step_time_s)
    ranking = rank_cells(rows.cells, predicted, rows.step_time_s)
    return (
        near["rows"],
        100 * near["median"],
        100 * near["mape"],
        100 * ranking.best_quarter_median,
        100 * beaten(rows, predicted),
        ranking.top5,
        shortfall(rows, predicted),
    )


def measured_sets(rows: Rows) -> dict[str, NDArray[np.bool_]]:
    """Sets of runs that no estimate has a say in."""
    everywhere = np.isfinite(rows.step_time_s)
    best: dict[tuple[object, ...], float] = {}
    for cell, seconds in zip(rows.cells, rows.step_time_s, strict=True):
        best[cell] = min(best.get(cell, np.inf), seconds if np.isfinite(seconds) else np.inf)
    slower = rows.step_time_s / np.array([best[cell] for cell in rows.cells])
    return {
        "fastest tenth of each cell": fastest(rows, 0.1),
        "fastest quarter of each cell": fastest(rows, 0.25),
        "fastest half of each cell": fastest(rows, 0.5),
        "within 1.5 times the fastest of its cell": everywhere & (slower <= 1.5),
        "within 3 times the fastest of its cell": everywhere & (slower <= 3.0),
        "all runs": everywhere,
    }


def on_measured_sets(unseen: Unseen) -> pl.DataFrame:
    """Errors of left-out models on `measured_sets`, the same runs whatever the version of the estimate."""
    rows, predicted = unseen.rows, unseen.step_time_s
    entries = []
    for name, chosen in measured_sets(rows).items():
        unseen_s = np.where(chosen, predicted, np.nan)
        found = figures(unseen_s, rows.step_time_s)
        entries.append(
            (
                name,
                found["rows"],
                100 * found["median"],
                100 * found["mape"],
                100 * capped_error(rows, unseen_s),
                100 * beaten(rows, unseen_s),
            )
        )
    schema = ["runs", "count", "median %", "MAPE %", "capped error, log %", "beaten by 10 % %"]
    return pl.DataFrame(entries, schema=schema, orient="row")
