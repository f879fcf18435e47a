"""Pairs of run attempts and jobs: rows of `runs` and of `scheduler_jobs` in, one row per joined run out. Pure.

A job may be listed in several tables (taken while it ran and afterwards, with and without some columns), and more than
once in one (a requeued job, with `sacct -D`): rows with the same start are one incarnation of it and are merged.
"""

from __future__ import annotations

import polars as pl

from sweepscope.schemas.tables.scheduler import SCHEDULER_JOBS

_UNFINISHED = ("running", "pending", "suspended")
# Neither logs nor schedulers print a time zone, and containers run in UTC. Beyond it, the number was reused.
_TOLERANCE = pl.duration(hours=26)

PAIRS = pl.Schema(
    {
        "run_id": pl.String(),
        **SCHEDULER_JOBS.polars_schema,
        "step_state": pl.String(),
        "step_exit": pl.String(),
        "is_first": pl.Boolean(),
        "is_last": pl.Boolean(),
    }
)
"""One row per joined run attempt: the row of its whole job (with `host_mem_peak_bytes` of its largest step), state and
exit of its gravest step, and whether the attempt is the first and the last of the job."""


def match(runs: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """PAIRS rows, one per run that exactly one job can have been."""
    if runs.is_empty() or jobs.is_empty():
        return pl.DataFrame(schema=PAIRS)
    jobs = _with_whole_jobs(_keyed(jobs))
    by_id = _by_id(runs, jobs)
    others = runs.join(by_id, on="run_id", how="anti")
    pairs = pl.concat([by_id, _by_path(others, jobs)])
    if pairs.is_empty():
        return pl.DataFrame(schema=PAIRS)
    incarnations = _incarnations(jobs.filter(pl.col("job_step").is_null()).join(pairs, on="key", how="semi"))
    steps = _steps(jobs.filter(pl.col("job_step").is_not_null()), incarnations)
    joined = _with_attempts(runs.join(pairs, on="run_id"), incarnations).join(
        steps, on=["key", "incarnation"], how="left", maintain_order="left", suffix="_steps"
    )
    return joined.with_columns(
        host_mem_peak_bytes=pl.max_horizontal("host_mem_peak_bytes", "host_mem_peak_bytes_steps")
    ).select(pl.col(name).cast(dtype) for name, dtype in PAIRS.items())


def _with_whole_jobs(jobs: pl.DataFrame) -> pl.DataFrame:
    """`jobs` plus a row for each job of which only steps are listed, copied from its batch step, else its first."""
    headless = jobs.join(jobs.filter(pl.col("job_step").is_null()), on="key", how="anti")
    order = pl.when(pl.col("job_step") == "batch").then(0).when(pl.col("job_step") == "extern").then(2).otherwise(1)
    substitutes = headless.sort(order, "line_no").unique(["source_path", "job_id"], keep="first", maintain_order=True)
    return pl.concat([jobs, substitutes.with_columns(job_step=pl.lit(None, pl.String))])


def _keyed(jobs: pl.DataFrame) -> pl.DataFrame:
    """Jobs with `number`, which the parts of a heterogeneous job share, and `key`, which also holds the cluster.

    A table without the cluster's name belongs to the cluster of the other tables with that job, if they name only one.
    """
    number = pl.col("job_id").str.replace(r"\+\d+$", "")
    jobs = jobs.with_columns(number=number)
    named = pl.col("cluster").drop_nulls().n_unique().over("number")
    cluster = pl.coalesce("cluster", pl.when(named == 1).then(pl.col("cluster").max().over("number")), pl.lit(""))
    return jobs.with_columns(key=pl.concat_str("scheduler", cluster, "number", separator="/"))


def _by_id(runs: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `key` by job id; of jobs of several clusters that whose table is nearest to the run."""
    whole = jobs.filter(pl.col("job_step").is_null())
    ids = pl.concat(
        whole.select("key", "run_dir", "started_at", "ended_at", pl.col(name).alias("job_id"))
        for name in ("number", "job_id_raw")
    )
    ids = ids.drop_nulls("job_id").unique()
    known = runs.filter(pl.col("job_id").is_not_null()).select("run_id", "job_id", "run_dir", "started_at")
    near = known.join(ids, on="job_id", suffix="_job").filter(_is_in_time())
    near = near.with_columns(far=_distance()).group_by("run_id", "key").agg(pl.col("far").min())
    nearest = near.filter(pl.col("far") == pl.col("far").min().over("run_id"))
    return nearest.filter(pl.len().over("run_id") == 1).select("run_id", "key")


def _is_in_time() -> pl.Expr:
    """Whether the log began while the job ran, as far as both have times."""
    begins, ends = pl.col("started_at_job") - _TOLERANCE, pl.coalesce("ended_at", "started_at_job") + _TOLERANCE
    is_open = pl.col("ended_at").is_null()
    early = (pl.col("started_at") < begins).fill_null(value=False)
    late = (~is_open & (pl.col("started_at") > ends)).fill_null(value=False)
    return ~early & ~late


_ELSEWHERE = 2


def _distance() -> pl.Expr:
    """0: the table is in the run's directory; 1: in one above; 2: elsewhere."""
    is_above = (pl.col("run_dir") + "/").str.starts_with(pl.col("run_dir_job").str.strip_chars_end("/") + "/")
    return pl.when(pl.col("run_dir") == pl.col("run_dir_job")).then(0).when(is_above).then(1).otherwise(_ELSEWHERE)


def _by_path(runs: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `key` by the job's output file or the pod's name; runs without a job id also by directory or name.

    A directory joins them if it holds one run and one job; a name, if one folder of runs and one job have it.
    """
    whole = jobs.filter(pl.col("job_step").is_null())
    files = whole.drop_nulls("stdout_path").select("key", source_path="stdout_path").unique()
    by_file = runs.select("run_id", "source_path").join(files, on="source_path").select("run_id", "key")
    pods = whole.filter(pl.col("scheduler") == "kubernetes").select("key", name="job_id").unique()
    names = pl.col("source_path").str.extract(r"([^/]+?)(?:\.(?:log|txt|out|gz|zst))*$")
    by_name = runs.select("run_id", name=names).join(pods, on="name").select("run_id", "key")
    by_file = pl.concat([by_file, by_name]).unique()
    others = runs.join(by_file, on="run_id", how="anti").filter(pl.col("job_id").is_null())
    alone = others.filter(pl.col("source_path").n_unique().over("run_dir") == 1)
    found = [by_file]
    for column in ("run_dir", "work_dir"):
        there = whole.drop_nulls(column).select("key", "ended_at", run_dir=column, started_at_job="started_at").unique()
        only = there.filter(pl.col("key").n_unique().over("run_dir") == 1)
        near = alone.select("run_id", "run_dir", "started_at").join(only, on="run_dir").filter(_is_in_time())
        found.append(near.select("run_id", "key").unique())
    found.append(_by_name(others, whole))
    return pl.concat(found).unique().filter(pl.len().over("run_id") == 1)


def _by_name(runs: pl.DataFrame, whole: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `key` of runs in a folder with the name of a job, whose table lies beside it or in a folder above."""
    jobs = whole.drop_nulls("job_name").select(
        "key", "ended_at", name="job_name", run_dir_job="run_dir", started_at_job="started_at"
    )
    folder = pl.col("run_dir").str.extract("([^/]+)$")
    named = runs.select("run_id", "run_dir", "source_path", "started_at", name=folder)
    near = named.join(jobs, on="name").filter(_is_in_time() & (_distance() < _ELSEWHERE))
    is_one = (pl.col("key").n_unique() == 1) & (pl.col("source_path").n_unique() == 1)
    return near.filter(is_one.over("name")).select("run_id", "key").unique()


def _incarnations(whole: pl.DataFrame) -> pl.DataFrame:
    """One row per job and start (`incarnation` from 0), each column from the most final row that has it."""
    is_done = ~pl.col("job_state").is_in(_UNFINISHED).fill_null(value=True)
    first = pl.col("started_at").max().over("key")  # a row without a start is of the latest one, before it began
    rows = whole.with_columns(since=pl.coalesce("started_at", first), is_done=is_done).sort(
        "key",
        "since",
        "is_done",
        "ended_at",
        "elapsed_s",
        "source_path",
        "line_no",
        descending=[False, False, True, True, True, False, True],
        nulls_last=True,
    )
    incarnation = ["key", "since"]
    # Columns that change while a job runs count only from rows as final as the best one.
    is_final = pl.col("is_done") == pl.col("is_done").max().over(incarnation)
    fleeting = ("job_state", "job_reason", "exit_code", "exit_signal", "elapsed_s", "ended_at")
    rows = rows.with_columns(pl.when(is_final).then(name).alias(name) for name in fleeting)
    names = [name for name in SCHEDULER_JOBS.column_names if name not in _LINE]
    # Another tool may list the first part of a heterogeneous job, `17+0`, as `17`.
    part = pl.col("job_id").str.extract(r"\+(\d+)$").fill_null("0").alias("part")
    parts = rows.group_by(*incarnation, part, maintain_order=True).agg(
        *(pl.col(name).drop_nulls().first() for name in names), *(pl.col(name).first() for name in _LINE)
    )
    merged = parts.group_by(incarnation, maintain_order=True).agg(
        *(pl.col(name).drop_nulls().first() for name in SCHEDULER_JOBS.column_names if name not in (*_LINE, *_PARTS)),
        *(_whole(name) for name in _PARTS),
        *(pl.col(name).first() for name in _LINE),
    )
    lasted_s = (pl.col("ended_at") - pl.col("started_at")).dt.total_seconds()
    return merged.with_columns(
        incarnation=pl.int_range(pl.len()).over("key"),
        elapsed_s=pl.coalesce("elapsed_s", pl.when(lasted_s >= 0).then(lasted_s)),
    ).drop("since")


_LINE = ("source_path", "line_no", "text")
_PARTS = ("num_nodes", "num_gpus", "accelerator", "hosts")


def _whole(name: str) -> pl.Expr:
    """A column of a heterogeneous job from those of its parts; NULL where one lacks it, or has another accelerator."""
    value = pl.col(name)
    if name == "accelerator":
        together = pl.when(value.n_unique() == 1).then(value.first())
    elif name == "hosts":
        together = pl.when(value.null_count() == 0).then(value.sort().str.join(","))
    else:
        together = pl.when(value.null_count() == 0).then(value.sum())
    return together.alias(name)


_GRAVE = ("out_of_memory", "failed", "timeout", "cancelled", "node_fail", "preempted")


def _steps(steps: pl.DataFrame, incarnations: pl.DataFrame) -> pl.DataFrame:
    """Largest memory and gravest end of the steps of each incarnation, other than Slurm's extern step."""
    spans = incarnations.select(
        "key", "incarnation", since="started_at", until="ended_at", incarnations=pl.len().over("key")
    )
    # An incarnation that still runs has no end.
    is_late = (pl.col("started_at") > pl.col("until")).fill_null(value=False)
    is_in = (pl.col("started_at") >= pl.col("since")) & ~is_late
    is_of = (pl.col("incarnations") == 1) | is_in.fill_null(value=False)
    of_incarnation = steps.join(spans, on="key").filter(is_of)
    rank = pl.col("job_state").replace_strict(
        {word: n for n, word in enumerate(_GRAVE)}, default=9, return_dtype=pl.Int64
    )
    is_work = pl.col("job_step") != "extern"
    graded = of_incarnation.with_columns(grave=pl.when(is_work).then(rank).otherwise(9))
    ranked = graded.sort("key", "incarnation", "grave", "line_no")
    return ranked.group_by("key", "incarnation").agg(
        pl.col("host_mem_peak_bytes").max(),
        step_state=pl.col("job_state").filter(pl.col("grave") < 9).first(),
        step_exit=pl.format("{}:{}", "exit_code", "exit_signal").filter(pl.col("grave") < 9).first(),
    )


def _with_attempts(joined: pl.DataFrame, incarnations: pl.DataFrame) -> pl.DataFrame:
    """Each run attempt with its incarnation: one by one where their numbers agree, else the last ones together.

    A job with several runs ended the last of them, which is unknown without times.
    """
    count = incarnations.group_by("key").agg(incarnations=pl.len())
    runs = joined.select("run_id", "key", "source_path", "attempt", "started_at").join(count, on="key")
    index = pl.int_range(pl.len()).over("key").cast(pl.Int64)
    total = pl.len().over("key").cast(pl.Int64)
    are_dated = pl.col("started_at").is_not_null().all().over("key")
    by_time = pl.when(are_dated).then("started_at")
    runs = runs.sort("key", by_time, "source_path", "attempt").with_columns(
        incarnation=(index + pl.col("incarnations").cast(pl.Int64) - total).clip(0)
    )
    sources = pl.col("source_path").n_unique().over("key", "incarnation")
    is_ordered = (sources == 1) | pl.col("started_at").is_not_null().all().over("key", "incarnation")
    number = pl.int_range(pl.len()).over("key", "incarnation")
    runs = runs.with_columns(
        is_first=is_ordered & (number == 0), is_last=is_ordered & (number == pl.len().over("key", "incarnation") - 1)
    )
    return runs.drop("source_path", "attempt", "started_at").join(
        incarnations.with_columns(pl.col("incarnation").cast(pl.Int64)), on=["key", "incarnation"]
    )
