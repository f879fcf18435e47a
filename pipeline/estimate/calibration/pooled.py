"""Constants for a framework that nothing is known of: fitted per generation to all bundled tables, each counting once.

Published benchmarks of kernels are what a kernel can reach, not what it reaches in training: attention on H100 runs at
half of that in every table of PyTorch's trainers. So `attention_efficiency` of a generation is pooled. More constants
were tried (products, elementwise traffic, optimizer, contention): none brought the error of left-out tables down.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.calibration.fit import Batch, batches, fit, with_constants
from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from sweepscope.pipeline.estimate.calibration.transfer_tables import TABLES, of_generation
from sweepscope.pipeline.estimate.physics.estimate import step_seconds
from sweepscope.pipeline.estimate.physics.layouts import Array

STARTS = {"ampere": {"attention_efficiency": 0.5}, "hopper": {"attention_efficiency": 0.38}}
"""Where the fit starts: FlashAttention-2's own figures (2307.08691 and 2407.08608 figure 5). Blackwell keeps
them: one bundled table has such kernels."""
PULL, ROUNDS = 0.05, 10
_COUNT = 50
"""Residuals that a table stands for."""
_CELL = ("model", "num_gpus", "seq_len", "global_batch_tokens")


@cache
def _rows(name: str) -> tuple[list[Batch], Array]:
    """A table's completed runs by question, and their step times; of a sweep the fastest quarter of each cell.

    Only those whose attention is fused, and by no kernel that is written for the generation, tell the constant.
    """
    table = published_table(name)
    if "status" in table.columns:
        table = table.filter(pl.col("status").is_in(["success", "completed"]) | pl.col("status").is_null())
    table = table.with_columns(s=pl.col("step_time_s").cast(pl.Float64, strict=False)).filter(pl.col("s") > 0)
    if table.height > 1000:
        table = table.filter(pl.col("s") <= pl.col("s").quantile(0.25).over(_CELL)).gather_every(6)
    found = [batch for batch in batches(table, of_generation) if batch.asked.profile.is_flash and not _is_tuned(batch)]
    return found, table["s"].to_numpy()


def _is_tuned(batch: Batch) -> bool:
    profile = batch.asked.profile
    return 0 < profile.tuned_attention_efficiency == profile.attention_efficiency


def residuals(name: str, generation: str, constants: dict[str, float]) -> Array:
    """Logarithms of measured over estimated step times of one table's rows of a generation."""
    rows, seconds = _rows(name)
    out = [
        np.log(seconds[batch.indices] / step_seconds(with_constants(batch.asked, constants), batch.at))
        for batch in rows
        if batch.asked.cluster.generation == generation
    ]
    return np.concatenate(out) if out else np.zeros(0)


def pool(generation: str, *, without: Collection[str] = ()) -> dict[str, float]:
    """The constants of STARTS fitted to all tables but those of `without`."""
    start = STARTS[generation]
    names = [name for name in TABLES if name not in without and residuals(name, generation, start).size]

    def every(constants: dict[str, float]) -> Array:
        return np.concatenate([np.resize(residuals(name, generation, constants), _COUNT) for name in names])

    return fit(every, start, pull=PULL, rounds=ROUNDS) if names else start


def left_out() -> pl.DataFrame:
    """Per table and generation: the median error with published constants, and with those pooled over other tables."""
    rows = []
    for generation, start in STARTS.items():
        for name in TABLES:
            if not residuals(name, generation, start).size:
                continue
            others = pool(generation, without=(name,))
            errors = [
                100 * float(np.median(np.abs(np.exp(-residuals(name, generation, one)) - 1))) for one in (start, others)
            ]
            rows.append((generation, name, *others.values(), *errors))
    names = [*next(iter(STARTS.values()))]
    schema = ["generation", "left out", *names, "published: median %", "pooled: median %"]
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    mean = frame.select(pl.lit("mean").alias("left out"), pl.col("published: median %", "pooled: median %").mean())
    return pl.concat([frame, mean], how="diagonal")
