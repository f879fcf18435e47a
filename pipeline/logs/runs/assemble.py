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

from sweepscope.pipeline.derive.run_id import run_id
from sweepscope.pipeline.logs.diagnostics import diagnose, silence
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.evidence import failed_workers, jobs, symptoms
from sweepscope.pipeline.logs.facts import INFERRED, Facts, conform
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.logs.runs import outcome, setting_precedence
from sweepscope.pipeline.logs.runs.attempts import number_attempts
from sweepscope.pipeline.logs.runs.attribution import (
    attribute_events,
    owners_of,
    steps_of_all_ranks,
    trainer_starts,
    with_run,
)
from sweepscope.pipeline.logs.runs.folders import of_folders
from sweepscope.pipeline.logs.runs.join_readings import (
    contradictions,
    doubts,
    duplicates,
    in_own_logs,
    join_readings,
    with_own_paths,
)
from sweepscope.pipeline.logs.runs.launches import ends, launches
from sweepscope.pipeline.logs.runs.named_layouts import without_contradicted
from sweepscope.pipeline.logs.runs.primary_logs import primary_logs
from sweepscope.pipeline.logs.runs.settings import (
    configured_from,
    rejected_settings,
    settings_of_runs,
    stepped,
    with_combined,
)
from sweepscope.pipeline.logs.runs.step_values import checked_peaks, checked_steps, repeated_steps
from sweepscope.pipeline.logs.runs.summary import (
    begin_and_end,
    merge_peaks,
    reported_peaks,
    step_lines,
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

STATUS_FILE = "status_file"
"""Name under which a sidecar reports the content of a status file."""

GUESSED_PLAN = "is_plan_guessed"
"""Name under which a dialect concludes that the planned steps may be those of a single epoch."""


def assemble(
    sources: pl.DataFrame,
    facts: Facts,
    spans: pl.DataFrame,
    sidecars: pl.DataFrame,
    *,
    now: datetime,
    dialects: Sequence[Dialect] = DIALECTS,
) -> dict[str, pl.DataFrame]:
    """Frames by table name, before normalising and validating; `runs` lacks the derived columns.

    Args:
        sources: SOURCES rows.
        facts: facts of all sources.
        spans: first and last timestamps of blocks (`extract.SPANS`).
        sidecars: SIDECAR_SETTINGS rows.
        now: the moment of reading.
        dialects: the dialects that read the files.
    """
    facts = replace(facts, events=jobs.fold(failed_workers.fold_tables(facts.events)))
    parsed, bad_steps = checked_steps(facts.steps, sources)
    observed_peaks, bad_peaks = checked_peaks(facts.peaks, sources)
    parsed = parsed.rechunk()  # polars hashes the groups of a column of several chunks even where it is sorted
    primary = primary_logs(sources, facts, dialects)
    steps, attempts, repeats = number_attempts(
        parsed.filter(pl.col("source").is_in(primary["source"].implode())),
        launches(facts).join(primary, on="source", how="semi"),
        ends(facts),
        primary["source"],
    )
    found = join_readings(steps, primary.join(attempts, on="source"), spans)
    numbered = _name_runs(found.readings)
    # With both sides sorted the join need not hash.
    names = numbered.select("run", "run_id", "source_path", run_source="source").drop_nulls("run").sort("run")
    steps = found.steps.join(names, on="run", how="left", maintain_order="left")
    runs = numbered.drop("run")
    joined = found.joined.join(runs.select("reading", "run_id"), on="reading", maintain_order="left")
    lines_of_steps = step_lines(in_own_logs(steps) if joined.height else steps)
    steps = (with_own_paths(steps, sources) if joined.height else steps).drop("run_source")
    owners = owners_of(sources, runs, joined)
    events = attribute_events(facts.events, runs, sources, owners)
    beside = of_folders(sidecars, runs, joined, sources)
    configured = configured_from(runs, lines_of_steps)
    stated = settings_of_runs(facts.settings, beside, configured, sources, owners)
    stated = pl.concat([stated, stepped(lines_of_steps, stated)])
    rules = {dialect.name: dialect.combined for dialect in dialects}
    named = without_contradicted(
        setting_precedence.choose(with_combined(stated, runs.select("run_id", "dialect"), rules))
    )
    chosen = named.chosen
    wide = setting_precedence.widen(chosen, TABLES["runs"].columns)
    peaks = reported_peaks(with_run(observed_peaks, runs, owners))
    current = [dialect.name for dialect in dialects if dialect.steps_show_current_memory]
    shown = without_current_memory(summarise(steps), runs, current)
    summary = merge_peaks(shown.join(peaks, on="run_id", how="full", coalesce=True))
    rows = runs.drop("reading")
    plans = lines_of_steps.select("run_id", "steps_planned")
    for known in (wide, summary, plans, begin_and_end(with_run(spans, runs, owners))):
        rows = _completed(rows, known)
    # MLPerf's own lines print UTC, and the console lines around them local time: no silence can be read from both.
    one_clock = rows.filter(pl.col("dialect").fill_null("") != "mlperf")
    silences = silence.silences(steps, one_clock, now=now)
    rows = _completed(rows, _outcomes(rows, lines_of_steps, events, chosen, silences, now=now))
    findings, diverged = diagnose.findings(
        conform(rows, diagnose.RUNS),
        steps,
        events.drop_nulls("run_id"),
        steps_by_rank=steps_of_all_ranks(parsed, runs),
        silences=silences,
        trainer_starts=trainer_starts(facts, _with_process_tables(runs, events)),
    )
    rows = _completed(rows, diverged)
    rows = _completed(rows, duplicates(found.doubtful, runs))
    rows = _completed(rows, failed_workers.first_failures(events))
    begun = attribute_events(facts.events.filter(pl.col("kind") == jobs.KIND), configured, sources, owners)
    rows = _completed(rows, jobs.ids_of_runs(events, begun, runs))
    events = diagnose.without_symptoms(events)
    rejects = pl.concat([bad_steps, bad_peaks, repeated_steps(repeats, sources), rejected_settings(chosen)])
    of_readings = [contradictions(found.conflicts, runs, sources), doubts(found.doubtful, runs)]
    noted = [setting_precedence.conflicts(chosen), named.conflicts, *of_readings]
    return {
        "runs": rows,
        "steps": TABLES["steps"].conform(steps),
        "events": pl.concat(TABLES["events"].conform(part) for part in (events, *noted, findings)).unique(
            TABLES["events"].primary_key, maintain_order=True
        ),
        "settings": TABLES["settings"].conform(chosen.filter(pl.col("name").is_in(list(TABLES["runs"].polars_schema)))),
        "rejects": TABLES["rejects"].conform(rejects),
    }


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
        parser=pl.coalesce("dialect", pl.lit("evidence")),
        job_id=pl.col("job").replace("", None),
        line_no=pl.col("start_line").clip(1),
    )


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


