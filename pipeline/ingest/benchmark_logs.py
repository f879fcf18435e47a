"""Logs of scripts that measure trainings, in place of or beside what else was read of them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from sweepscope.pipeline.ingest.line_numbers import rows_of
from sweepscope.pipeline.logs.benchmarks.read import read_benchmark, read_end
from sweepscope.pipeline.logs.evidence import endings, ignored_exceptions, jobs, symptoms
from sweepscope.pipeline.logs.facts import RUN_HEADER, Facts

_NO_FAILURES = (
    *("launch", "training_end", "epilogue", jobs.KIND, endings.KIND, endings.CLOSED, ignored_exceptions.KIND),
    *symptoms.KINDS,
)


def with_benchmark(source: int, sample: pl.DataFrame, read: Facts, known: Facts) -> Facts | None:
    """Facts of a log with the launches that it announces, or with its summary; None where it has neither.

    Args:
        source: of the log.
        sample: its lines (`log_blocks.sample`).
        read: what was inferred from it.
        known: what dialects have read, in the order of files; a line of steps and of events is read there or in `read`.
    """
    mine = known.map(lambda rows: rows[rows_of(rows["source"], source)])
    steps = pl.concat([mine.steps, read.steps]) if read.steps.is_empty() else read.steps
    events = pl.concat([mine.events, read.events])
    used = pl.concat([steps["line_no"], events["line_no"]])
    if sample.is_empty() or (used > sample["line_no"][-1]).any():
        return None  # lines are missing, and headers among them
    failed = set(events.filter(~pl.col("kind").is_in(_NO_FAILURES))["line_no"])
    if sample["block"].n_unique() == 1:
        found = read_benchmark(sample, steps, failed)
        # What a dialect does not take for a step's time is none.
        if found is not None and read.steps.is_empty() and not mine.steps.is_empty():
            found = found if found.events.filter(kind=RUN_HEADER).height else None
    else:  # so they are, but for those of the end
        end = sample.filter(pl.col("block") == pl.col("block").last())
        found = None if read.steps.is_empty() else read_end(end, steps, failed)
    if found is None:
        return None
    found = found.map(lambda rows: rows.with_columns(source=pl.lit(source, pl.Int64)))
    if found.events.filter(kind=RUN_HEADER).is_empty():
        return Facts.concat([read, found])
    # The script's own lines say where a run begins, and a setting that changes with each is none of the whole log.
    events = read.events.filter(~pl.col("kind").is_in(["launch", "epilogue"]))
    settings = read.settings.join(found.settings, on="name", how="anti", maintain_order="left")
    return Facts.concat([replace(read, settings=settings, events=events), found])
