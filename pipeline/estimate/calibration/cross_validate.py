"""Calibration: which constants are fitted on which rows, and how the fit is judged.

A recipe names its rows, the few constants that those rows determine, and where the search starts. Everything else stays
at the published values of `default`. Accuracy is only ever reported on rows that neither a fit nor the choice of how
its errors weigh has seen (`cross_validate`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.calibration.fit import Batch, fit, predict
from sweepscope.pipeline.estimate.calibration.recipe_rows import Rows, Weights
from sweepscope.pipeline.estimate.physics.estimate import allocated_bytes, step_seconds
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.schemas.thresholds import PENALISED_RATIO

NARROWING = (8.0, 4.0, 2.5, PENALISED_RATIO, PENALISED_RATIO, PENALISED_RATIO)
"""How near a run must come to the estimate to count, from fit to fit. A fit that begins far off takes runs for slow
that it does not yet explain; narrowed step by step (graduated non-convexity: Blake and Zisserman, 1987), it ends at
the same runs wherever it began."""
FAST_ERROR, BEATEN_SHARE, BEATEN = 0.05, 0.03, 0.9
"""What is asked of a bound: its median error on the fastest quarter of each cell, and the share of runs that may take
less than BEATEN times the estimate."""


def _indices(chosen: list[Batch]) -> NDArray[np.intp]:
    return np.concatenate([batch.indices for batch in chosen])


def _fit_step_s(
    rows: Rows, mask: NDArray[np.bool_], weights: Weights, begin: dict[str, float] | None = None, rounds: int = 25
) -> dict[str, float]:
    chosen = rows.within(mask & np.isfinite(rows.step_time_s))
    if not rows.recipe.time or not chosen:
        return {}
    indices = _indices(chosen)

    def residuals(constants: dict[str, float]) -> Array:
        predicted = predict(chosen, constants, rows.table.height, step_seconds)
        errors: Array = np.log(predicted[indices] / rows.step_time_s[indices])
        errors[errors > 0] *= weights.early
        return errors

    huber = 0.05 if rows.recipe.is_bound else 0.1
    return fit(residuals, dict(rows.recipe.time), begin=begin, pull=weights.pull, huber=huber, rounds=rounds)


def fit_time(rows: Rows, mask: NDArray[np.bool_], weights: Weights) -> dict[str, float]:
    """Fitted constants of a recipe's step times from the rows of `mask`."""
    key = weights, mask.tobytes()
    if key in rows.fits:
        return rows.fits[key]
    constants = dict(rows.recipe.time) if rows.recipe.is_bound else _fit_step_s(rows, mask, weights)
    for limit in NARROWING if rows.recipe.is_bound else ():
        ratio = rows.step_time_s / predict(rows.batches, constants, rows.table.height, step_seconds)
        near = (ratio < limit) & (ratio > min(0.5, 1.0 / limit))
        constants = _fit_step_s(rows, mask & near, weights, constants, rounds=25 if limit == PENALISED_RATIO else 4)
    rows.fits[key] = constants
    return constants


def fit_memory(rows: Rows, mask: NDArray[np.bool_]) -> dict[str, float]:
    """Fitted constants of a recipe's memory from the peaks and outcomes of the rows of `mask`."""
    measured, ended = mask & np.isfinite(rows.mem_bytes), mask & np.isfinite(rows.ran)
    chosen = rows.within(measured | ended)
    if not rows.recipe.memory or not chosen:
        return {}
    has_peak, has_outcome = np.flatnonzero(measured), np.flatnonzero(ended)

    def residuals(constants: dict[str, float]) -> Array:
        predicted = predict(chosen, constants, rows.table.height, allocated_bytes)
        errors: Array = np.log(predicted[has_peak] / rows.mem_bytes[has_peak])
        over = np.log(predicted[has_outcome] / rows.room_bytes[has_outcome])
        # Censored: a run that fitted says "no more than there is", one out of memory "more", and neither how much.
        missed = np.where(rows.ran[has_outcome] == 1, np.maximum(over, 0.0), np.maximum(-over, 0.0))
        return np.concatenate([errors, missed])

    huber = 0.05 if rows.recipe.is_bound else 0.1
    return fit(residuals, dict(rows.recipe.memory), pull=rows.recipe.memory_pull, huber=huber)


