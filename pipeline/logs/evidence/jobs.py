"""The scheduler's jobs that a log names: those that begin to write it, and those whose end it reports.

Sources of the wording: the variables of Slurm, PBS, LSF and Flux, as scripts echo them and programs dump them; what
scripts print themselves (`Job ID: 170`, `SLURM job id is 170`); slurmstepd's lines; the head of LSF's report.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.facts import EVENT_FACTS

KIND = "job"

_VARIABLE = r"\b(?:SLURM_JOB_?ID|PBS_JOBID|LSB_JOBID|FLUX_JOB_ID)['\"]?\s*[:=]\s*['\"]?(\d+(?:_\d+)?)\b"
_PHRASE = (
    r"^\W*(?:[\d:.,T-]+\W+)*(?i:(?:slurm|pbs|lsf|batch|this|running|starting)[ _-]+)?(?i:job[ _]?id)(?i: is)?"
    r"\s*[:=#]*\s*(\d{3,}(?:_\d+)?)\b"
)
_REPORT = r"^\s?Subject: Job \d+"
_OUTPUT_ABOVE = r"^\s?The output \(if any\) is above this job summary"
_OUTPUT_BELOW = r"^\s?The output \(if any\) follows"
_END = r"(?:StepId=|\*\*\* (?:JOB|STEP) |\bslurmd\[\S+\]: .*\bjob |^\s?Subject: Job )(\d+(?:_\d+)?)"

PATTERNS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        KIND,
        (
            *("SLURM_JOB", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"),
            *("ob ID", "ob id", "ob Id", "OB ID", "obID", "obId", "OBID", "obid", "ob_id"),
        ),
        rf"{_VARIABLE}|{_PHRASE}",
    ),
    (KIND, ("Subject: Job ", "The output (if any) "), rf"{_REPORT}|{_OUTPUT_ABOVE}|{_OUTPUT_BELOW}"),
)
"""(kind of vocab.EVENT_KIND, literals of which a line holds one, expression): arguments of `patterns.Pattern`."""


def named(events: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS that name a job, with its `job_id`; `is_begin` where the job begins to write there.

    LSF writes its report below the output of the job, where that went to the file at once, or else above it. The last
    line of a report that is below ends the job, the first of one that is above begins it.
    """
    is_begin, text = pl.col("kind") == KIND, pl.col("text")
    begun = pl.coalesce(text.str.extract(_VARIABLE), text.str.extract(_PHRASE))
    job_id = pl.when(is_begin & ~_is_report()).then(begun).otherwise(text.str.extract(_END))
    rows = events.with_columns(job_id=job_id, is_begin=is_begin)
    if not rows.select(_is_report().any()).item():
        return rows.drop_nulls("job_id")
    rows = rows.sort("source", "line_no", maintain_order=True)
    is_above, is_heading = text.str.contains(_OUTPUT_ABOVE), text.str.contains(_REPORT)
    of_report = pl.when(is_heading).then("job_id").forward_fill().over("source")
    below = pl.when(is_above | text.str.contains(_OUTPUT_BELOW)).then(is_above).backward_fill().over("source")
    rows = rows.with_columns(
        job_id=pl.when(is_above).then(of_report).otherwise("job_id"),
        is_begin=pl.col("is_begin") & ~is_above,
        is_doubled=is_heading & below.fill_null(value=False),
    )
    return rows.filter(~pl.col("is_doubled")).drop("is_doubled").drop_nulls("job_id")


def _is_report() -> pl.Expr:
    """Whether an event is a line of LSF's report."""
    return (pl.col("kind") == KIND) & pl.col("text").str.contains(rf"{_REPORT}|{_OUTPUT_ABOVE}|{_OUTPUT_BELOW}")