def _outcomes(
    rows: pl.DataFrame,
    lines_of_steps: pl.DataFrame,
    events: pl.DataFrame,
    chosen: pl.DataFrame,
    silences: pl.DataFrame,
    *,
    now: datetime,
) -> pl.DataFrame:
    """`run_id` and `outcome.OUTCOME` columns of every run."""
    status_files = chosen.filter((pl.col("name") == STATUS_FILE) & pl.col("is_used")).select(
        "run_id", pl.col("value").alias("status_file")
    )
    guessed = chosen.filter((pl.col("name") == GUESSED_PLAN) & pl.col("is_used")).select("run_id").unique()
    configured = chosen.filter(pl.col("setting_source") != "folder_name").select("run_id").unique()
    # A unit's status file and modification time concern its newest attempt only.
    newest = pl.col("attempt") == pl.col("attempt").max().over("unit")
    attempts = (
        rows.join(lines_of_steps.drop("source_path", "steps_planned"), on="run_id", how="left", maintain_order="left")
        .join(status_files, on="run_id", how="left", maintain_order="left")
        .join(guessed.with_columns(is_plan_guessed=pl.lit(value=True)), on="run_id", how="left", maintain_order="left")
        .join(configured.with_columns(has_settings=pl.lit(value=True)), on="run_id", how="left", maintain_order="left")
        .join(silences.drop("source_path", "line_no", "ts"), on="run_id", how="left", maintain_order="left")
        .select(
            pl.col("run_id").alias("key"),
            "last_step",
            # What counts logged values or batches reaches no number of steps.
            pl.when(~pl.col("step_basis").is_in(["batch", "ordinal"]).fill_null(value=False)).then("steps_planned"),
            pl.col("has_settings", "is_plan_guessed").fill_null(value=False),
            "longest_pause_s",
            last_step_line="last_line",
            previous_step_line="line_before",
            silence=pl.when("is_hang").then("silence"),
            is_from_zero=(pl.col("first_step").min().over("source") == 0).fill_null(value=False),
            stride=(pl.col("last_step") - pl.col("first_step")) / (pl.col("steps_logged") - 1),
            modified_at=pl.when(newest).then("modified_at"),
            status_file=pl.when(newest).then("status_file"),
        )
    )
    seen = events.drop_nulls("run_id").select(pl.col("run_id").alias("key"), "line_no", "kind", "text", "is_secondary")
    return outcome.classify(attempts, seen, now=now).rename({"key": "run_id"})
