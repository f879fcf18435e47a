"""Outputs of jobs whose training logs in a folder of its own: `slurm-771208.out` beside `tp2/logs/rank_0.log`. Pure.

Such an output has no step, no setting and no line of a trainer: what srun, torchrun or the scheduler report there, the
failure of a process or the time limit, is how the run of the same job ended. It is no run of its own.
"""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.logs.runs.same_runs import SAME

VERSION = 1
"""Raise it when other runs of the same rows would be found: stores are then published anew."""

PARSER = "evidence"
"""Of logs in which no trainer's line was found, only how their processes ended."""

_OF_TRAINING = ("model", "params", "seq_len", "mbs", "gbs", "tp", "pp")
"""Columns of `runs` that a log of a training, or the configuration beside it, states. A launcher knows the ranks."""

_LEVELS = 3
"""Levels above the folder of an output: its run lies below one of them. Another cluster's job may have its number."""


def is_output() -> pl.Expr:
    """Whether a row of `runs` may be such an output."""
    is_silent = (pl.col("steps_logged").fill_null(0) == 0) & pl.all_horizontal(pl.col(*_OF_TRAINING).is_null())
    return is_silent & (pl.col("parser") == PARSER).fill_null(value=False) & pl.col("duplicate_of").is_null()


def job_outputs(runs: pl.DataFrame, jobs: pl.DataFrame) -> pl.DataFrame:
    """SAME rows of outputs, each with the run of its job; with the last one, where the job ran several.

    Args:
        runs: rows of `runs`.
        jobs: `run_id`, `job_id` of runs whose job only the scheduler's tables tell.
    """
    named = runs.join(jobs, on="run_id", how="left", maintain_order="left", suffix="_found")
    named = named.with_columns(job_id=pl.coalesce("job_id", "job_id_found")).drop_nulls("job_id")
    outputs = named.filter(is_output()).select("run_id", "job_id", folder="run_dir")
    trainings = named.filter(~is_output() & pl.col("duplicate_of").is_null()).select(
        "job_id", "run_dir", "source_path", "started_at", "attempt", duplicate_of="run_id"
    )
    pairs = outputs.join(trainings, on="job_id").filter(_is_near())
    is_ordered = (pl.col("source_path").n_unique() == 1) | pl.col("started_at").is_not_null().all()
    ordered = pairs.filter(is_ordered.over("run_id")).sort("run_id", "started_at", "attempt")
    last = ordered.unique("run_id", keep="last", maintain_order=True)
    return last.select(SAME.names()) if last.height else pl.DataFrame(schema=SAME)


def _is_near() -> pl.Expr:
    """Whether a run lies below the output's folder, or below one of those above."""
    inside = pl.format("{}/", pl.col("run_dir").str.strip_chars_end("/"))
    above = [pl.col("folder").str.extract(rf"^(.*[^/])(?:/[^/]+){{{level}}}$") for level in range(_LEVELS)]
    return pl.any_horizontal(inside.str.starts_with(pl.format("{}/", one)).fill_null(value=False) for one in above)
