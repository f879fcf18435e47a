"""The fold: facts of a batch of files to the rows of `runs`, `steps`, `events`, `settings` and `rejects`.

A unit is a run directory (or a lone log with its stderr). Its logs of one job are one run; the log with the most steps
leads, the others give evidence. Several launches in the leading log are several attempts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import polars as pl

from pipeline.parse import configure, health, launchers, outcome, silence, symptoms
from pipeline.parse.attempts import number_attempts
from pipeline.parse.combine import with_combined
from pipeline.parse.evidence import MAX_TEXT_CHARS
from pipeline.parse.protocol import Dialect, Facts, marks_run
from pipeline.parse.registry import DIALECTS
from pipeline.run_id import run_id
from pipeline.steady import summarise
from schemas.registry import TABLES
from schemas.vocab import REJECT_REASON_UNPARSED

SOURCES = pl.Schema(
    {
        "source": pl.Int64(), "path": pl.String(), "unit": pl.String(), "job": pl.String(), "kind": pl.String(),
        "modified_at": pl.Datetime("us"), "run_dir": pl.String(), "sweep": pl.String(), "origin": pl.String(),
        "dialect": pl.String(), "parser_version": pl.Int64(),
    }
)  # fmt: skip
"""One row per file of the batch: `job` groups a unit's logs into runs, `dialect` is NULL where none was recognised (of
a log's lines, or by a sidecar's reader)."""

SIDECAR_SETTINGS = pl.Schema(
    {"unit": pl.String, "path": pl.String, "name": pl.String, "value": pl.String, "setting_source": pl.String}
)
"""Settings from files beside the log and from folder names; they hold for every run of the unit."""

STATUS_FILE = "status_file"
"""Name under which a sidecar reports the word of a status file."""


def assemble(
    sources: pl.DataFrame,
    facts: Facts,
    spans: pl.DataFrame,
    sidecars: pl.DataFrame,
    *,
    now: datetime,
    dialects: Sequence[Dialect] = DIALECTS,
) -> dict[str, pl.DataFrame]:
    """Rows of every table that a batch of log files yields, before normalising and validating.

    Args:
        sources: SOURCES rows. facts: of all of them. spans: timestamps seen (engine.SPANS).
        sidecars: SIDECAR_SETTINGS rows.
        now: the moment of reading.
        dialects: the dialects that read the files.

    Returns:
        table name -> frame. `runs` lacks the derived columns; the other tables are complete.
    """
    facts = replace(facts, events=launchers.fold_tables(facts.events))
    parsed = facts.steps.filter(pl.col("step").is_not_null())
    leaders = _leaders(sources, facts, dialects)
    launches = facts.events.filter(pl.col("kind") == "launch")
    steps, attempts = number_attempts(
        parsed.join(leaders, on="source", how="semi"),
        launches.join(leaders, on="source", how="semi"),
        leaders["source"],
    )
    runs = _name_runs(leaders.join(attempts, on="source"))
    steps = steps.join(
        runs.select("source", "attempt_in_source", "run_id", "source_path"),
        on=["source", "attempt_in_source"],
        maintain_order="left",
    )
    events = _place_events(facts.events, runs, sources)
    stated = _settings_of_runs(facts.settings, sidecars, _configured_from(runs, steps), sources)
    stated = pl.concat([stated, _stepped(steps, stated)])
    rules = {dialect.name: dialect.combined for dialect in dialects}
    chosen = configure.choose(with_combined(stated, runs.select("run_id", "dialect"), rules))
    wide = configure.widen(chosen, TABLES["runs"].polars_schema)
    peaks = _gauges(_with_run(facts.gauges, runs, sources))
    summary = _merge_peaks(summarise(steps).join(peaks, on="run_id", how="full", coalesce=True))
    rows = runs
    for known in (wide, summary, _planned(steps), _begin_and_end(_with_run(spans, runs, sources))):
        rows = _completed(rows, known)
    # MLPerf's own lines count in UTC, and the console's around them in local time: no silence can be read from both.
    one_clock = rows.filter(pl.col("dialect").fill_null("") != "mlperf")
    silences = silence.silences(steps, one_clock, now=now)
    rows = _completed(rows, _outcomes(rows, steps, events, chosen, silences, now=now))
    found, diverged = health.findings(
        TABLES["runs"].conform(rows).with_columns(dialect=rows["dialect"]), steps, events.drop_nulls("run_id"),
        printed=_printed(parsed, runs), silences=silences, begun=_begun(facts, runs),
    )  # fmt: skip
    rows = _completed(rows, diverged)
    rows = _completed(rows, launchers.first_failures(events))
    nameless = rows.filter(pl.col("job_id").is_null()).select("run_id")
    rows = _completed(rows, launchers.job_ids(events).join(nameless, on="run_id", how="semi"))
    events = health.without_symptoms(events)
    rejects = pl.concat([_unparsed(facts.steps, sources), _unreadable(chosen)])
    noted = configure.conflicts(chosen)
    return {
        "runs": rows,
        "steps": TABLES["steps"].conform(steps),
        "events": pl.concat(TABLES["events"].conform(part) for part in (events, noted, found)).unique(
            TABLES["events"].primary_key, maintain_order=True
        ),
        "settings": TABLES["settings"].conform(chosen.filter(pl.col("name").is_in(list(TABLES["runs"].polars_schema)))),
        "rejects": TABLES["rejects"].conform(rejects),
    }


def _leaders(sources: pl.DataFrame, facts: Facts, dialects: Sequence[Dialect]) -> pl.DataFrame:
    """The log that leads each job: most steps, then most settings, then a recognised dialect, then its name.

    A unit whose logs hold no dialect and no sign of a failure, and that has no configuration beside them, is not a run.
    """
    telling = facts.events.filter(~pl.col("kind").is_in(["traceback", "exception", "exit_code", *symptoms.KINDS]))
    beside = sources.filter(
        ~pl.col("kind").is_in(["log", "scheduler", "nccl", "flight_record"]) & pl.col("dialect").is_not_null()
    )
    tells = [marks_run(path, dialects) for path in beside["path"].to_list()]
    framework = (
        beside.filter(pl.Series(tells, dtype=pl.Boolean)).group_by("unit").agg(dialect_beside=pl.col("dialect").first())
    )
    counted = (
        sources.filter(pl.col("kind") == "log")
        .join(framework, on="unit", how="left", maintain_order="left")
        .with_columns(dialect=pl.coalesce("dialect", "dialect_beside"))
        .drop("dialect_beside")
    )
    # Settings by name: how often a log repeats one says nothing.
    said = facts.settings.unique(["source", "name"])
    for frame, name in ((facts.steps, "n_steps"), (said, "n_settings"), (telling, "n_events")):
        counted = counted.join(frame.group_by("source").agg(pl.len().alias(name)), on="source", how="left")
    numbers = ["n_steps", "n_settings", "n_events"]
    counted = counted.with_columns(pl.col(numbers).fill_null(0), known=pl.col("dialect").is_not_null())
    counted = counted.filter(pl.col("known") | (pl.col("n_events") > 0))
    order = ["unit", "job", "n_steps", "known", "n_settings", "n_events", "path"]
    return counted.sort(order, descending=[False, False, True, True, True, True, False]).unique(
        ["unit", "job"], keep="first", maintain_order=True
    )


def _name_runs(rows: pl.DataFrame) -> pl.DataFrame:
    """Number attempts over all jobs of a unit, and give each its id.

    `attempt` counts within the unit, so that a requeued job's second log is attempt 2; the id counts within the file.
    """
    rows = rows.sort("unit", pl.col("job").str.len_chars(), "job", "attempt_in_source").with_columns(
        attempt=(pl.int_range(pl.len()).over("unit") + 1).cast(pl.Int64)
    )
    ids = [run_id(path, str(n)) for path, n in rows.select("path", "attempt_in_source").iter_rows()]
    return rows.with_columns(
        pl.Series("run_id", ids, dtype=pl.String),
        source_path=pl.col("path"),
        framework=pl.coalesce("dialect", pl.lit("other")),
        parser=pl.coalesce("dialect", pl.lit("evidence")),
        job_id=pl.col("job").replace("", None),
        line_no=pl.col("start_line").clip(1),
    )


def _attempt_of(facts: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Facts of leading logs with the `run_id` of the attempt in whose lines they stand."""
    starts = runs.select("source", pl.col("start_line").alias("line_no"), "run_id").sort("source", "line_no")
    return facts.sort("source", "line_no").join_asof(
        starts, on="line_no", by="source", strategy="backward", check_sortedness=False
    )


