"""Which run a fact belongs to: the attempt in whose lines it is printed, or the attempts of its job."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.io.spill import SLICE_ROWS, in_slices
from sweepscope.pipeline.logs.evidence.patterns import MAX_TEXT_CHARS
from sweepscope.pipeline.logs.facts import Facts, in_order


def attempt_of(facts: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """`facts` with the `run_id` of the attempt in whose lines they are printed; NULL outside of primary logs."""
    starts = runs.select("source", pl.col("start_line").alias("line_no"), "run_id").sort("source", "line_no")
    return in_order(facts).join_asof(starts, on="line_no", by="source", strategy="backward", check_sortedness=False)


def owners_of(sources: pl.DataFrame, runs: pl.DataFrame, joined: pl.DataFrame) -> pl.DataFrame:
    """`source`, `run_id`: the runs, in order, that logs without a run of their own tell of.

    These are the runs of their launch, else of their job.

    Args:
        sources: `source`, `kind`, `unit`, `job`, `launch`.
        runs: attempts in order: `run_id`, `source`, `unit`, `job`, `launch`.
        joined: `unit`, `job`, `launch` and `run_id` of runs that others of their readings were joined to.
    """
    job, launch = ["unit", "job"], ["unit", "job", "launch"]
    beside = sources.filter(pl.col("kind") == "log").join(runs, on="source", how="anti").select("source", *launch)
    of_launch = pl.concat([runs.select(*launch, "run_id"), joined.select(*launch, "run_id")]).unique(
        maintain_order=True
    )
    found = beside.join(of_launch, on=launch, maintain_order="left_right").select("source", "run_id")
    others = beside.join(found, on="source", how="anti", maintain_order="left")
    of_job = others.join(runs.select(*job, "run_id"), on=job, maintain_order="left_right").select("source", "run_id")
    return pl.concat([found, of_job])


def attribute_events(
    events: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame, owners: pl.DataFrame
) -> pl.DataFrame:
    """EVENT_FACTS rows with `run_id`, `source_path`, and `is_secondary`: printed in another file than the steps.

    Events of such a file belong to the last attempt that it tells of.

    Args:
        events: EVENT_FACTS.
        runs: attempts in order: `run_id`, `source`, `start_line`.
        sources: `source`, `path` of every log.
        owners: rows of `owners_of`.
    """
    found = attempt_of(events, runs).join(sources.select("source", "path"), on="source", how="left")
    last = owners.unique("source", keep="last", maintain_order=True).select("source", last_run_id="run_id")
    return found.join(last, on="source", how="left").with_columns(
        is_secondary=pl.col("run_id").is_null(),
        run_id=pl.coalesce("run_id", "last_run_id"),
        source_path=pl.col("path"),
        text=pl.col("text").str.slice(0, MAX_TEXT_CHARS),
    )


def with_run(facts: pl.DataFrame, runs: pl.DataFrame, owners: pl.DataFrame) -> pl.DataFrame:
    """`facts` with their `run_id`; those of other logs only where these tell of a single attempt.

    Args:
        facts: `source`, `line_no` and others.
        runs, owners: as of `attribute_events`.
    """
    if facts.is_empty():
        return facts.with_columns(run_id=pl.lit(None, pl.String))
    single = owners.filter(pl.len().over("source") == 1)
    of_attempts = in_slices(in_order(facts), lambda rows: attempt_of(rows, runs).drop_nulls("run_id"))
    return of_attempts if single.is_empty() else pl.concat([of_attempts, facts.join(single, on="source")])


def steps_of_all_ranks(steps: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS rows of every rank with `run_id` and `source_path`, of files in which several ranks print."""
    pairs = steps["source", "rank"]
    ranks = pl.concat([pairs.clear(), *(rows.unique() for rows in pairs.iter_slices(SLICE_ROWS))])
    many = ranks.group_by("source").agg(pl.col("rank").n_unique()).filter(pl.col("rank") > 1)
    of_many = steps.join(many, on="source", how="semi") if many.height else steps.clear()
    return attempt_of(of_many, runs).join(runs.select("run_id", source_path="path"), on="run_id", maintain_order="left")


def trainer_starts(facts: Facts, runs: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `first_line`: the first launch, argument or step that the trainer of each of `runs` printed.

    `runs` holds all attempts of some logs.
    """
    if runs.is_empty():
        return pl.DataFrame(schema={"run_id": pl.String, "first_line": pl.Int64})
    by_trainer = [
        facts.events.filter(pl.col("kind") == "launch"),
        facts.settings.filter(pl.col("setting_source") == "argument_dump"),
        facts.steps,
    ]
    is_wanted = pl.col("source").is_in(runs["source"].unique().implode())
    lines = pl.concat(frame.select("source", "line_no").filter(is_wanted) for frame in by_trainer)
    return attempt_of(lines, runs).drop_nulls("run_id").group_by("run_id").agg(first_line=pl.col("line_no").min())
