"""Runs completed by the scheduler's facts: rows of `runs` and `scheduler_jobs` in, changed rows out. Pure.

The lake holds the content of each file; this is computed from it whenever the store is published, so the order in
which logs and tables arrived does not matter, nor how often a growing table has been read.

A run is joined to a job by its job id (of the file name, or printed in the log or in the configuration beside it), else
by the job's output file, else by a directory that holds one run and one job, or that has the name of one job. Values
from the log are kept; the scheduler fills those that are missing and takes part in the status, see
`scheduler.run_status`.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.logs.diagnostics.idle_after_end import held_by_job
from sweepscope.pipeline.scheduler import run_status
from sweepscope.pipeline.scheduler.match_jobs import match
from sweepscope.schemas.tables.runs import EVENTS, RUNS, SETTINGS

VERSION = 6
"""Raise it when the same rows would be joined differently: stores are then published anew."""


@dataclass(frozen=True)
class Reconciled:
    """Rows that replace those of the same key, and rows to add, by table; see `changes`."""

    runs: pl.DataFrame
    events: pl.DataFrame
    settings: pl.DataFrame
    settings_gone: pl.DataFrame


_FROM_JOB = ("num_nodes", "num_gpus", "accelerator")
"""Settings that a scheduler knows; they replace assumed values."""

NOTHING = Reconciled(RUNS.empty(), EVENTS.empty(), SETTINGS.empty(), SETTINGS.empty().select(SETTINGS.primary_key))


def reconcile(runs: pl.DataFrame, jobs: pl.DataFrame, assumed: pl.DataFrame) -> Reconciled:
    """The rows that scheduler tables change.

    Args:
        runs: rows of `runs` that may have a job; published ones have none.
        jobs: rows of `scheduler_jobs`.
        assumed: rows of `settings` of those runs whose source is "assumed".
    """
    pairs = match(runs, jobs)
    if pairs.is_empty():
        return NOTHING
    joined = runs.join(pairs, on="run_id", suffix="_job", maintain_order="left")
    held, held_s = held_by_job(joined)
    learned = _without_assumptions(_with_job(joined.join(held_s, on="run_id", how="left", suffix="_by_job")), assumed)
    completed = complete_runs(run_status.combine_status(learned, pairs))
    gone = assumed.join(pairs, on="run_id", how="semi").select(SETTINGS.primary_key)
    return Reconciled(
        runs=completed.runs,
        events=pl.concat([_events(pairs), EVENTS.conform(held)]),
        settings=_settings(joined, _filled_by_job(joined, assumed), completed.derived),
        settings_gone=gone,
    )


def _with_job(joined: pl.DataFrame) -> pl.DataFrame:
    """Runs with the job's facts where the log has none; times only where it has neither."""
    is_silent = pl.col("started_at").is_null() & pl.col("ended_at").is_null()
    # A sum over step times is only a lower bound; a job of a single attempt cost what was charged for it.
    is_charged = is_silent & pl.col("is_first") & pl.col("is_last") & pl.col("elapsed_s").is_not_null()
    charged = pl.col("elapsed_s") * pl.coalesce("num_gpus_job", "num_gpus") / 3600
    fills = {name: pl.coalesce(name, f"{name}_job") for name in ("job_id", "cluster", *_FROM_JOB)}
    return joined.with_columns(
        **fills,
        hosts=pl.coalesce("hosts", "hosts_job"),
        host_mem_peak_bytes=pl.coalesce("host_mem_peak_bytes", "host_mem_peak_bytes_job"),
        started_at=pl.when(is_silent & pl.col("is_first")).then("started_at_job").otherwise("started_at"),
        ended_at=pl.when(is_silent & pl.col("is_last")).then("ended_at_job").otherwise("ended_at"),
        queue_wait_s=pl.when("is_first").then("queue_wait_s_job"),
        held_after_end_s=pl.max_horizontal("held_after_end_s", "held_after_end_s_by_job"),
        scheduler_state=pl.col("job_state"),
        scheduler_exit=pl.format("{}:{}", "exit_code", "exit_signal"),
        gpu_hours=pl.when(is_charged & charged.is_not_null()).then(charged).otherwise("gpu_hours"),
        gpu_hours_basis=pl.when(is_charged & charged.is_not_null()).then(pl.lit("given")).otherwise("gpu_hours_basis"),
        allocated_gpu_hours=pl.when("is_last").then(pl.col("elapsed_s") * pl.col("num_gpus_job") / 3600),
    )


