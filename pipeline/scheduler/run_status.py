"""Status of runs from the log's status and the scheduler's. Pure.

1. A run that reached its last step stays `completed`, whatever became of the job: it may have hung afterwards.
2. Exhausted GPU memory is unknown to a scheduler (the job `FAILED`): the log's status stays.
3. Host memory and failed nodes explain whatever the log shows at its end.
4. A time limit, a preemption or a cancelled job explains a log that stops, and processes that died without a reason. It
   does not explain a hang, an NCCL error or an exception, which came before: a hung job waits for its limit.
5. A failed job, and exit code 0 of a completed one, count only where the log has no ending. Exit code 0 does not make a
   run complete that logged fewer steps than planned, or none.
"""

from __future__ import annotations

import polars as pl

STATUS_OF_STATE = (
    {"out_of_memory": "host_oom", "node_fail": "node_fail", "boot_fail": "node_fail"}
    | {"timeout": "timeout", "deadline": "timeout", "preempted": "preempted", "requeued": "preempted"}
    | {"evicted": "preempted", "cancelled": "cancelled", "failed": "crash", "completed": "completed"}
)
"""Word of JOB_STATE -> status of the run, where nothing else is known."""

_CAUSES = ("host_oom", "node_fail")
_STOPS = ("timeout", "preempted")
_OPEN = ("truncated", "unknown", "running", "failed")
_SIGTERM = ("143:0", "0:15")


def combine_status(runs: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """`runs` with status, confidence and evidence of the last attempt of each job combined with the job's state.

    Args:
        runs: rows of `runs` with the log's status.
        pairs: match_jobs.PAIRS rows of those runs.
    """
    joined = runs.join(
        pairs.select(
            *("run_id", "is_last", "job_state", "job_id", "job_step", "step_state", "step_exit", "job_reason"),
            exit=pl.format("{}:{}", "exit_code", "exit_signal"),
        ),
        on="run_id",
        maintain_order="left",
        suffix="_job",
    )
    job_status = _job_status()
    status = pl.col("status")
    is_weak = pl.col("status_confidence").is_in(["low", "medium"])
    is_guess = (status == "hang") & (pl.col("status_confidence") == "low")  # no more than a silence
    wins = (
        (job_status.is_in(_CAUSES) & ~status.is_in(["completed", "oom"]))
        | (job_status.is_in(_STOPS) & (status.is_in([*_OPEN, "cancelled"]) | ((status == "crash") & is_weak)))
        | ((job_status == "crash") & is_guess)
        | (job_status.is_in(["cancelled", "crash"]) & status.is_in(_OPEN))
        | ((job_status == "completed") & status.is_in(_OPEN) & _may_be_whole())
    )
    wins = (wins & pl.col("is_last")).fill_null(value=False)
    fits = (job_status == status) | (
        is_guess & job_status.is_in(["timeout", "cancelled"])
    )  # a hung job is ended from outside
    agrees = fits.fill_null(value=False) & pl.col("is_last") & ~wins
    is_unexplained = status.is_in(["truncated", "unknown"]) & pl.col("is_last") & ~wins
    sure = pl.when(job_status.is_in(["crash", "completed"])).then(pl.lit("medium")).otherwise(pl.lit("high"))
    return joined.with_columns(
        status=pl.when(wins).then(job_status).otherwise(status),
        status_confidence=pl.when(wins)
        .then(sure)
        .when(agrees & (pl.col("status_confidence") == "low"))
        .then(pl.lit("medium"))
        .otherwise("status_confidence"),
        status_evidence=pl.when(wins)
        .then(_job_text())
        .when(is_unexplained)
        .then(pl.format("{}; {}", "status_evidence", _job_text()))
        .otherwise("status_evidence"),
    ).select(runs.columns)


def _job_status() -> pl.Expr:
    """The job's state as a status. A step that failed or ran out of memory outweighs the success of its script."""
    state, step = pl.col("job_state"), pl.col("step_state")
    is_vague = state.is_in(["failed", "completed"])
    real = (
        pl.when(is_vague & (step == "out_of_memory"))
        .then(pl.lit("out_of_memory"))
        .when((state == "completed") & (step == "failed"))
        .then(pl.lit("failed"))
        .otherwise(state)
    )
    is_asked = (real == "failed") & pl.coalesce("exit", "step_exit").is_in(_SIGTERM)
    status = real.replace_strict(STATUS_OF_STATE, default=None, return_dtype=pl.String)
    return pl.when(is_asked).then(pl.lit("cancelled")).otherwise(status)


def _may_be_whole() -> pl.Expr:
    """Whether the log agrees with a completed run: it has steps, and not fewer than planned."""
    falls_short = (pl.col("last_step") < pl.col("steps_planned")).fill_null(value=False)
    return pl.col("last_step").is_not_null() & ~falls_short


def _job_text() -> pl.Expr:
    """A sentence on the job's state, in Slurm's spelling."""
    step = pl.when(pl.col("step_state").is_not_null() & (pl.col("step_state") != pl.col("job_state"))).then(
        pl.format("a step {}", pl.col("step_state").str.to_uppercase())
    )
    parts = [
        pl.format(
            "the scheduler reports job {} as {}",
            pl.coalesce("job_id_job", "job_id"),
            pl.col("job_state").str.to_uppercase(),
        ),
        pl.format("exit code {}", "exit"),
        step,
        pl.when(pl.col("job_reason").is_not_null()).then("job_reason"),
    ]
    return pl.concat_str(parts, separator=", ", ignore_nulls=True)
