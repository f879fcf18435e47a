"""The bundled tables estimated as if nothing were known of them and their frameworks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from sweepscope.pipeline.estimate.learned.transfer import Transfer, quantiles_of
from sweepscope.pipeline.estimate.physics.layouts import Array
from sweepscope.pipeline.estimate.physics.profile import Profile, choose_profile
from sweepscope.pipeline.estimate.rows.estimate_rows import OK, ChooseProfile, estimate_frame
from sweepscope.pipeline.estimate.rows.read_rows import read_rows
from sweepscope.pipeline.reference.accelerators import SIXTEEN_BIT
from sweepscope.pipeline.reference.clusters import find_cluster

TABLES = (
    *("bigscience_sweeps", "other_sweeps", "llm_foundry", "selene_megatron", "torchtitan", "simumax_b200"),
    *("mlperf_training", "ultrascale_playbook_all_runs"),
)
GIBIBYTES = ("ultrascale_playbook_all_runs",)
"""Tables whose `peak_mem_gb` counts bytes/2**30."""
FEWEST_ROWS = 5


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


def _is_fp8(rows: pl.DataFrame) -> pl.Series:
    """Whether products of rows run in FP8, as `estimate_rows` takes it."""
    cards = {card: find_cluster(card) for card in rows["accelerator"].drop_nulls().unique()}
    with_fp8 = [card for card, one in cards.items() if one is not None and one.peak_flops_fp8 > one.peak_flops]
    stated = pl.col("precision").fill_null("bf16")
    is_open = ~stated.is_in(SIXTEEN_BIT)
    return rows.select(is_open & pl.col("accelerator").is_in(with_fp8).fill_null(False)).to_series()


def transfers(choose_for: Callable[[str], ChooseProfile]) -> list[Transfer]:
    """Residuals of every bundled table by generation and precision, where there are FEWEST_ROWS.

    `choose_for` gives the chooser of a table's constants: those in which the table itself has no say.
    """
    found = []
    for name in TABLES:
        table = published_table(name)
        if "status" in table.columns:
            table = table.filter(pl.col("status").is_in(["success", "completed"]) | pl.col("status").is_null())
        rows = read_rows(table)
        cards = {card: find_cluster(card) for card in rows["accelerator"].drop_nulls().unique()}
        generations = {card: cluster.generation for card, cluster in cards.items() if cluster is not None}
        frame = estimate_frame(table, choose_for(name)).with_columns(
            generation=rows["accelerator"].replace_strict(generations, default=None, return_dtype=pl.String),
            is_fp8=_is_fp8(rows),
        )
        unit = 2.0**30 if name in GIBIBYTES else 1e9
        done = frame.filter(pl.col("est_status") == OK, pl.col("generation").is_not_null())
        for (generation, is_fp8), group in done.group_by("generation", "is_fp8", maintain_order=True):
            time = _ratios(_number(group, "step_time_s"), _number(group, "est_step_time_s"))
            memory = _ratios(unit * _number(group, "peak_mem_gb"), _number(group, "est_mem_bytes"))
            if time or memory:
                found.append(Transfer(name, str(generation), bool(is_fp8), group.height, time, memory))
    return found
