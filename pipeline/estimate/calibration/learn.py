"""Learn a profile's track record from measured rows: residuals by pattern, and the penalty where it helps.

Every residual is of a row whose group the prediction had not seen: the physics leaves out a recipe's group, the penalty
a whole cell (model x accelerators x sequence x batch), because it is asked about unmeasured cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.calibration.cross_validate import Unseen, fit_memory
from sweepscope.pipeline.estimate.calibration.fit import predict, with_constants
from sweepscope.pipeline.estimate.calibration.recipe_rows import Rows
from sweepscope.pipeline.estimate.learned.penalty import (
    FACTORS,
    FEATURES,
    fit_penalty,
    penalty_features,
    unseen_slowdown,
)
from sweepscope.pipeline.estimate.learned.placement_patterns import CHOICES, PATTERNS, has_choice, pattern_codes
from sweepscope.pipeline.estimate.learned.track_record import FEWEST, TrackRecord, learned_penalty, residuals_by_pattern
from sweepscope.pipeline.estimate.physics.estimate import allocated_bytes, estimate
from sweepscope.pipeline.estimate.physics.layouts import Array

FEWEST_ROWS = 60
"""Rows below which a penalty would follow single runs."""
FEWEST_CELLS = 5
FEWEST_GROUPS = 3
"""Groups that a memory factor needs: one left out, and two more to choose its settings on."""
MOST_FOLDS = 30
"""Cells are dealt into at most that many folds; each costs a fit of a fraction of a second per thousand rows."""
WORTH = 0.9
"""A penalty is kept when its median error on unseen cells is below this share of the physics', its mean below it."""


@dataclass(frozen=True)
class Seen:
    """Rows with the physics fitted on all of them: pattern, features, estimated step time (NaN where there is none)."""

    codes: NDArray[np.int64]
    features: Array
    step_time_s: Array
    choices: frozenset[str]


def look(rows: Rows, constants: dict[str, float]) -> Seen:
    """Estimates of every row by the physics with these constants."""
    size = rows.table.height
    codes = np.zeros(size, np.int64)
    features, seconds = np.full((size, len(FEATURES)), np.nan), np.full(size, np.nan)
    choices: set[str] = set()
    for batch in rows.batches:
        asked = with_constants(batch.asked, constants)
        predicted = estimate(asked, batch.at)
        codes[batch.indices] = pattern_codes(batch.at, asked.cluster.gpus_per_domain)
        features[batch.indices] = penalty_features(asked, batch.at, predicted)
        seconds[batch.indices] = predicted.step_time_s
        choices |= {choice for choice in CHOICES if has_choice(batch.at, choice).any()}
    return Seen(codes, features, seconds, frozenset(choices))


def cell_folds(rows: Rows) -> NDArray[np.int64]:
    """The fold of each row: its cell's index, modulo MOST_FOLDS."""
    cells = rows.cells
    indices = {cell: index for index, cell in enumerate(sorted(set(cells), key=str))}
    return np.array([indices[cell] % MOST_FOLDS for cell in cells], np.int64)


def penalised_unseen(rows: Rows, seen: Seen, usable: NDArray[np.bool_], folds: NDArray[np.int64]) -> Array:
    """Step time by physics and penalty of each usable row, by a penalty that has not seen the row's fold, nor has the
    choice of its settings."""
    out = np.full(rows.table.height, np.nan)
    slowdown = rows.step_time_s[usable] / seen.step_time_s[usable]
    learned, _ = unseen_slowdown(seen.features[usable], slowdown, folds[usable])
    out[usable] = seen.step_time_s[usable] * learned
    return out


def needed_unseen(rows: Rows, features: Array) -> Array:
    """Peak memory in bytes of each row by an estimate and a memory factor that have both not seen the row's group, nor
    has the choice of the factor's settings. NaN for rows without measured memory."""
    out = np.full(rows.table.height, np.nan)
    groups = group_codes(rows)
    for group in np.unique(groups):
        physics = predict(rows.batches, fit_memory(rows, groups != group), rows.table.height, allocated_bytes)
        known = np.isfinite(physics) & np.isfinite(rows.mem_bytes) & np.isfinite(features).all(axis=1)
        others, left_out = known & (groups != group), known & (groups == group)
        model = fit_penalty(
            features[others], rows.mem_bytes[others] / physics[others], cells=groups[others], grid=FACTORS
        )
        out[left_out] = physics[left_out] * model.slowdown(features[left_out])
    return out


def group_codes(rows: Rows) -> NDArray[np.int64]:
    """The group of each row that its recipe leaves out together, as a number."""
    return np.unique(rows.table[rows.recipe.group].to_numpy(), return_inverse=True)[1].astype(np.int64)


