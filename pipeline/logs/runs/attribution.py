"""Which run a fact belongs to: the attempt in whose lines it stands, or the attempts of its job."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.dialect import Facts, in_order
from sweepscope.pipeline.logs.evidence.patterns import MAX_TEXT_CHARS


def attempt_of(facts: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Facts of leading logs with the `run_id` of the attempt in whose lines they stand."""
    starts = runs.select("source", pl.col("start_line").alias("line_no"), "run_id").sort("source", "line_no")
    return in_order(facts).join_asof(starts, on="line_no", by="source", strategy="backward", check_sortedness=False)


def _last_runs(runs: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    return runs.unique(key, keep="last", maintain_order=True).select(*key, pl.col("run_id").alias("last_run_id"))


def place_events(events: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Events with run, path and whether they stand in another file than the steps (then: the job's last attempt)."""
    placed = attempt_of(events, runs).join(sources.select("source", "path", "unit", "job"), on="source", how="left")
    placed = placed.join(_last_runs(runs, ["unit", "job"]), on=["unit", "job"], how="left")
    return placed.with_columns(
        is_secondary=pl.col("run_id").is_null(),
        run_id=pl.coalesce("run_id", "last_run_id"),
        source_path=pl.col("path"),
        text=pl.col("text").str.slice(0, MAX_TEXT_CHARS),
    )


def with_run(facts: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Facts with the run they belong to; those of a job's other logs only where the job has a single attempt."""
    if facts.is_empty():
        return facts.with_columns(run_id=pl.lit(None, pl.String))
    single = runs.filter(pl.len().over("unit", "job") == 1)
    return pl.concat([attempt_of(facts, runs).drop_nulls("run_id"), of_other_logs(facts, single, sources)])


def of_other_logs(facts: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Facts of the logs that do not lead, once for every one of `runs` of their job."""
    beside = sources.filter(pl.col("kind") == "log").join(runs, on="source", how="anti").select("source", "unit", "job")
    owners = beside.join(runs.select("unit", "job", "run_id"), on=["unit", "job"]).select("source", "run_id")
    return facts.join(owners, on="source", maintain_order="left")


def printed(parsed: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Step lines of every rank with their run, of files in which several ranks print."""
    many = parsed.group_by("source").agg(pl.col("rank").n_unique()).filter(pl.col("rank") > 1)
    mine = parsed.join(many, on="source", how="semi")
    return attempt_of(mine, runs).join(runs.select("run_id", source_path="path"), on="run_id", maintain_order="left")


def begun(facts: Facts, runs: pl.DataFrame) -> pl.DataFrame:
    """First line of each of `runs` (all of some logs) that its trainer printed: a launch, an argument or a step."""
    if runs.is_empty():
        return pl.DataFrame(schema={"run_id": pl.String, "first_line": pl.Int64})
    said = [
        facts.events.filter(pl.col("kind") == "launch"),
        facts.settings.filter(pl.col("setting_source") == "argument_dump"),
        facts.steps,
    ]
    is_asked = pl.col("source").is_in(runs["source"].unique().implode())
    lines = pl.concat(frame.select("source", "line_no").filter(is_asked) for frame in said)
    return attempt_of(lines, runs).drop_nulls("run_id").group_by("run_id").agg(first_line=pl.col("line_no").min())
