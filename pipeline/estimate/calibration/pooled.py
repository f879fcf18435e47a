"""Constants for a framework that nothing is known of: fitted per generation to all bundled tables, each counting once.

Published benchmarks of kernels are what a kernel can reach, not what it reaches in training: attention on H100 runs at
half of that in every table of PyTorch's trainers, and products on A100 at 0.72 of the peak instead of 0.84.

A table says two things: how its rows differ from one another, and how far off they are together. The second is also
what its framework, its version and its machines are like. Both are weighed apart (a random effect of the table): what
rows of 65,536 tokens tell of attention is not drowned by what another framework's table has in common. More constants
were tried (products on Hopper and Blackwell, elementwise traffic, FP8, optimizer, contention): none brought the error
of left-out tables down (docs/estimator.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.calibration.fit import Batch, batches, fit, with_constants
from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from sweepscope.pipeline.estimate.calibration.transfer_tables import FEWEST_ROWS, TABLES, of_generation
from sweepscope.pipeline.estimate.physics.estimate import step_seconds
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import Profile, with_values
from sweepscope.pipeline.estimate.rows.asking import ChooseProfile

STARTS = {
    "ampere": {"gemm_peak_share": 0.84, "attention_efficiency": 0.5},
    "hopper": {"attention_efficiency": 0.38},
}
"""Where the fit starts: NVIDIA's guide to matrix multiplication (large bf16 products), FlashAttention-2's own figures
(2307.08691 and 2407.08608 figure 5). Blackwell keeps them: two bundled tables contradict each other (SimuMax's machine
reaches 0.48 of the peak in its own profile of products, MLPerf's 0.65)."""
PULL, ROUNDS, HUBER = 0.05, 6, 0.15
_COUNT = 40
"""Residuals that a table stands for, of its rows among each other and of all together."""
_MOST = 24
"""Questions of a table that are fitted: 111 of llm-foundry's say no more than every fifth of them."""
_POOLED = ("gemm_peak_share", "attention_efficiency")
_CELL = ("model", "num_gpus", "seq_len", "global_batch_tokens")


@cache
def _rows(name: str) -> tuple[list[Batch], Array]:
    """A table's completed runs by question, and their step times; of a sweep the fastest quarter of each cell."""
    table = published_table(name)
    if "status" in table.columns:
        table = table.filter(pl.col("status").is_in(["success", "completed"]) | pl.col("status").is_null())
    table = table.with_columns(s=pl.col("step_time_s").cast(pl.Float64, strict=False)).filter(pl.col("s") > 0)
    if table.height > 1000:
        table = table.filter(pl.col("s") <= pl.col("s").quantile(0.25).over(_CELL)).gather_every(6)
    return batches(table, of_generation), table["s"].to_numpy()


def _is_tuned(batch: Batch) -> bool:
    profile = batch.asked.profile
    return 0 < profile.tuned_attention_efficiency == profile.attention_efficiency


def residuals(name: str, generation: str, constants: Mapping[str, float], *, most: int | None = None) -> Array:
    """Logarithms of measured over estimated step times of a table's rows of a generation, of `most` questions at most.

    Kernels that are written for the generation keep their own share of the peak.
    """
    rows, seconds = _rows(name)
    chosen = [batch for batch in rows if batch.asked.cluster.generation == generation]
    step = len(chosen) // most + 1 if most else 1
    out = []
    for batch in chosen[::step]:
        left = {"attention_efficiency"} if _is_tuned(batch) else set()
        asked = with_constants(batch.asked, {key: value for key, value in constants.items() if key not in left})
        out.append(np.log(seconds[batch.indices] / step_seconds(asked, batch.at)))
    return np.concatenate(out) if out else np.zeros(0)


def _apart(found: Array) -> Array:
    """Residuals of a table's rows from their median, and as many times that median."""
    middle = float(np.median(found))
    return np.concatenate([np.resize(found - middle, _COUNT), np.full(_COUNT, middle)])


@cache
def pool(generation: str, *, without: tuple[str, ...] = ()) -> dict[str, float]:
    """The constants of STARTS fitted to all tables but those of `without`."""
    start = STARTS[generation]
    names = [name for name in TABLES if name not in without and residuals(name, generation, start).size >= FEWEST_ROWS]

    def every(constants: dict[str, float]) -> Array:
        return np.concatenate([_apart(residuals(name, generation, constants, most=_MOST)) for name in names])

    return fit(every, start, pull=PULL, rounds=ROUNDS, huber=HUBER) if names else start


def without_table(table: str) -> ChooseProfile:
    """Chooser of constants of the generation alone, pooled over the tables but one."""

    def choose(generation: str, _framework: str | None) -> Profile:
        known = of_generation(generation, None)
        return with_values(known, pool(generation, without=(table,))) if generation in STARTS else known

    return choose


def left_out() -> pl.DataFrame:
    """Per table and generation: the median error with published constants, and with those pooled over other tables."""
    rows = []
    for name in TABLES:
        for generation in dict.fromkeys(batch.asked.cluster.generation for batch in _rows(name)[0]):
            published = STARTS.get(generation, {})
            if residuals(name, generation, published).size < FEWEST_ROWS:
                continue
            others = pool(generation, without=(name,)) if published else {}
            errors = [
                100 * float(np.median(np.abs(np.exp(-residuals(name, generation, one)) - 1)))
                for one in (published, others)
            ]
            rows.append((generation, name, *(others.get(constant) for constant in _POOLED), *errors))
    schema = ["generation", "left out", *_POOLED, "published: median %", "pooled: median %"]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    mean = frame.select(pl.lit("mean").alias("left out"), pl.col("published: median %", "pooled: median %").mean())
    return pl.concat([frame, mean], how="diagonal")
