"""Calibration: which constants are fitted on which rows, and how the fit is judged.

A recipe names its rows, the few constants that those rows can tell, and where the search starts. Everything else stays
at the published values of `default`. Accuracy is only ever reported on rows that a fit has not seen (`cross_validate`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.estimate.estimate import Estimate
from pipeline.estimate.fit import Batch, batches, fit, predict
from pipeline.estimate.layouts import Array
from pipeline.estimate.profile import Profile, load_profiles, with_values

HEALTHY = 1.5
"""A run at most this many times slower than estimated is one whose implementation reaches the hardware."""


@dataclass(frozen=True)
class Recipe:
    """How one profile is fitted.

    `rows` selects rows of `dataset`; `time` and `memory` name the constants with where their search starts; `fixed` are
    set and not fitted. `group` splits the rows for cross-validation. A recipe that is a `bound` is fitted to the runs
    that come near the estimate, not to all: first those `simple` selects, then those within HEALTHY of that fit, and
    an estimate that is too slow costs `early` times one that is too fast.
    """

    profile: str
    dataset: str
    rows: pl.Expr
    group: str
    time: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, float] = field(default_factory=dict)
    fixed: Mapping[str, float | bool | str] = field(default_factory=dict)
    pull: float = 0.05
    memory_pull: float = 0.05
    memory_unit: float = 1e9
    simple: pl.Expr | None = None
    early: float = 1.0


def step_seconds(predicted: Estimate) -> Array:
    """The estimate's step time."""
    return predicted.step_time_s


def allocated_bytes(predicted: Estimate) -> Array:
    """The estimate's peak of allocated bytes."""
    return predicted.mem_bytes


@dataclass(frozen=True)
class Rows:
    """The rows of a recipe, ready to be estimated again and again."""

    recipe: Recipe
    table: pl.DataFrame
    batches: list[Batch]
    step_time_s: Array
    mem_bytes: Array
    is_simple: NDArray[np.bool_]

    def within(self, mask: NDArray[np.bool_]) -> list[Batch]:
        """Batches of the rows of `mask`."""
        return [
            Batch(batch.asked, batch.at[chosen], batch.places[chosen])
            for batch in self.batches
            if (chosen := mask[batch.places]).any()
        ]


def _numbers(table: pl.DataFrame, name: str) -> Array:
    if name not in table.columns:
        return np.full(table.height, np.nan)
    return table[name].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def gather_rows(recipe: Recipe, published: pl.DataFrame) -> Rows:
    """The rows of `published` (text cells) that a recipe is fitted on: measured, and possible to estimate."""
    table = published.filter(recipe.rows)
    start = with_values(load_profiles()["default"], {**recipe.time, **recipe.memory, **recipe.fixed})

    def always(_generation: str, _framework: str | None) -> Profile:
        return start

    found = batches(table, always)
    estimable = np.zeros(table.height, np.bool_)
    for batch in found:
        estimable[batch.places] = True
    seconds = np.where(estimable, _numbers(table, "step_time_s"), np.nan)
    bytes_ = np.where(estimable, _numbers(table, "peak_mem_gb") * recipe.memory_unit, np.nan)
    simple = np.ones(table.height, np.bool_)
    if recipe.simple is not None:
        simple = table.select(recipe.simple.fill_null(False)).to_series().to_numpy()
    return Rows(recipe, table, found, seconds, bytes_, simple)


def _fit(rows: Rows, mask: NDArray[np.bool_], *, memory: bool) -> dict[str, float]:
    recipe = rows.recipe
    start, pull = (recipe.memory, recipe.memory_pull) if memory else (recipe.time, recipe.pull)
    measured, read = (rows.mem_bytes, allocated_bytes) if memory else (rows.step_time_s, step_seconds)
    chosen = rows.within(mask & np.isfinite(measured))
    if not start or not chosen:
        return {}
    places = np.concatenate([batch.places for batch in chosen])

    def residuals(constants: dict[str, float]) -> Array:
        errors: Array = np.log(predict(chosen, constants, rows.table.height, read)[places] / measured[places])
        if not memory:
            errors[errors > 0] *= recipe.early
        return errors

    return fit(residuals, dict(start), pull=pull, huber=0.05 if recipe.simple is not None else 0.1)


def fit_recipe(rows: Rows, mask: NDArray[np.bool_] | None = None) -> dict[str, float]:
    """Fitted constants of a recipe from the rows of `mask` (all by default)."""
    everywhere = np.ones(rows.table.height, np.bool_) if mask is None else mask
    constants = _fit(rows, everywhere & rows.is_simple, memory=False)
    if rows.recipe.simple is not None:
        for _ in range(3):
            predicted = predict(rows.batches, constants, rows.table.height, step_seconds)
            near = rows.step_time_s / predicted
            constants = _fit(rows, everywhere & (near < HEALTHY) & (near > 0.5), memory=False)
    return {**constants, **_fit(rows, everywhere, memory=True)}


def fit_memory(rows: Rows, mask: NDArray[np.bool_]) -> dict[str, float]:
    """Fitted constants of a recipe's memory from the rows of `mask`."""
    return _fit(rows, mask, memory=True)


@dataclass(frozen=True)
class Unseen:
    """Predictions of each row by a fit that has not seen the row's group."""

    rows: Rows
    step_time_s: Array
    mem_bytes: Array


def cross_validate(rows: Rows) -> Unseen:
    """Leave one group out, fit on the others, predict it; for every group."""
    groups = rows.table[rows.recipe.group].to_numpy()
    seconds = np.full(rows.table.height, np.nan)
    bytes_ = np.full(rows.table.height, np.nan)
    for group in sorted(set(groups)):
        left_out = groups == group
        constants = fit_recipe(rows, ~left_out)
        chosen = rows.within(left_out)
        seconds[left_out] = predict(chosen, constants, rows.table.height, step_seconds)[left_out]
        bytes_[left_out] = predict(chosen, constants, rows.table.height, allocated_bytes)[left_out]
    return Unseen(rows, seconds, bytes_)