def unseen_step_s(rows: Rows, mask: NDArray[np.bool_], weights: Weights) -> Array:
    """Step time of each row of `mask` by a fit to the other groups of `mask`; NaN elsewhere."""
    out = np.full(rows.table.height, np.nan)
    for group in sorted(set(rows.groups[mask])):
        left_out = mask & (rows.groups == group)
        constants = fit_time(rows, mask & ~left_out, weights)
        out[left_out] = predict(rows.within(left_out), constants, rows.table.height, step_seconds)[left_out]
    return out


def fastest(rows: Rows, share: float) -> NDArray[np.bool_]:
    """Mask of the fastest `share` of each cell's measured runs: the nearest to what the hardware allows by
    measurement alone."""
    cells: dict[tuple[object, ...], list[int]] = {}
    names = rows.cells
    for index in np.flatnonzero(np.isfinite(rows.step_time_s)):
        cells.setdefault(names[index], []).append(int(index))
    out = np.zeros(rows.table.height, np.bool_)
    for indices in cells.values():
        order = np.argsort(rows.step_time_s[indices], kind="stable")
        out[np.array(indices)[order[: int(np.ceil(share * len(indices)))]]] = True
    return out


def shortfall(rows: Rows, predicted: Array) -> float:
    """How far predictions miss what is asked of a bound, in units of what is allowed: by how much the error of the
    fastest quarter exceeds FAST_ERROR, and the share of runs that beat the estimate BEATEN_SHARE.

    Both are of rows that measurement alone selects. The error of healthy runs is not: an estimate can leave out what it
    misses.
    """
    ratio = rows.step_time_s / predicted
    known = np.isfinite(ratio)
    error = np.median(np.abs(1.0 / ratio[known & fastest(rows, 0.25)] - 1.0))
    missed = error / FAST_ERROR - 1.0, np.mean(ratio[known] < BEATEN) / BEATEN_SHARE - 1.0
    return float(sum(max(part, 0.0) for part in missed))


Criterion = Callable[[Rows, Array], float]
"""How bad predicted step times of unseen rows are; NaN for rows that do not count."""


def choose_weights(rows: Rows, mask: NDArray[np.bool_], criterion: Criterion = shortfall) -> Weights:
    """Those of the recipe's weights under which fits predict the groups of `mask` best, each group left out in turn;
    the first of them where `mask` has a single group."""
    options = rows.recipe.weights
    if len(options) == 1 or len(set(rows.groups[mask])) == 1:
        return options[0]
    return min(options, key=lambda weights: criterion(rows, unseen_step_s(rows, mask, weights)))


def fit_recipe(rows: Rows, mask: NDArray[np.bool_] | None = None) -> dict[str, float]:
    """Fitted constants of a recipe from the rows of `mask` (all by default), on which its weights are chosen, too."""
    everywhere = rows.everywhere if mask is None else mask
    weights = choose_weights(rows, everywhere)
    return {**fit_time(rows, everywhere, weights), **fit_memory(rows, everywhere)}


@dataclass(frozen=True)
class Unseen:
    """Predictions of each row by a fit that has not seen the row's group."""

    rows: Rows
    step_time_s: Array
    mem_bytes: Array


def cross_validate(rows: Rows, on_group: Callable[[str], object] | None = None) -> Unseen:
    """Predictions of every group by a fit to the others, weights chosen on those too.

    `on_group` gets a line per group where that takes long.
    """
    seconds = np.full(rows.table.height, np.nan)
    bytes_ = np.full(rows.table.height, np.nan)
    for group in sorted(set(rows.groups)):
        if on_group is not None and len(rows.recipe.weights) > 1:
            on_group(f"{rows.recipe.profile}: leaving out {group}")
        left_out = rows.groups == group
        constants = fit_recipe(rows, ~left_out)
        chosen = rows.within(left_out)
        seconds[left_out] = predict(chosen, constants, rows.table.height, step_seconds)[left_out]
        bytes_[left_out] = predict(chosen, constants, rows.table.height, allocated_bytes)[left_out]
    return Unseen(rows, seconds, bytes_)
