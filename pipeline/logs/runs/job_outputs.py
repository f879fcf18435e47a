"""Outputs of jobs whose training logs in a folder of its own: `slurm-771208.out` beside `tp2/logs/rank_0.log`. Pure.

Such an output has no step, and states less than the run does: what srun, torchrun or the scheduler report there, the
failure of a process or the time limit, is how the run of the same job ended. It is no run of its own. Where a trainer
logs to both (Hydra's console and `train.log`), the output has the run's steps: values decide then, as in `same_runs`.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.facts import EVIDENCE
from sweepscope.pipeline.logs.runs.same_runs import LAYOUT, SAME

VERSION = 2
"""Raise it when other runs of the same rows would be found: stores are then published anew."""

_OF_TRAINING = ("model", "params", "seq_len", "mbs", "gbs", "tp", "pp", "num_layers")
"""Columns of `runs` that a log of a training, or the configuration beside it, states. A launcher knows the ranks."""

_RANK_OF_JOB = r"^(\d+)_\d{1,4}$"
"""The job of `771204_0.txt` beside `slurm-771204.out`: a log of a task (`%j_%t`); an array has no such output."""
_LEVELS = 3
"""Levels above the folder of an output: its run lies below one of them. Another cluster's job may have its number."""


def may_be_output() -> pl.Expr:
    """Whether a row of `runs` may be such an output without steps."""
    is_stepless = pl.col("steps_logged").fill_null(0) == 0
    return is_stepless & (pl.col("parser") == EVIDENCE).fill_null(value=False) & pl.col("duplicate_of").is_null()


def job_outputs(runs: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """SAME rows of outputs without steps, each with the run of its job that states more of a training, or has steps.

    Of several such runs it is the last one's.

    Args:
        runs: rows of `runs`.
        jobs: `run_id`, `job_id` of runs whose job only the scheduler's tables tell.
    """
    counting = runs.filter(pl.col("duplicate_of").is_null())
    named = counting.join(jobs, on="run_id", how="left", maintain_order="left", suffix="_found")
    named = named.with_columns(job_id=pl.coalesce("job_id", "job_id_found"), known=_known()).drop_nulls("job_id")
    outputs = named.filter(may_be_output()).select("run_id", "job_id", "known", folder="run_dir")
    trainings = named.select(
        *("job_id", "run_dir", "source_path", "started_at", "attempt"),
        duplicate_of="run_id",
        known_log=pl.when(may_be_output()).then("known").otherwise(len(_OF_TRAINING) + 1),
    )
    of_rank = pl.col("job_id").str.extract(_RANK_OF_JOB)
    pairs = pl.concat(
        [
            outputs.join(trainings, on="job_id"),
            outputs.join(trainings.with_columns(of_rank).drop_nulls("job_id"), on="job_id"),
            outputs.with_columns(of_rank).drop_nulls("job_id").join(trainings, on="job_id"),
        ]
    )
    pairs = pairs.filter((pl.col("known") < pl.col("known_log")) & _is_near())
    is_ordered = (pl.col("source_path").n_unique() == 1) | pl.col("started_at").is_not_null().all()
    ordered = pairs.filter(is_ordered.over("run_id")).sort("run_id", "started_at", "attempt")
    last = ordered.unique("run_id", keep="last", maintain_order=True)
    return last.select(SAME.names()) if last.height else pl.DataFrame(schema=SAME)


def of_one_job(runs: pl.DataFrame) -> pl.DataFrame:
    """`run_id`, `log_id`, `level`, as of `same_runs.near_each_other`: outputs with steps, and logs of the same job.

    An output has its job's number in its name, and the log, which lies in another folder, has not. A job may run
    several trainings of one seed one after the other: their layouts differ.

    Args:
        runs: rows of `runs`.
    """
    has_steps = (pl.col("steps_logged") > 0) & pl.col("duplicate_of").is_null()
    is_named = pl.col("source_path").str.extract("([^/]+)$").str.contains(pl.col("job_id"), literal=True)
    of_jobs = runs.drop_nulls("job_id").filter(has_steps & (pl.col("run_dir").n_unique() > 1).over("job_id"))
    facts = of_jobs.select("job_id", "run_id", "run_dir", *LAYOUT, folder="run_dir", is_named=is_named)
    pairs = facts.filter("is_named").join(facts.filter(~pl.col("is_named")), on="job_id", suffix="_log")
    equal = [(pl.col(name) == pl.col(f"{name}_log")).fill_null(value=True) for name in LAYOUT]
    near = pairs.filter(pl.all_horizontal(equal)).with_columns(run_dir="run_dir_log").filter(_is_near())
    return near.select("run_id", log_id="run_id_log", level=pl.lit(0, pl.Int32))


def _known() -> pl.Expr:
    return pl.sum_horizontal(pl.col(name).is_not_null().cast(pl.Int64) for name in _OF_TRAINING)


def _is_near() -> pl.Expr:
    """Whether a run lies below the output's folder, or below one of those above."""
    inside = pl.format("{}/", pl.col("run_dir").str.strip_chars_end("/"))
    above = [pl.col("folder").str.extract(rf"^(.*[^/])(?:/[^/]+){{{level}}}$") for level in range(_LEVELS)]
    return pl.any_horizontal(inside.str.starts_with(pl.format("{}/", one)).fill_null(value=False) for one in above)
