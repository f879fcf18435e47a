"""Launches that logged no step, between others of one log: each is an attempt that started and stopped.

A launch prints many lines that show it, and each of its processes prints them again. One line tells launches from each
other: the heading that each of them begins with, at a time when all processes of the one before have long printed it.
Without times, it is known by what stands between the two: that the one before was killed or has failed.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.evidence import jobs
from sweepscope.pipeline.logs.facts import RUN_HEADER, Facts
from sweepscope.pipeline.logs.runs.launches import APART, LAST_KINDS


def headings(facts: Facts) -> pl.DataFrame:
    """`source` and `line_no` of the headings of launches, at least two of a log: each has the first one's words.

    Where a script announces its runs, these lines are the headings; where the scheduler reports the ends of more jobs,
    the lines with which their parts begin.
    """
    events = facts.events
    begun = events.filter(pl.col("kind") == "launch").sort("source", "line_no", maintain_order=True)
    begun = begun.with_columns(heading=pl.col("text").str.replace_all("[0-9]+", "0").str.strip_chars_end(" .!:"))
    same = begun.filter(pl.col("heading") == pl.col("heading").first().over("source"))
    dated = same.drop_nulls("ts")
    is_apart = (pl.col("ts").diff().over("source") >= APART).fill_null(value=True)
    apart = dated.filter(is_apart & (pl.len().over("source") > 1)).select("source", "line_no")
    undated = _behind_failures(same.join(dated, on="source", how="anti").select("source", "line_no"), facts)
    found = pl.concat([apart, undated.filter(pl.len().over("source") > 1)])
    of_jobs = jobs.parts(events)
    counts = (
        pl.concat([found.with_columns(more=-1), of_jobs.with_columns(more=1)]).group_by("source").agg(pl.sum("more"))
    )
    of_jobs = of_jobs.join(counts.filter(pl.col("more") > 0), on="source", how="semi")
    found = pl.concat([found.join(of_jobs, on="source", how="anti"), of_jobs])
    by_script = run_headers(events)
    others = found.join(by_script, on="source", how="anti")
    return pl.concat([others, by_script]).unique().sort("source", "line_no")


def _behind_failures(same: pl.DataFrame, facts: Facts) -> pl.DataFrame:
    """Those of `same`, headings in order, in front of which the launch of the one before has ended, and the first.

    What a launcher or the system reports as an end is one. An exception of one process is one where steps follow the
    last heading: the launch of which a process fails at its start logs none, and the others may print it even later.
    """
    if same.height < 2:
        return same
    kinds = facts.events.filter(pl.col("kind").is_in([*LAST_KINDS, "exception"]))
    failed = kinds.select("source", "line_no", failed="line_no", is_end=pl.col("kind") != "exception")
    last = same.group_by("source").agg(pl.col("line_no").max())
    trained = facts.steps.lazy().select("source", step="line_no").group_by("source").agg(pl.max("step")).collect()
    trains = last.join(trained, on="source").filter(pl.col("step") > pl.col("line_no"))["source"]
    failed = failed.filter(pl.col("is_end") | pl.col("source").is_in(trains.implode())).sort("line_no")
    known = same.sort("line_no").join_asof(
        failed, on="line_no", by="source", strategy="backward", check_sortedness=False
    )
    before = pl.col("line_no").shift(1).over("source")
    is_apart = before.is_null() | (pl.col("failed") > before).fill_null(value=False)
    return known.sort("source", "line_no").filter(is_apart).select("source", "line_no")


def run_headers(events: pl.DataFrame) -> pl.DataFrame:
    """`source` and `line_no` of the lines with which a script announces one run after the other."""
    return events.filter(kind=RUN_HEADER).select("source", "line_no").unique().sort("source", "line_no")


def with_stepless(attempts: pl.DataFrame, firsts: pl.DataFrame, begun: pl.DataFrame) -> pl.DataFrame:
    """ATTEMPTS rows with those of launches that logged no step before the next one began, numbered anew.

    Args:
        attempts: ATTEMPTS rows; of the launches behind a log's last step there is one at most.
        firsts: `source`, `run` and `line_no` of the first step of each attempt.
        begun: `headings`.
    """
    ahead = begun.with_columns(until=pl.col("line_no").shift(-1).over("source")).sort("line_no")
    printed = firsts.select("source", first="line_no").sort("first")
    ahead = ahead.join_asof(
        printed, left_on="line_no", right_on="first", by="source", strategy="forward", check_sortedness=False
    )
    is_last = pl.col("first").is_null()
    stepless = ahead.filter(is_last | (pl.col("first") > pl.col("until")).fill_null(value=False))
    if stepless.is_empty():
        return attempts
    # The attempt of a step begins with the last heading above it: those before are of launches without steps.
    nearest = firsts.sort("line_no").join_asof(
        begun.select("source", "line_no", begin="line_no").sort("line_no"),
        on="line_no",
        by="source",
        strategy="backward",
        check_sortedness=False,
    )
    behind = attempts.join(stepless.filter(is_last), on="source", how="semi").filter(pl.col("run").is_null())
    kept = attempts.join(behind, on=["source", "start_line"], how="anti")
    kept = kept.join(nearest.select("run", "begin"), on="run", how="left", maintain_order="left")
    moved = pl.max_horizontal("start_line", pl.coalesce("begin", "start_line"))
    alone = stepless.select("source", start_line="line_no", run=pl.lit(None, pl.Int64))
    rows = pl.concat([kept.select("source", "run", start_line=moved), alone], how="diagonal")
    rows = rows.sort("source", "start_line", maintain_order=True)
    is_first = pl.col("source").is_first_distinct()
    return rows.select(
        "source",
        attempt_in_source=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("source"),
        start_line=pl.when(is_first).then(pl.lit(0, pl.Int64)).otherwise("start_line"),
        run="run",
    )