def fold(events: pl.DataFrame) -> pl.DataFrame:
    """EVENT_FACTS with one event per job that begins: all of its processes, and each of their dumps, name it again."""
    is_named = (pl.col("kind") == KIND) & ~_is_report()
    begun = named(events.filter(is_named).sort("source", "line_no", maintain_order=True))
    if begun.is_empty():
        return events
    kept = begun.filter(pl.col("job_id").ne_missing(pl.col("job_id").shift(1).over("source")))
    others = events.filter(~is_named)
    return pl.concat([others, kept.select(EVENT_FACTS.names())]).sort("source", "line_no", maintain_order=True)


def launches(events: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """`source`, `line_no` of lines with which the log of another job begins, in a file to which several jobs append.

    That is the line with which it names itself, or the one behind the end of the job before, if steps follow it.
    """
    jobs = named(events).select("source", "line_no", "job_id", "is_begin").unique().sort(pl.all().exclude("job_id"))
    before = {name: pl.col(name).shift(1).over("source") for name in ("job_id", "is_begin", "line_no")}
    is_other = (pl.col("job_id") != before["job_id"]) & pl.struct("source", "job_id").is_first_distinct()
    jobs = jobs.with_columns(is_other=is_other, ended=pl.when(~before["is_begin"]).then(before["line_no"]))
    jobs = jobs.filter("is_other")
    if jobs.is_empty():
        return jobs.select("source", "line_no")
    lines = steps.select("source", "line_no", step_line="line_no").join(jobs, on="source", how="semi").sort("line_no")
    jobs = jobs.sort("line_no").join_asof(lines, on="line_no", by="source", strategy="backward", check_sortedness=False)
    behind = pl.when(pl.col("step_line") > pl.col("ended")).then(pl.col("ended") + 1)
    return jobs.select("source", line_no=pl.when("is_begin").then("line_no").otherwise(behind)).drop_nulls()


def parts(events: pl.DataFrame) -> pl.DataFrame:
    """`source`, `line_no` of lines with which the part of each job begins, in files that report the end of several.

    That is the line with which the job names itself, or the one behind the end of the job before.
    """
    is_reported = ~pl.col("is_begin") | _is_report()
    rows = named(events).select("source", "line_no", "job_id", "is_begin", is_reported=is_reported).unique()
    each = rows.group_by("source", "job_id").agg(
        pl.col("is_reported").any(), begin=pl.col("line_no").filter("is_begin").min(), last=pl.col("line_no").max()
    )
    each = each.filter((pl.col("is_reported").sum() > 1).over("source")).sort("source", "last")
    behind = pl.col("last").shift(1, fill_value=0).over("source") + 1
    return each.select("source", line_no=pl.coalesce("begin", behind)).sort("source", "line_no")


def ids_of_runs(events: pl.DataFrame, begun: pl.DataFrame, runs: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `job_id`: the job that names itself in the lines of a run, else the one whose end they report.

    A run in whose lines no job is named is of the job of the run before it in the file, unless its job is known from
    the name of another file. The tasks of an array have the number that the file's name has: they call themselves
    otherwise.

    Args:
        events: EVENT_FACTS with `run_id`.
        begun: those of kind "job" with the `run_id` of the attempt that they configure: a job names itself before its
            trainer prints anything.
        runs: attempts with `run_id`, `source`, `attempt_in_source` and `job`, which is from a file's name.
    """
    parts = [begun.filter(~_is_report()), events.filter((pl.col("kind") != KIND) | _is_report())]
    jobs = pl.concat(
        named(part.drop_nulls("run_id")).select("run_id", "job_id", "is_begin", "line_no") for part in parts
    )
    last = jobs.sort("is_begin", "line_no").unique("run_id", keep="last", maintain_order=True)
    found = (
        runs.select("run_id", "source", "attempt_in_source", "job")
        .join(last.select("run_id", "job_id"), on="run_id", how="left")
        .sort("source", "attempt_in_source")
        .with_columns(pl.col("job_id").forward_fill().over("source", "job"))
        .with_columns(job_id=pl.when(pl.col("job").str.contains("_")).then("job").otherwise("job_id"))
    )
    return found.drop_nulls("job_id").select("run_id", "job_id")
