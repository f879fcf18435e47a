"""Which run a fact belongs to: the attempt in whose lines it is printed, or the attempts of its job."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.evidence.patterns import MAX_TEXT_CHARS
from sweepscope.pipeline.logs.facts import Facts, in_order


def attempt_of(facts: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """`facts` with the `run_id` of the attempt in whose lines they are printed; NULL outside of primary logs."""
    starts = runs.select("source", pl.col("start_line").alias("line_no"), "run_id").sort("source", "line_no")
    return in_order(facts).join_asof(starts, on="line_no", by="source", strategy="backward", check_sortedness=False)


def attribute_events(events: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS rows with `run_id`, `source_path`, and `is_secondary`: printed in another file than the steps.

    Events of such a file belong to the job's last attempt.

    Args:
        events: EVENT_FACTS.
        runs: attempts in order: `run_id`, `source`, `start_line`, `unit`, `job`.
        sources: `source`, `path`, `unit`, `job` of every log.
    """
    found = attempt_of(events, runs).join(sources.select("source", "path", "unit", "job"), on="source", how="left")
    job = ["unit", "job"]
    last = runs.unique(job, keep="last", maintain_order=True).select(*job, pl.col("run_id").alias("last_run_id"))
    return found.join(last, on=job, how="left").with_columns(
        is_secondary=pl.col("run_id").is_null(),
        run_id=pl.coalesce("run_id", "last_run_id"),
        source_path=pl.col("path"),
        text=pl.col("text").str.slice(0, MAX_TEXT_CHARS),
    )


def with_run(facts: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """`facts` with their `run_id`; those of a job's other logs only where the job has a single attempt.

    Args:
        facts: `source`, `line_no` and others.
        runs, sources: as of `attribute_events`; `sources` with `kind`, too.
    """
    if facts.is_empty():
        return facts.with_columns(run_id=pl.lit(None, pl.String))
    single = runs.filter(pl.len().over("unit", "job") == 1)
    return pl.concat([attempt_of(facts, runs).drop_nulls("run_id"), of_other_logs(facts, single, sources)])


def of_other_logs(facts: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """`facts` of the logs that are not primary, once for each of `runs` of their job."""
    beside = sources.filter(pl.col("kind") == "log").join(runs, on="source", how="anti").select("source", "unit", "job")
    owners = beside.join(runs.select("unit", "job", "run_id"), on=["unit", "job"]).select("source", "run_id")
    return facts.join(owners, on="source", maintain_order="left")


def steps_of_all_ranks(steps: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """STEP_FACTS rows of every rank with `run_id` and `source_path`, of files in which several ranks print."""
    many = steps.group_by("source").agg(pl.col("rank").n_unique()).filter(pl.col("rank") > 1)
    of_many = steps.join(many, on="source", how="semi")
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