def _without_assumptions(runs: pl.DataFrame, assumed: pl.DataFrame) -> pl.DataFrame:
    """`runs` with the scheduler's values in place of documented defaults, and without what was derived from those."""
    names = assumed["name"].unique().to_list()
    guessed = assumed.group_by("run_id").agg(pl.col("name").alias("guessed"))
    marked = runs.join(guessed, on="run_id", how="left", maintain_order="left")

    def real(name: str) -> pl.Expr:
        is_guess = pl.col("guessed").list.contains(name).fill_null(value=False)
        known = pl.col(f"{name}_job") if name in _FROM_JOB else pl.lit(None)
        return pl.when(is_guess).then(known).otherwise(name).alias(name)

    return RUNS.conform(marked.with_columns(real(name) for name in names if name in RUNS.column_names))


def _filled_by_job(joined: pl.DataFrame, assumed: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `name` of values that the job has and the log has not, or only as a documented default."""
    guesses = assumed.select("run_id", "name")
    empty = [joined.filter(pl.col(name).is_null()).select("run_id", name=pl.lit(name)) for name in _FROM_JOB]
    known = [
        joined.filter(pl.col(f"{name}_job").is_not_null()).select("run_id", name=pl.lit(name)) for name in _FROM_JOB
    ]
    return pl.concat([*empty, guesses]).unique().join(pl.concat(known), on=["run_id", "name"], how="semi")


def _settings(joined: pl.DataFrame, by_job: pl.DataFrame, derived: pl.DataFrame) -> pl.DataFrame:
    """SETTINGS rows with the source of the filled values."""
    values = [
        joined.select(
            "run_id",
            name=pl.lit(name),
            value=pl.col(f"{name}_job").cast(pl.String),
            setting_source=pl.lit("scheduler"),
            source_path=pl.col("source_path_job"),
            line_no=pl.col("line_no_job"),
        )
        for name in _FROM_JOB
    ]
    filled = pl.concat(values).join(by_job, on=["run_id", "name"], how="semi")
    followed = derived.join(joined.select("run_id", "source_path"), on="run_id")
    rows = pl.concat([SETTINGS.conform(filled), SETTINGS.conform(followed)])
    return rows.sort(SETTINGS.primary_key).with_columns(is_used=pl.lit(value=True))


def _events(pairs: pl.DataFrame) -> pl.DataFrame:
    """EVENTS rows: the job's line of the table, as evidence of its last attempt."""
    last = pairs.filter("is_last")
    return EVENTS.conform(
        last.select(
            "run_id",
            "source_path",
            "line_no",
            "text",
            ts=pl.col("ended_at"),
            kind=pl.lit("scheduler"),
            host=pl.when(~pl.col("hosts").str.contains(",")).then("hosts"),
        )
    ).unique(EVENTS.primary_key, keep="first", maintain_order=True)


def changes(found: Reconciled) -> dict[str, tuple[pl.DataFrame, pl.DataFrame]]:
    """By table: keys of the rows to delete, and rows to insert."""
    return {
        RUNS.name: (found.runs.select(RUNS.primary_key), found.runs),
        EVENTS.name: (found.events.select(EVENTS.primary_key), found.events),
        SETTINGS.name: (
            pl.concat([found.settings_gone, found.settings.select(SETTINGS.primary_key)]).unique(),
            found.settings,
        ),
    }
