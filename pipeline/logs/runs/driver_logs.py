"""Logs of a sweep's driver, which print what the log of each of its runs holds, too: `driver.log` above `trial_3.log`.

Such a log has several runs of different layouts. Values decide, as in `same_runs`, which run is which; of those without
a step, the layout, and only where the driver's other runs were all found in one folder. Pure.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.runs.same_runs import LAYOUT, SAME, near_each_other

VERSION = 1
"""Raise it when other runs of the same rows would be found: stores are then published anew."""

_LEVELS = 3
"""The driver's folder, and those above it: its runs lie below one of them."""
_FEWEST = 2
"""Runs that a driver has at least."""


def of_drivers(runs: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `log_id`, `level`, as of `same_runs.near_each_other`: runs in drivers' logs, and of logs near them.

    Args:
        runs: rows of `runs` that have steps and repeat no other.
    """
    drivers = runs.filter(is_of_driver())
    others = runs.filter(pl.len().over("source_path") == 1)
    where = ["run_id", "run_dir"]
    return near_each_other(drivers.select(where), others.select(where), levels=range(_LEVELS))


def without_steps(runs: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """SAME rows of a driver's runs that have no step, by their layout and how they ended.

    Args:
        runs: rows of `runs` that repeat no other.
        found: SAME rows of those with steps.
    """
    is_stepped = pl.col("steps_logged").fill_null(0) > 0
    place = runs.select(duplicate_of="run_id", folder=_folder())
    drivers = runs.filter(is_of_driver()).join(found.join(place, on="duplicate_of"), on="run_id", how="left")
    is_found = (pl.col("folder").is_not_null() | ~is_stepped).all() & (pl.col("folder").drop_nulls().n_unique() == 1)
    known = drivers.filter(is_found.over("source_path")).with_columns(pl.col("folder").max().over("source_path"))
    facts = ["status", *LAYOUT]  # a log states less than its driver, or more
    open_ones = known.filter(~is_stepped).select("run_id", "folder", *facts)
    held = pl.concat([known["source_path"], runs.filter(pl.len().over("source_path") > 1)["source_path"]])
    logs = runs.filter(~is_stepped & ~pl.col("source_path").is_in(held.unique().implode()))
    logs = logs.select(*facts, duplicate_of="run_id", folder=_folder())
    either = [(pl.col(name) == pl.col(f"{name}_log")).fill_null(value=True) for name in LAYOUT]
    pairs = open_ones.join(logs, on=["folder", "status"], suffix="_log").filter(pl.all_horizontal(either))
    alone = (pl.len().over("run_id") == 1) & (pl.len().over("duplicate_of") == 1)
    return pairs.filter(alone).select(SAME.names()).sort("run_id")


def is_of_driver() -> pl.Expr:
    """Whether a run's log has several, in different layouts: those of a training that began anew are of one."""
    layouts = pl.struct(LAYOUT).n_unique().over("source_path")
    return (pl.len().over("source_path") >= _FEWEST) & (layouts >= _FEWEST)


def _folder() -> pl.Expr:
    return pl.col("source_path").str.extract(r"^(.*)/[^/]+$")