def coverage(codes: NDArray[np.int64], ratios: Array, folds: NDArray[np.int64]) -> tuple[float, int]:
    """(share, rows) of held-out log ratios that lie in the interval which the other folds' rows give for their pattern.

    The share is NaN when no row has an interval.
    """
    inside = counted = 0
    known = np.isfinite(ratios)
    for fold in np.unique(folds[known]):
        others = residuals_by_pattern(codes[folds != fold], ratios[folds != fold])
        for index in np.flatnonzero(known & (folds == fold)):
            interval = others.interval(PATTERNS[codes[index]], "")
            if interval is not None:
                counted += 1
                inside += interval.low <= np.exp(ratios[index]) <= interval.high
    return (float(inside / counted) if counted else float("nan")), counted


def _errors(ratios: Array) -> dict[str, float]:
    errors = np.abs(np.exp(-ratios[np.isfinite(ratios)]) - 1.0)
    return {"median_ape": round(float(np.median(errors)), 4), "mape": round(float(np.mean(errors)), 4)}


def _ratios(measured: Array, predicted: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios: Array = np.log(measured / predicted)
    return np.where(np.isfinite(ratios), ratios, np.nan)


def _summary(codes: NDArray[np.int64], ratios: Array, folds: NDArray[np.int64]) -> dict[str, Any]:
    share, counted = coverage(codes, ratios, folds)
    found: dict[str, Any] = {"rows": int(np.isfinite(ratios).sum()), **_errors(ratios)}
    return {**found, "interval_coverage": round(share, 4), "interval_rows": counted} if counted >= FEWEST else found


def learn(rows: Rows, constants: dict[str, float], unseen: Unseen, *, on: date) -> TrackRecord:
    """The record of `rows`: `constants` are those fitted on all of them, `unseen` the predictions of cross-validation.

    `about` records the dataset, the date, and the errors on unseen rows and cells.
    """
    seen = look(rows, constants)
    time, memory = _ratios(rows.step_time_s, unseen.step_time_s), _ratios(rows.mem_bytes, unseen.mem_bytes)
    folds = cell_folds(rows)
    groups = group_codes(rows)
    about: dict[str, Any] = {
        "learned_on": rows.recipe.dataset,
        "learned_at": on.isoformat(),
        "physics_split": f"one {rows.recipe.group} out",
    }
    for name, ratios in (("time", time), ("memory", memory)):
        if np.isfinite(ratios).any():
            about[name] = _summary(seen.codes, ratios, groups)
    if "time" in about and rows.recipe.split != about["physics_split"]:
        about["time"]["split"] = rows.recipe.split
    usable = np.isfinite(seen.step_time_s) & np.isfinite(rows.step_time_s)
    penalised, penalty = np.full(rows.table.height, np.nan), None
    cells = len(np.unique(folds[usable]))
    if usable.sum() >= FEWEST_ROWS and cells >= FEWEST_CELLS:
        tried = _ratios(rows.step_time_s, penalised_unseen(rows, seen, usable, folds))
        about["penalty"] = {
            **_summary(seen.codes, tried, folds),
            "split": "one cell out",
            "cells": cells,
            **{f"physics_{name}": value for name, value in _errors(time).items()},
        }
        is_better = np.nanmean(np.abs(tried)) < np.nanmean(np.abs(time))
        if is_better and about["penalty"]["median_ape"] < WORTH * about["penalty"]["physics_median_ape"]:
            penalised = tried
            slowdown = rows.step_time_s[usable] / seen.step_time_s[usable]
            model = fit_penalty(seen.features[usable], slowdown, cells=folds[usable])
            penalty = learned_penalty(model, seen.features[usable])
        about["penalty"]["kept"] = penalty is not None
    needed, factor = np.full(rows.table.height, np.nan), None
    has_memory = np.isfinite(memory) & np.isfinite(seen.features).all(axis=1)
    if has_memory.sum() >= FEWEST_ROWS and len(np.unique(groups[has_memory])) >= FEWEST_GROUPS:
        tried = _ratios(rows.mem_bytes, needed_unseen(rows, seen.features))
        about["memory_factor"] = {**_summary(seen.codes, tried, groups), "split": about["physics_split"]}
        if about["memory_factor"]["mape"] < WORTH * about["memory"]["mape"]:
            needed = tried
            physics = predict(rows.batches, constants, rows.table.height, allocated_bytes)
            beside = rows.mem_bytes[has_memory] / physics[has_memory]
            model = fit_penalty(seen.features[has_memory], beside, cells=groups[has_memory], grid=FACTORS)
            factor = learned_penalty(model, seen.features[has_memory])
        about["memory_factor"]["kept"] = factor is not None
    return TrackRecord(
        profile=rows.recipe.profile,
        about=about,
        time=residuals_by_pattern(seen.codes, time),
        memory=residuals_by_pattern(seen.codes, memory),
        penalised=residuals_by_pattern(seen.codes, penalised),
        needed=residuals_by_pattern(seen.codes, needed),
        choices=seen.choices,
        penalty=penalty,
        memory_factor=factor,
    )
