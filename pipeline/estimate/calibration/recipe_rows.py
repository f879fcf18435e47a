"""A recipe of a calibration: which constants are fitted, from which starts, and the rows that they are fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from sweepscope.pipeline.estimate.calibration.fit import Batch, batches
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import Profile, load_profiles, with_values

_CELL = ("model", "accelerator", "num_gpus", "seq_len", "gbs_tokens", "global_batch_tokens")


@dataclass(frozen=True)
class Weights:
    """How errors weigh in a fit of step times: constants are held to their starts by `pull`, and an estimate that is
    too slow costs `early` times one that is too fast."""

    pull: float = 0.05
    early: float = 1.0


@dataclass(frozen=True)
class Recipe:
    """How one profile is fitted.

    `rows` selects rows of `dataset`; `time` and `memory` name the constants with where their search starts; `fixed` are
    set and not fitted. `group` splits the rows for cross-validation. A recipe that is a bound is fitted to the runs
    at most PENALISED_RATIO times slower than estimated; of several `weights`, each of its fits chooses those that
    predict unseen groups best. `kernels`: how the rows run theirs (`rows.kernels`), where not as their framework
    usually does. `covers`: the questions that the fit answers (`asking.is_covered`), where the
    generation's constants predict the framework's other runs better. `learns_outcomes`: that a run fitted, or ran
    out of memory, bounds its peak.
    """

    profile: str
    dataset: str
    rows: pl.Expr
    group: str
    time: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, float] = field(default_factory=dict)
    fixed: Mapping[str, float | bool | str] = field(default_factory=dict)
    kernels: Mapping[str, str] = field(default_factory=dict)
    covers: Mapping[str, Sequence[str | bool]] = field(default_factory=dict)
    weights: tuple[Weights, ...] = (Weights(),)
    memory_pull: float = 0.05
    memory_unit: float = 1e9
    is_bound: bool = False
    learns_outcomes: bool = False

    @property
    def split(self) -> str:
        """How rows are split; nested where each fold also chooses how errors weigh."""
        return f"one {self.group} out" + (", nested" if len(self.weights) > 1 else "")


@dataclass(frozen=True)
class Rows:
    """The rows of a recipe, ready to be estimated. `fits` caches fits of step times, which nested choices repeat.

    `ran` is 1 for rows that completed, 0 for rows out of memory and NaN where outcomes do not count; `room_bytes` is
    what may be allocated of the row's card, beside fragmentation and what no allocator counts.
    """

    recipe: Recipe
    table: pl.DataFrame
    batches: list[Batch]
    step_time_s: Array
    mem_bytes: Array
    ran: Array
    room_bytes: Array
    fits: dict[tuple[Weights, bytes], dict[str, float]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def everywhere(self) -> NDArray[np.bool_]:
        """A mask of all rows."""
        return np.ones(self.table.height, np.bool_)

    @property
    def groups(self) -> NDArray[np.str_]:
        """Group of each row; the recipe leaves a group out together."""
        return self.table[self.recipe.group].to_numpy()

    @property
    def cells(self) -> list[tuple[object, ...]]:
        """The cell of each row: model, accelerators, sequence and batch, as far as the table has them."""
        return self.table.select(name for name in _CELL if name in self.table.columns).rows()

    def within(self, mask: NDArray[np.bool_]) -> list[Batch]:
        """Batches of the rows of `mask`."""
        return [
            Batch(batch.asked, batch.at[chosen], batch.indices[chosen])
            for batch in self.batches
            if (chosen := mask[batch.indices]).any()
        ]


def _numbers(table: pl.DataFrame, name: str) -> Array:
    if name not in table.columns:
        return np.full(table.height, np.nan)
    return table[name].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def gather_rows(recipe: Recipe, published: pl.DataFrame) -> Rows:
    """The rows of `published` (text cells) that a recipe is fitted on: measured, and possible to estimate."""
    table = published.filter(recipe.rows)
    start = with_values(load_profiles()["default"], {**recipe.time, **recipe.memory, **recipe.fixed})
    kernels = {"kernels": dict(recipe.kernels)} if recipe.kernels else {}
    start = replace(start, about={"kind": "fitted", **kernels})  # what the framework usually does is in the constants

    def always(_generation: str, _framework: str | None) -> Profile:
        return start

    found = batches(table, always)
    estimable = np.zeros(table.height, np.bool_)
    for batch in found:
        estimable[batch.indices] = True
    seconds = np.where(estimable, _numbers(table, "step_time_s"), np.nan)
    bytes_ = np.where(estimable, _numbers(table, "peak_mem_gb") * recipe.memory_unit, np.nan)
    room = np.full(table.height, np.nan)
    for batch in found:
        profile = batch.asked.profile
        room[batch.indices] = (batch.asked.cluster.memory_bytes - profile.outside_bytes) / (1 + profile.fragmentation)
    ran = np.where(estimable, _outcomes(table), np.nan) if recipe.learns_outcomes else np.full(table.height, np.nan)
    return Rows(recipe, table, found, seconds, bytes_, ran, room)


def _outcomes(table: pl.DataFrame) -> Array:
    """1 for completed rows, 0 for those out of memory, NaN for others."""
    status = pl.col("status")
    ran = pl.when(status.is_in(["completed", "success"])).then(1.0).when(status == "oom").then(0.0)
    return table.select(ran.cast(pl.Float64).fill_null(np.nan).alias("ran"))["ran"].to_numpy()
