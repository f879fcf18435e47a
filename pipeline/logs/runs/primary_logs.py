"""The primary log of each launch of a job: the one whose lines number its attempts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import polars as pl

from sweepscope.pipeline.io.spill import stretches
from sweepscope.pipeline.logs.dialect import Dialect, marks_run
from sweepscope.pipeline.logs.evidence import endings, ignored_exceptions, jobs, symptoms
from sweepscope.pipeline.logs.evidence.batch_systems import FROM_PARALLEL_LAUNCHER
from sweepscope.pipeline.logs.facts import Facts


def primary_logs(sources: pl.DataFrame, facts: Facts, dialects: Sequence[Dialect]) -> pl.DataFrame:
    """The `sources` row of each launch's primary log: most steps, then most settings, then a known dialect, its name.

    Every file of steps is a launch of its own, whose `launch` is its path.

    A unit whose logs match no dialect and hold no event that tells of a training (`telling_events`), without a
    configuration beside them, is no run. With one, an exception is enough.
    """
    counted = _with_dialect_beside(sources, dialects)
    # Settings by name: how often a log repeats one is no evidence.
    settings = facts.settings.unique(["source", "name"])
    numbers = {"n_steps": facts.steps, "n_settings": settings, "n_events": telling_events(facts.events)}
    for name, frame in numbers.items():
        of_source = stretches(frame["source"]).group_by(source="value").agg(pl.col("len").sum().alias(name))
        counted = counted.join(of_source, on="source", how="left")
    counted = counted.with_columns(pl.col(*numbers).fill_null(0), known=pl.col("dialect").is_not_null())
    raised = facts.events.filter(pl.col("kind") == "exception")["source"].unique()
    configured = sources.filter((pl.col("kind") == "config") & pl.col("dialect").is_not_null())["unit"].unique()
    has_failed = pl.col("source").is_in(raised.implode()) & pl.col("unit").is_in(configured.implode())
    is_log, has_events = pl.col("kind") == "log", (pl.col("n_events") > 0) | has_failed
    counted = counted.filter(pl.when(is_log).then(pl.col("known") | has_events).otherwise(pl.col("n_steps") > 0))
    counted = counted.with_columns(is_log=is_log, of_log=pl.col("dialect").filter(is_log).first().over("unit", "job"))
    counted = counted.with_columns(launch=pl.when(is_log).then("launch").otherwise("path"))
    group = ["unit", "job", "launch"]
    order = [*group, "n_steps", "is_log", "known", "n_settings", "n_events", "path"]
    ordered = counted.sort(order, descending=[False, False, False, *[True] * 5, False])
    primary = ordered.unique(group, keep="first", maintain_order=True)
    # Several trainers write the same kind of history as transformers; only the log tells which one it was.
    dialect = pl.when("is_log").then("dialect").otherwise(pl.coalesce("of_log", "dialect"))
    return primary.with_columns(dialect=dialect).drop("of_log")


def telling_events(events: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS that only a training gives: failures and ends, and the last line of a log of which none is known.

    Lines that any program may print (exceptions, exit codes) are none, unless they are FROM_PARALLEL_LAUNCHER.
    """
    is_common = pl.col("kind").is_in(["exception", "exit_code"]) & ~pl.col("text").str.contains(FROM_PARALLEL_LAUNCHER)
    of_any_program = ("traceback", ignored_exceptions.KIND, jobs.KIND, endings.KIND, *symptoms.KINDS)
    return events.filter(~(is_common | pl.col("kind").is_in(of_any_program)))


def _with_dialect_beside(sources: pl.DataFrame, dialects: Sequence[Dialect]) -> pl.DataFrame:
    """Logs and histories among `sources`; one without a dialect takes that of a file beside it that marks a run."""
    beside = sources.filter(
        ~pl.col("kind").is_in(["log", "history", "scheduler", "nccl", "flight_record"])
        & pl.col("dialect").is_not_null()
    )
    by_name = {dialect.name: [dialect] for dialect in dialects}
    marks = cache(lambda file, name: marks_run(file, by_name.get(name, [])))  # a sweep repeats a few names
    is_mark = [marks(path.rpartition("/")[2], name) for path, name in beside.select("path", "dialect").iter_rows()]
    framework = (
        beside.filter(pl.Series(is_mark, dtype=pl.Boolean))
        .group_by("unit")
        .agg(dialect_beside=pl.col("dialect").first())
    )
    return (
        sources.filter(pl.col("kind").is_in(["log", "history"]))
        .join(framework, on="unit", how="left", maintain_order="left")
        .with_columns(dialect=pl.coalesce("dialect", "dialect_beside"))
        .drop("dialect_beside")
    )
