"""Settings of each run: what its own lines say, what its job's other logs add, and what stands beside the logs."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.runs.attribution import attempt_of, of_other_logs


def configured_from(runs: pl.DataFrame, stretches: pl.DataFrame) -> pl.DataFrame:
    """Runs with `start_line` moved up to the step before: a launch command is echoed before the trainer starts.

    What fails a run stands behind its last step; what configures the next one does too. `stretches`: where the steps
    of each run stand (`summary.stretched`).
    """
    last = stretches.select("run_id", "last_line")
    ordered = runs.join(last, on="run_id", how="left").sort("source", "attempt_in_source")
    behind = pl.col("last_line").shift(1).over("source") + 1
    return ordered.with_columns(start_line=pl.min_horizontal("start_line", behind)).drop("last_line")


def settings_of_runs(
    settings: pl.DataFrame, sidecars: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame
) -> pl.DataFrame:
    """What the run's own lines say, what the job's other logs add to that, and what stands beside the logs."""
    own = _inherited(attempt_of(settings, runs).drop_nulls("run_id"), runs)
    said = ["run_id", "name", "setting_source"]
    added = of_other_logs(settings, runs, sources).join(own, on=said, how="anti", maintain_order="left")
    printed = pl.concat([own, added]).join(sources.select("source", "path"), on="source", maintain_order="left")
    beside = sidecars.join(runs.select("unit", "run_id"), on="unit", maintain_order="left")
    columns = ["run_id", "name", "value", "setting_source", "line_no", pl.col("path").alias("source_path")]
    return pl.concat([printed.select(columns), beside.with_columns(line_no=pl.lit(None, pl.Int64)).select(columns)])


def stepped(stretches: pl.DataFrame, settings: pl.DataFrame) -> pl.DataFrame:
    """That a run logged a step, as a value that `protocol.CombinedSetting` may ask for."""
    return stretches.with_columns(
        line_no="first_line", name=pl.lit("arg:stepped"), value=pl.lit("yes"), setting_source=pl.lit("log_line")
    ).select(settings.columns)


def _inherited(settings: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """An attempt without any settings has those of the one before it in the file: a restart need not repeat them."""
    ordered = runs.select("source", "attempt_in_source", "run_id").sort("source", "attempt_in_source")
    is_own = pl.col("run_id").is_in(settings["run_id"].unique().to_list())
    heirs = ordered.with_columns(
        giver=pl.when(is_own).then("run_id").forward_fill().over("source"), is_own=is_own
    ).filter(~pl.col("is_own") & pl.col("giver").is_not_null())
    given = settings.rename({"run_id": "giver"}).join(
        heirs.select("giver", "run_id"), on="giver", maintain_order="left"
    )
    return pl.concat([settings, given.select(settings.columns)])
