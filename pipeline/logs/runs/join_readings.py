"""Readings of the same run made one: its steps from all of them, and what else is known of which run."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.logs.runs.joined_steps import CONFLICTS, join_steps
from sweepscope.pipeline.logs.runs.readings import decide, numbered
from sweepscope.pipeline.logs.runs.renumbered import renumbered

MICRO_BATCHES = pl.Schema({"reading": pl.Int64, "source": pl.Int64, "ratio": pl.Int64})
"""One row per run whose log (`source`) counts micro-batches where a file counts its steps: so many to a step."""

JOINED = pl.Schema({"source": pl.Int64, "unit": pl.String, "job": pl.String, "launch": pl.String, "reading": pl.Int64})
"""One row per source and run (`reading`) that it was joined to."""


@dataclass(frozen=True)
class Runs:
    """Readings that are runs.

    Attributes:
        steps: STEP_FACTS rows with `run`; a row may come from another source than its run.
        readings: one row per run, with `reading` and `run`, NULL where it has no steps.
        joined: JOINED rows.
        conflicts: joined_steps.CONFLICTS rows.
        micro_batches: MICRO_BATCHES rows.
        doubtful: readings.DECISIONS rows of readings that may be of another run, and count nowhere.
    """

    steps: pl.DataFrame
    readings: pl.DataFrame
    joined: pl.DataFrame
    conflicts: pl.DataFrame
    micro_batches: pl.DataFrame
    doubtful: pl.DataFrame


def join_readings(steps: pl.DataFrame, readings: pl.DataFrame, spans: pl.DataFrame) -> Runs:
    """Runs from readings.

    Args:
        steps: STEP_FACTS rows with `run`, one per run and step.
        readings: attempts with the columns of their source; `launch` tells files of steps apart, too.
        spans: `source`, `line_no` and `ts` of timestamps.
    """
    readings = numbered(readings)
    started = spans.group_by("source").agg(started_at=pl.col("ts").first())
    decided = decide(readings, steps, started)
    doubtful, decisions = decided.filter("is_doubtful"), decided.filter(~pl.col("is_doubtful"))
    if decisions.is_empty():
        joined, conflicts, ratios = (pl.DataFrame(schema=schema) for schema in (JOINED, CONFLICTS, MICRO_BATCHES))
        return Runs(steps, readings, joined, conflicts, ratios, doubtful)
    kept = readings.join(decisions, on="reading", how="anti", maintain_order="left")
    gone = readings.join(decisions, on="reading", maintain_order="left")
    of_gone = gone.group_by("target").agg(
        further_run=pl.col("run").min(),
        written=pl.col("modified_at").max(),
        further_dialect=pl.col("dialect").drop_nulls().first(),
        # The folder's newest job is that of a log without one; what the scheduler keeps of a job has its own.
        further_job=pl.col("job")
        .filter((pl.col("kind") == "log") & (pl.col("launch") != "") & (pl.col("job") != ""))
        .last(),
    )
    kept = kept.join(of_gone, left_on="reading", right_on="target", how="left", maintain_order="left").with_columns(
        run=pl.coalesce("run", "further_run"),
        modified_at=pl.max_horizontal("modified_at", "written"),
        dialect=pl.coalesce("dialect", "further_dialect"),
        job=pl.coalesce("further_job", "job"),
    )
    of_gone_sources = gone.drop("reading").rename({"target": "reading"})
    involved = pl.concat([decisions["reading"], decisions["target"]]).unique()
    numbers = readings.filter(pl.col("reading").is_in(involved.implode())).select("run", "reading").drop_nulls()
    whole = join_steps(renumbered(steps.join(numbers, on="run").drop("run"), decisions), decisions)
    merged = whole.steps.join(kept.select("reading", "run"), on="reading").select(steps.columns)
    untouched = steps.join(numbers, on="run", how="anti", maintain_order="left")
    return Runs(
        steps=pl.concat([untouched, merged]).sort("run", "step").with_columns(pl.col("run").set_sorted()),
        readings=kept.select(readings.columns),
        joined=of_gone_sources.select(JOINED.names()).cast(JOINED),
        conflicts=whole.conflicts,
        micro_batches=_micro_batches(decisions, kept),
        doubtful=doubtful,
    )


def _micro_batches(decisions: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    ratios = decisions.drop_nulls("ratio").unique("target", keep="last", maintain_order=True)
    return ratios.join(runs.select("reading", "source"), left_on="target", right_on="reading").select(
        reading="target", source="source", ratio="ratio"
    )


def in_own_logs(steps: pl.DataFrame) -> pl.DataFrame:
    """`steps` with the lines of those only that the run's own log has (`run_source`)."""
    return steps.with_columns(line_no=pl.when(pl.col("source") == pl.col("run_source")).then("line_no"))


def with_own_paths(steps: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """`steps` whose `source_path` is that of the file that each comes from, not of its run.

    Args:
        steps: with `source`.
        sources: `source`, `path`.
    """
    own = steps.join(sources.select("source", "path"), on="source", how="left", maintain_order="left")
    return own.with_columns(source_path=pl.coalesce("path", "source_path")).drop("path")


def duplicates(doubtful: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `duplicate_of`: runs that may be another one, read twice.

    Args:
        doubtful: readings.DECISIONS rows.
        runs: `reading`, `run_id`.
    """
    ids = runs.select("reading", "run_id")
    pairs = doubtful.join(ids, on="reading").join(ids, left_on="target", right_on="reading", suffix="_other")
    return pairs.select("run_id", duplicate_of="run_id_other")


def doubts(doubtful: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Events that tell why such runs count nowhere; arguments as of `duplicates`, `runs` with `path`, too."""
    names = runs.select("reading", "run_id", "path", name=_name())
    pairs = doubtful.join(names, on="reading").join(names, left_on="target", right_on="reading", suffix="_other")
    return pairs.select(
        "run_id",
        line_no=pl.lit(None, pl.Int64),
        source_path="path",
        kind=pl.lit("inconsistent"),
        text=pl.format(
            "it has the steps of {}, with another loss for {} of them: it may be that run, and counts nowhere",
            "name_other",
            "differing",
        ),
    )


def _name() -> pl.Expr:
    return pl.col("path").str.extract(r"([^/]*)$")


def contradictions(conflicts: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Events where a further reading of a run has other losses.

    Args:
        conflicts: joined_steps.CONFLICTS rows.
        runs: `reading`, `run_id`.
        sources: `source`, `path`.
    """
    names = sources.select("source", "path", name=_name())
    located = (
        conflicts.join(runs.select("reading", "run_id"), on="reading")
        .join(names, on="source")
        .join(names.rename({"source": "other_source"}), on="other_source", suffix="_other")
    )
    return located.select(
        "run_id",
        "line_no",
        source_path="path",
        kind=pl.lit("inconsistent"),
        text=pl.format(
            "loss of step {}: {} has {}, {} has {}; the former counts ({} of {} common steps differ)",
            "step",
            "name",
            "loss",
            "path_other",
            "other_loss",
            "differing",
            "common",
        ),
    )
