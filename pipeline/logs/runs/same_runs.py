"""Runs that a file of steps tells of again: those of a log elsewhere in the same sweep, by their values. Pure.

Within a run directory `readings` joins them. Where names do not tell which log a file of steps belongs to (logs of all
runs in one folder, their outputs in others), values do, if they are those of one log alone, or of logs that go on from
each other: a training that was taken up from a checkpoint keeps its steps in one file.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.runs.agreement import agree, tolerances

VERSION = 2
"""Raise it when other runs of the same rows would be found: stores are then published anew."""

SAME = pl.Schema({"run_id": pl.String, "duplicate_of": pl.String})
"""One row per run that holds what another one holds."""

_PAIRS = pl.Schema({"run_id": pl.String, "log_id": pl.String, "level": pl.Int32})

_LEVELS = 3
"""Levels above the folder of a file of steps: its log may lie below any of them."""

_DEEPEST = 8
"""Levels below such a folder that logs are looked for."""

_MIN_STEPS = 3
_MIN_SHARE = 0.9
"""So many steps agree, and this share of those in common."""

_MAX_PAIRS = 40_000
"""A folder with more pairs of files and logs is left alone: comparing them would take minutes."""


def near_each_other(files: pl.DataFrame, logs: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `log_id`, `level`: runs of files of steps, and those of logs below one of the folders above.

    Args:
        files: `run_id` and `run_dir` of runs that only a file of steps tells of.
        logs: the same of others.
    """
    above = pl.concat(_above(files, level).with_columns(level=pl.lit(level)) for level in range(1, _LEVELS + 1))
    if above.is_empty():
        return pl.DataFrame(schema=_PAIRS)
    logs = logs.filter(pl.col("run_dir").str.contains_any(above["folder"].unique().to_list()))  # few of very many
    inside = pl.concat(_above(logs, level) for level in range(_DEEPEST + 1)).join(above, on="folder", how="semi")
    pairs = above.join(inside.rename({"run_id": "log_id"}), on="folder")
    pairs = pairs.filter(pl.len().over("folder") <= _MAX_PAIRS)
    return pairs.group_by("run_id", "log_id").agg(pl.col("level").min())


def _above(runs: pl.DataFrame, level: int) -> pl.DataFrame:
    """`run_id` and the `folder` so many levels above its own, as far as there is one."""
    folder = pl.col("run_dir").str.extract(rf"^(.*[^/])(?:/[^/]+){{{level}}}$")
    return runs.select("run_id", folder=folder).drop_nulls()


def same_runs(pairs: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """SAME rows: files of steps with the losses of one log, or of several that go on from each other: of the last.

    None of them has the losses of another file.

    Args:
        pairs: rows of `near_each_other`.
        steps: `run_id`, `step`, `loss` of all of these runs.
    """
    losses = tolerances(steps.rename({"run_id": "reading"}).drop_nulls("loss"))
    known = losses.rename({"reading": "log_id"})
    both = (
        pairs.join(losses.rename({"reading": "run_id"}), on="run_id")
        .join(known, on=["log_id", "step"], suffix="_log")
        .with_columns(agrees=agree("loss", "loss_log", pl.max_horizontal("tolerance", "tolerance_log")))
    )
    found = both.group_by("run_id", "log_id", "level").agg(common=pl.len(), agreeing=pl.col("agrees").sum())
    same = found.filter((pl.col("agreeing") >= _MIN_STEPS) & (pl.col("agreeing") >= _MIN_SHARE * pl.col("common")))
    nearest = same.filter(pl.col("level") == pl.col("level").min().over("run_id"))
    reach = known.group_by("log_id").agg(first=pl.col("step").min(), last=pl.col("step").max())
    by_steps = nearest.join(reach, on="log_id").sort("run_id", "last")
    by_steps = by_steps.with_columns(
        goes_on=pl.all_horizontal((pl.col("first", "last").diff().over("run_id") > 0).fill_null(value=True)),
        is_shared=pl.len().over("log_id") > 1,
    )
    is_known = (pl.col("goes_on") & ~pl.col("is_shared")).all().over("run_id")
    chosen = by_steps.filter(is_known).unique("run_id", keep="last", maintain_order=True)
    return chosen.select("run_id", duplicate_of="log_id").sort("run_id")