def _last_runs(runs: pl.DataFrame, key: list[str]) -> pl.DataFrame:
    return runs.unique(key, keep="last", maintain_order=True).select(*key, pl.col("run_id").alias("last_run_id"))


def _place_events(events: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Events with run, path and whether they stand in another file than the steps (then: the job's last attempt)."""
    placed = _attempt_of(events, runs).join(sources.select("source", "path", "unit", "job"), on="source", how="left")
    placed = placed.join(_last_runs(runs, ["unit", "job"]), on=["unit", "job"], how="left")
    return placed.with_columns(
        is_secondary=pl.col("run_id").is_null(),
        run_id=pl.coalesce("run_id", "last_run_id"),
        source_path=pl.col("path"),
        text=pl.col("text").str.slice(0, MAX_TEXT_CHARS),
    )


def _configured_from(runs: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """Runs with `start_line` moved up to the step before: a launch command is echoed before the trainer starts.

    What fails a run stands behind its last step; what configures the next one does too.
    """
    last = steps.group_by("run_id").agg(last_line=pl.col("line_no").max())
    ordered = runs.join(last, on="run_id", how="left").sort("source", "attempt_in_source")
    behind = pl.col("last_line").shift(1).over("source") + 1
    return ordered.with_columns(start_line=pl.min_horizontal("start_line", behind)).drop("last_line")


def _settings_of_runs(
    settings: pl.DataFrame, sidecars: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame
) -> pl.DataFrame:
    """What the run's own lines say, what the job's other logs add to that, and what stands beside the logs."""
    own = _inherited(_attempt_of(settings, runs).drop_nulls("run_id"), runs)
    said = ["run_id", "name", "setting_source"]
    added = _of_other_logs(settings, runs, sources).join(own, on=said, how="anti", maintain_order="left")
    printed = pl.concat([own, added]).join(sources.select("source", "path"), on="source", maintain_order="left")
    beside = sidecars.join(runs.select("unit", "run_id"), on="unit", maintain_order="left")
    columns = ["run_id", "name", "value", "setting_source", "line_no", pl.col("path").alias("source_path")]
    return pl.concat([printed.select(columns), beside.with_columns(line_no=pl.lit(None, pl.Int64)).select(columns)])


def _stepped(steps: pl.DataFrame, settings: pl.DataFrame) -> pl.DataFrame:
    """That a run logged a step, as a value that `protocol.CombinedSetting` may ask for."""
    first = steps.group_by("run_id", maintain_order=True).agg(pl.col("line_no", "source_path").first())
    return first.with_columns(
        name=pl.lit("arg:stepped"), value=pl.lit("yes"), setting_source=pl.lit("log_line")
    ).select(settings.columns)


def _inherited(settings: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """An attempt without any settings has those of the one before it in the file: a restart need not repeat them."""
    ordered = runs.select("source", "attempt_in_source", "run_id").sort("source", "attempt_in_source")
    is_own = pl.col("run_id").is_in(settings["run_id"].unique().to_list())
    heirs = ordered.with_columns(
        giver=pl.when(is_own).then("run_id").forward_fill().over("source"), is_own=is_own
    ).filter(~pl.col("is_own") & pl.col("giver").is_not_null())
    given = settings.rename({"run_id": "giver"}).join(
        heirs.select("giver", "run_id"), on="giver", maintain_order="left"
    )
    return pl.concat([settings, given.select(settings.columns)])


def _with_run(facts: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Facts with the run they belong to; those of a job's other logs only where the job has a single attempt."""
    single = runs.filter(pl.len().over("unit", "job") == 1)
    return pl.concat([_attempt_of(facts, runs).drop_nulls("run_id"), _of_other_logs(facts, single, sources)])


def _of_other_logs(facts: pl.DataFrame, runs: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    """Facts of the logs that do not lead, once for every one of `runs` of their job."""
    beside = sources.filter(pl.col("kind") == "log").join(runs, on="source", how="anti").select("source", "unit", "job")
    owners = beside.join(runs.select("unit", "job", "run_id"), on=["unit", "job"]).select("source", "run_id")
    return facts.join(owners, on="source", maintain_order="left")


def _gauges(gauges: pl.DataFrame) -> pl.DataFrame:
    """Largest observation per run, one column per gauge, suffixed so that it can be merged with the steps' own."""
    names = ("mem_peak_allocated_bytes", "mem_peak_reserved_bytes")
    return gauges.group_by("run_id").agg(
        pl.col("value").filter(pl.col("name") == name).max().cast(pl.Int64, strict=False).alias(f"{name}_gauge")
        for name in names
    )


_ROUNDING = 1.01  # step lines print memory in three digits


def _merge_peaks(summary: pl.DataFrame) -> pl.DataFrame:
    """A reported peak, unless a step shows more than it by more than rounding."""

    def merged(name: str) -> pl.Expr:
        reported, shown = pl.col(f"{name}_gauge"), pl.col(name)
        return pl.when(shown <= reported * _ROUNDING).then(reported).otherwise(pl.max_horizontal(shown, reported))

    names = ("mem_peak_allocated_bytes", "mem_peak_reserved_bytes")
    return summary.with_columns(merged(name).alias(name) for name in names).drop(f"{name}_gauge" for name in names)


def _planned(steps: pl.DataFrame) -> pl.DataFrame:
    return steps.group_by("run_id").agg(steps_planned=pl.col("steps_planned").max())


def _begin_and_end(spans: pl.DataFrame) -> pl.DataFrame:
    """First and last timestamp in the order of the lines: dates in the text (of a build, of a licence) lie between."""
    both = spans.group_by("run_id").agg(started_at=pl.col("ts").first(), ended_at=pl.col("ts").last())
    return both.with_columns(ended_at=pl.when(pl.col("ended_at") >= pl.col("started_at")).then("ended_at"))


def _completed(rows: pl.DataFrame, known: pl.DataFrame) -> pl.DataFrame:
    """`rows` with the columns of `known` (one row per `run_id`); where both have a value, that of `known` counts."""
    both = [name for name in known.columns if name in rows.columns and name != "run_id"]
    joined = rows.join(known, on="run_id", how="left", maintain_order="left", suffix="_known")
    return joined.with_columns(pl.coalesce(f"{name}_known", name).alias(name) for name in both).drop(
        f"{name}_known" for name in both
    )


def _printed(parsed: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """Step lines of every rank with their run, of files in which several ranks print."""
    many = parsed.group_by("source").agg(pl.col("rank").n_unique()).filter(pl.col("rank") > 1)
    mine = parsed.join(many, on="source", how="semi")
    return _attempt_of(mine, runs).join(runs.select("run_id", source_path="path"), on="run_id", maintain_order="left")


def _begun(facts: Facts, runs: pl.DataFrame) -> pl.DataFrame:
    """First line of each run that its trainer printed: a launch, an argument or a step."""
    said = [
        facts.events.filter(pl.col("kind") == "launch"),
        facts.settings.filter(pl.col("setting_source") == "argument_dump"),
        facts.steps,
    ]
    first = pl.concat(frame.select("source", "line_no") for frame in said).unique()
    return _attempt_of(first, runs).drop_nulls("run_id").group_by("run_id").agg(first_line=pl.col("line_no").min())


def _outcomes(
    rows: pl.DataFrame,
    steps: pl.DataFrame,
    events: pl.DataFrame,
    chosen: pl.DataFrame,
    silences: pl.DataFrame,
    *,
    now: datetime,
) -> pl.DataFrame:
    lines = pl.col("line_no").sort()
    last_line = steps.group_by("run_id").agg(
        last_step_line=lines.last(), previous_step_line=pl.when(pl.len() > 1).then(lines.slice(-2, 1).first())
    )
    words = chosen.filter((pl.col("name") == STATUS_FILE) & pl.col("is_used")).select(
        "run_id", pl.col("value").alias("status_file")
    )
    configured = chosen.filter(pl.col("setting_source") != "folder_name").select("run_id").unique()
    # A unit's status file and freshness speak of its newest attempt only.
    newest = pl.col("attempt") == pl.col("attempt").max().over("unit")
    attempts = (
        rows.join(last_line, on="run_id", how="left", maintain_order="left")
        .join(words, on="run_id", how="left", maintain_order="left")
        .join(configured.with_columns(has_settings=pl.lit(value=True)), on="run_id", how="left", maintain_order="left")
        .join(silences.drop("source_path", "line_no", "ts"), on="run_id", how="left", maintain_order="left")
        .select(
            pl.col("run_id").alias("key"), "last_step", "steps_planned", "last_step_line", "previous_step_line",
            pl.col("has_settings").fill_null(value=False), "longest_pause_s",
            silence=pl.when("is_hang").then("silence"),
            modified_at=pl.when(newest).then("modified_at"),
            status_file=pl.when(newest).then("status_file"),
        )
    )  # fmt: skip
    seen = events.drop_nulls("run_id").select(pl.col("run_id").alias("key"), "line_no", "kind", "text", "is_secondary")
    return outcome.classify(attempts, seen, now=now).rename({"key": "run_id"})


def _unparsed(steps: pl.DataFrame, sources: pl.DataFrame) -> pl.DataFrame:
    bad = steps.filter(pl.col("step").is_null()).join(sources.select("source", "path"), on="source")
    return TABLES["rejects"].conform(
        bad.select(
            pl.col("path").alias("file"), "line_no",
            table=pl.lit("steps"), column=pl.lit("step"), reason=pl.lit(REJECT_REASON_UNPARSED),
            raw=pl.col("text").str.slice(0, MAX_TEXT_CHARS),
        )
    )  # fmt: skip


def _unreadable(chosen: pl.DataFrame) -> pl.DataFrame:
    bad = configure.unreadable(chosen, TABLES["runs"].polars_schema)
    return TABLES["rejects"].conform(
        bad.select(
            pl.col("source_path").alias("file"), "line_no",
            table=pl.lit("runs"), column=pl.col("name"), reason=pl.lit("the value cannot be read as its type"),
            raw=pl.col("value").str.slice(0, MAX_TEXT_CHARS),
        )
    )  # fmt: skip
