"""Rows of `runs`, `steps`, `events`, `settings` and `rejects` from the facts of a batch of files.

A unit is a run directory (or a single log with its stderr). Its logs of one job and launch are one run: the log with
the most steps is the primary one, the others add evidence. Several launches in the primary log are several attempts.
Files in which the trainer keeps its steps, and logs in folders of their own, are further readings of a run if they
agree with it (`readings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import polars as pl

from sweepscope.pipeline.io.spill import release
from sweepscope.pipeline.logs.diagnostics import diagnose, silence
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.evidence import failed_workers, jobs, symptoms
from sweepscope.pipeline.logs.facts import SETTING_FACTS, Facts, conform
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.logs.runs import setting_precedence
from sweepscope.pipeline.logs.runs.attribution import (
    attribute_events,
    steps_of_all_ranks,
    trainer_starts,
    with_run,
)
from sweepscope.pipeline.logs.runs.fold import Folded, fold
from sweepscope.pipeline.logs.runs.folders import of_folders
from sweepscope.pipeline.logs.runs.join_readings import (
    contradictions,
    doubts,
    duplicates,
)
from sweepscope.pipeline.logs.runs.named_layouts import Named, without_contradicted
from sweepscope.pipeline.logs.runs.run_outcomes import outcomes_of_runs
from sweepscope.pipeline.logs.runs.settings import (
    accumulated,
    arguments_of_runs,
    counted_ranks,
    rejected_settings,
    settings_of_runs,
    stepped,
    with_combined,
)
from sweepscope.pipeline.logs.runs.stamped_time import stamped_times
from sweepscope.pipeline.logs.runs.stated import STATED, of_runs
from sweepscope.pipeline.logs.runs.step_values import checked_peaks, checked_steps, repeated_steps
from sweepscope.pipeline.logs.runs.summary import (
    begin_and_end,
    merge_peaks,
    reported_peaks,
    startup,
    without_current_memory,
)
from sweepscope.pipeline.logs.steady_state import summarise
from sweepscope.schemas.registry import TABLES

SOURCES = pl.Schema(
    {
        "source": pl.Int64(),
        "path": pl.String(),
        "unit": pl.String(),
        "job": pl.String(),
        "launch": pl.String(),
        "kind": pl.String(),
        "modified_at": pl.Datetime("us"),
        "run_dir": pl.String(),
        "sweep": pl.String(),
        "origin": pl.String(),
        "dialect": pl.String(),
        "parser_version": pl.Int64(),
    }
)
"""One row per file of the batch. `job` and `launch` group a unit's logs into runs. `dialect` is NULL where neither the
lines of a log nor the reader of a sidecar matched one."""

SIDECAR_SETTINGS = pl.Schema(
    {"unit": pl.String, "path": pl.String, "name": pl.String, "value": pl.String, "setting_source": pl.String}
)
"""Settings from files beside the log and from folder names; they hold for every run of the unit."""


def assemble(
    sources: pl.DataFrame,
    facts: Facts,
    spans: pl.DataFrame,
    sidecars: pl.DataFrame,
    *,
    now: datetime,
    dialects: Sequence[Dialect] = DIALECTS,
    stated: pl.DataFrame | None = None,
    arguments: tuple[pl.DataFrame, pl.DataFrame] | None = None,
) -> dict[str, pl.DataFrame]:
    """Frames by table name, before normalising and validating; `runs` lacks the derived columns.

    Args:
        sources: SOURCES rows.
        facts: facts of all sources.
        spans: first and last timestamps of blocks (`extract.SPANS`).
        sidecars: SIDECAR_SETTINGS rows.
        now: the moment of reading.
        dialects: the dialects that read the files.
        stated: STATED rows of the sources.
        arguments: SETTING_FACTS rows of arguments that logs print, and SIDECAR_SETTINGS rows of those in files beside
            them, all under their own names.
    """
    facts = replace(facts, events=jobs.fold(failed_workers.fold_tables(facts.events)))
    parsed, bad_steps = checked_steps(facts.steps, sources)
    peaks, bad_peaks = checked_peaks(facts.peaks, sources)
    parsed = parsed.rechunk()  # polars hashes the groups of a column of several chunks even where it is sorted
    folded = fold(sources, facts, parsed, spans, dialects)
    runs, steps = folded.runs, folded.steps
    release()
    events = attribute_events(facts.events, runs, sources, folded.owners)
    users = of_runs(pl.DataFrame(schema=STATED) if stated is None else stated, runs, folded.joined, sources)
    beside = of_folders(sidecars, runs, folded.joined, sources)
    logged = settings_of_runs(facts.settings, beside, folded.configured, sources, folded.owners)
    logged = accumulated(folded.found.micro_batches, runs, logged)
    steps_by_rank = steps_of_all_ranks(parsed, runs)
    logged = counted_ranks(steps_by_rank, logged)
    named = _chosen_settings(folded, logged, users, dialects)
    rows = _run_rows(folded, named.chosen, peaks, spans, dialects)
    silences = _silences(steps, rows, now=now)
    release()
    seen = (folded.lines_of_steps, events, named.chosen, silences)
    rows = _completed(rows, outcomes_of_runs(rows, *seen, beside=folded.owners["run_id"], now=now))
    findings, diagnosed = diagnose.findings(
        conform(rows, diagnose.RUNS),
        steps,
        events.drop_nulls("run_id"),
        steps_by_rank=steps_by_rank,
        silences=silences,
        trainer_starts=trainer_starts(facts, _with_process_tables(runs, events)),
    )
    release()
    job_lines = facts.events.filter(pl.col("kind") == jobs.KIND)
    for known in (
        diagnosed,
        startup(folded.lines_of_steps, rows),
        duplicates(folded.found.doubtful, runs),
        failed_workers.first_failures(events),
        jobs.ids_of_runs(events, attribute_events(job_lines, folded.configured, sources, folded.owners), runs),
    ):
        rows = _completed(rows, known)
    all_events = (
        diagnose.without_symptoms(events),
        setting_precedence.conflicts(named.chosen),
        named.conflicts,
        contradictions(folded.found.conflicts, runs, sources),
        doubts(folded.found.doubtful, runs),
        findings,
    )
    rejects = [bad_steps, bad_peaks, repeated_steps(folded.repeats, sources), rejected_settings(named.chosen)]
    return {
        "runs": rows,
        "steps": TABLES["steps"].conform(steps),
        "events": pl.concat(TABLES["events"].conform(part) for part in all_events).unique(
            TABLES["events"].primary_key, maintain_order=True
        ),
        "settings": _settings_table(named.chosen, users),
        "arguments": _arguments_table(folded, sources, *(arguments or (None, None))),
        "rejects": TABLES["rejects"].conform(pl.concat(rejects)),
    }


def _chosen_settings(folded: Folded, logged: pl.DataFrame, users: pl.DataFrame, dialects: Sequence[Dialect]) -> Named:
    """Settings of every run from all sources; of those with one name, the one that counts is marked.

    Args:
        folded: the runs.
        logged: `settings_of_runs` of logs, sidecars and folder names.
        users: settings that the user states, with `run_id` (`stated.of_runs`).
        dialects: those that read the files; each has rules for settings that combine.
    """
    every = pl.concat([logged, stepped(folded.lines_of_steps, logged), users.select(logged.columns)])
    rules = {dialect.name: dialect.combined for dialect in dialects}
    combined = with_combined(every, folded.runs.select("run_id", "dialect"), rules)
    return without_contradicted(setting_precedence.choose(combined))


def _settings_table(chosen: pl.DataFrame, users: pl.DataFrame) -> pl.DataFrame:
    """Rows of `settings`: those of `chosen` that are columns of `runs`, and where the user states them."""
    is_column = pl.col("name").is_in(list(TABLES["runs"].polars_schema))
    key = ["run_id", "name", "setting_source"]
    stated_in = users.select(*key, "stated_in")
    return TABLES["settings"].conform(
        chosen.filter(is_column).join(stated_in, on=key, how="left", maintain_order="left")
    )


def _arguments_table(
    folded: Folded, sources: pl.DataFrame, printed: pl.DataFrame | None, documents: pl.DataFrame | None
) -> pl.DataFrame:
    """Rows of `arguments`: each name once per run, from the source that counts most."""
    printed = pl.DataFrame(schema=SETTING_FACTS) if printed is None else printed
    documents = pl.DataFrame(schema=SIDECAR_SETTINGS) if documents is None else documents
    beside = of_folders(documents, folded.runs, folded.joined, sources)
    every = settings_of_runs(printed, beside, folded.configured, sources, folded.owners)
    return TABLES["arguments"].conform(arguments_of_runs(every))


def _silences(steps: pl.DataFrame, rows: pl.DataFrame, *, now: datetime) -> pl.DataFrame:
    """`silence.silences` of runs whose lines are of one clock."""
    # MLPerf's own lines print UTC, and the console lines around them local time: no silence can be read from both.
    one_clock = rows.filter(pl.col("dialect").fill_null("") != "mlperf")
    return silence.silences(steps, one_clock, now=now)


def _run_rows(
    folded: Folded, chosen: pl.DataFrame, peaks: pl.DataFrame, spans: pl.DataFrame, dialects: Sequence[Dialect]
) -> pl.DataFrame:
    """Rows of `runs` with settings, performance, peaks of memory, planned steps and times; without outcomes.

    Args:
        folded: the runs.
        chosen: settings of every run, as `setting_precedence.choose` gives them.
        peaks: PEAK_FACTS rows.
        spans: SPANS rows of all sources.
        dialects: those that read the files.
    """
    rows = folded.runs.drop("reading")
    for known in (
        setting_precedence.widen(chosen, TABLES["runs"].columns),
        _summary(folded, peaks, dialects),
        folded.lines_of_steps.select("run_id", "steps_planned"),
        begin_and_end(with_run(spans, folded.runs, folded.owners)),
    ):
        rows = _completed(rows, known)
    return _completed(rows, stamped_times(folded.steps, rows))


def _summary(folded: Folded, peaks: pl.DataFrame, dialects: Sequence[Dialect]) -> pl.DataFrame:
    """Steady-state performance and peaks of memory by `run_id`, from steps and from lines that report peaks."""
    current = [dialect.name for dialect in dialects if dialect.steps_show_current_memory]
    shown = without_current_memory(summarise(folded.steps), folded.runs, current)
    reported = reported_peaks(with_run(peaks, folded.runs, folded.owners))
    return merge_peaks(shown.join(reported, on="run_id", how="full", coalesce=True))


def _with_process_tables(runs: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Runs of logs in which nvidia-smi lists processes."""
    listed = events.filter(pl.col("kind") == symptoms.SMI_KIND)["run_id"]
    sources = runs.filter(pl.col("run_id").is_in(listed.implode()))["source"]
    return runs.filter(pl.col("source").is_in(sources.implode()))


def _completed(rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """`rows` with the columns of `known` (one row per `run_id`), whose values replace those of `rows`."""
    both = [name for name in known.columns if name in rows.columns and name != "run_id"]
    joined = rows.join(known, on="run_id", how="left", maintain_order="left", suffix="_known")
    return joined.with_columns(pl.coalesce(f"{name}_known", name).alias(name) for name in both).drop(
        f"{name}_known" for name in both
    )
