"""Runs of a batch: which logs, attempts and further readings are one run, and what tells which facts are its own.

What is known of a run is put together in `assemble`; here it only gets its steps, its name and its lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from sweepscope.pipeline.derive.run_id import run_id
from sweepscope.pipeline.io.spill import in_slices
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine.extract import of_sources
from sweepscope.pipeline.logs.facts import EVIDENCE, INFERRED, Facts
from sweepscope.pipeline.logs.runs.attempts import number_attempts
from sweepscope.pipeline.logs.runs.attribution import owners_of
from sweepscope.pipeline.logs.runs.join_readings import Runs, in_own_logs, join_readings, with_own_paths
from sweepscope.pipeline.logs.runs.launches import ends, launches
from sweepscope.pipeline.logs.runs.primary_logs import primary_logs
from sweepscope.pipeline.logs.runs.settings import configured_from
from sweepscope.pipeline.logs.runs.stepless import headings, run_headers
from sweepscope.pipeline.logs.runs.summary import step_lines


@dataclass(frozen=True)
class Folded:
    """The runs of a batch, and what tells which of its facts are theirs.

    Attributes:
        runs: one row per run: its attempt (`_name_runs`) and its `reading`.
        configured: `runs`, each beginning where the lines begin that configure it.
        steps: STEP_FACTS rows with `run_id`, under the paths of the files that they were read from.
        lines_of_steps: `step_lines` of each run in its own log.
        owners: which files tell of which run (`owners_of`).
        joined: readings that were joined to a run, with its `run_id`.
        found: what joining the readings gave.
        repeats: REPEATS rows: counts of step lines that add no step.
    """

    runs: pl.DataFrame
    configured: pl.DataFrame
    steps: pl.DataFrame
    lines_of_steps: pl.DataFrame
    owners: pl.DataFrame
    joined: pl.DataFrame
    found: Runs
    repeats: pl.DataFrame


def fold(
    sources: pl.DataFrame, facts: Facts, parsed: pl.DataFrame, spans: pl.DataFrame, dialects: Sequence[Dialect]
) -> Folded:
    """Runs from the primary logs: attempts, joined with other readings of the same, and named.

    Args:
        sources: SOURCES rows.
        facts: facts of all sources.
        parsed: their steps, checked.
        spans: first and last timestamps of blocks.
        dialects: the dialects that read the files.
    """
    primary = primary_logs(sources, facts, dialects)
    steps, attempts, repeats = number_attempts(
        of_sources(set(primary["source"]))(parsed),
        launches(facts).join(primary, on="source", how="semi"),
        ends(facts),
        primary["source"],
        headings(facts),
    )
    found = join_readings(steps, primary.join(attempts, on="source"), spans)
    numbered = _name_runs(found.readings)
    # With both sides sorted the join need not hash.
    names = numbered.select("run", "run_id", "source_path", run_source="source").drop_nulls("run").sort("run")
    steps = in_slices(found.steps, lambda rows: rows.join(names, on="run", how="left", maintain_order="left"))
    steps = steps.with_columns(pl.col("run").set_sorted())
    runs = numbered.drop("run")
    joined = found.joined.join(runs.select("reading", "run_id"), on="reading", maintain_order="left")
    lines_of_steps = step_lines(in_own_logs(steps) if joined.height else steps)
    return Folded(
        runs=runs,
        configured=configured_from(runs, lines_of_steps, run_headers(facts.events)),
        steps=(with_own_paths(steps, sources) if joined.height else steps).drop("run_source"),
        lines_of_steps=lines_of_steps,
        owners=owners_of(sources, runs, joined),
        joined=joined,
        found=found,
        repeats=repeats,
    )


def _name_runs(rows: pl.DataFrame) -> pl.DataFrame:
    """Attempts with `attempt`, `run_id` and the columns of `runs` that follow from their file.

    `attempt` counts within the unit, so that a requeued job's second log is attempt 2; the id counts within the file.
    """
    rows = rows.sort("unit", pl.col("job").str.len_chars(), "job", "reading").with_columns(
        attempt=(pl.int_range(pl.len()).over("unit") + 1).cast(pl.Int64)
    )
    ids = [run_id(path, str(n)) for path, n in rows.select("path", "attempt_in_source").iter_rows()]
    return rows.with_columns(
        pl.Series("run_id", ids, dtype=pl.String),
        source_path=pl.col("path"),
        framework=pl.when(pl.col("dialect") != INFERRED).then("dialect").fill_null("other"),
        parser=pl.coalesce("dialect", pl.lit(EVIDENCE)),
        job_id=pl.col("job").replace("", None),
        line_no=pl.col("start_line").clip(1),
    )
