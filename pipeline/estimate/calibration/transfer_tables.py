"""The bundled tables estimated as if nothing were known of them and their frameworks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from sweepscope.pipeline.estimate.learned.transfer import Transfer, quantiles_of
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import Profile, choose_profile
from sweepscope.pipeline.estimate.rows.asking import OK, ChooseProfile
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.estimate.rows.strata import strata_of

TABLES = (
    *("bigscience_sweeps", "other_sweeps", "llm_foundry", "selene_megatron", "torchtitan", "simumax_b200"),
    *("mlperf_training", "ultrascale_playbook_all_runs"),
)
BESIDE = ("megatron_bridge",)
"""Tables that no constant is pooled over and that are no runs of the store: what intervals are made wide enough by."""
GIBIBYTES = ("ultrascale_playbook_all_runs",)
"""Tables whose `peak_mem_gb` counts bytes/2**30."""
FEWEST_ROWS = 5
FEWEST_IN_CELL = 8
_CELL = ("model", "accelerator", "num_gpus", "seq_len", "global_batch_tokens")


def of_generation(generation: str, _framework: str | None) -> Profile:
    """Constants of the generation alone."""
    return choose_profile(generation, None)


def _number(frame: pl.DataFrame, name: str) -> Array:
    if name not in frame.columns:
        return np.full(frame.height, np.nan)
    return frame[name].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def _ratios(measured: Array, predicted: Array) -> tuple[float, ...]:
    both = np.isfinite(measured) & np.isfinite(predicted) & (measured > 0)
    return quantiles_of(np.log(measured[both] / predicted[both])) if both.sum() >= FEWEST_ROWS else ()


def _tuned(table: pl.DataFrame) -> pl.DataFrame:
    """`table` without the slower half of each cell of FEWEST_IN_CELL runs and more."""
    names = [name for name in _CELL if name in table.columns]
    seconds = pl.col("step_time_s").cast(pl.Float64, strict=False)
    is_slow = seconds > seconds.median().over(names)
    return table.filter(~(is_slow & (seconds.count().over(names) >= FEWEST_IN_CELL)).fill_null(False))


def transfers(choose_for: Callable[[str], ChooseProfile], *, tuned: bool = True) -> list[Transfer]:
    """Residuals of every table of TABLES and BESIDE by generation and precision, where there are FEWEST_ROWS.

    `choose_for` gives the chooser of a table's constants: those in which the table itself has no say. `tuned`: of a
    sweep's cells the faster halves only, as intervals rest on; else all rows, as they are judged by.
    """
    return [
        one
        for name in (*TABLES, *BESIDE)
        for one in residuals_of(name, published_table(name), choose_for(name), tuned=tuned)
    ]


def residuals_of(name: str, table: pl.DataFrame, choose: ChooseProfile, *, tuned: bool) -> list[Transfer]:
    """Residuals of the completed rows of one table, as `transfers` has them."""
    found = []
    if "status" in table.columns:
        table = table.filter(pl.col("status").is_in(["success", "completed"]) | pl.col("status").is_null())
    table = _tuned(table) if tuned else table
    frame = pl.concat([estimate_frame(table, choose), strata_of(read_rows(table))], how="horizontal")
    unit = 2.0**30 if name in GIBIBYTES else 1e9
    done = frame.filter(pl.col("est_status") == OK, pl.col("generation").is_not_null())
    for (generation, is_below_16_bit), group in done.group_by("generation", "is_below_16_bit", maintain_order=True):
        time = _ratios(_number(group, "step_time_s"), _number(group, "est_step_time_s"))
        memory = _ratios(unit * _number(group, "peak_mem_gb"), _number(group, "est_mem_bytes"))
        if time or memory:
            found.append(Transfer(name, str(generation), bool(is_below_16_bit), group.height, time, memory))
    return found
