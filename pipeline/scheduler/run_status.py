"""How a run ended, when its log and its scheduler both have a word. Pure; the log's own evidence is weighed before.

1. A run that reached its last step is `completed`, whatever became of the job: it may have hung afterwards.
2. GPU memory that ran out is not known to a scheduler (the job `FAILED`): the log's word stays.
3. Host memory and failed nodes explain whatever the log shows at its end.
4. A time limit, a preemption or a cancelled job explains a log that stops, and processes that died without a reason. It
   does not explain a hang, an NCCL error or an exception, which came before: a hung job waits for its limit.
5. A failed job, and exit code 0 of a completed one, count only where the log has no end of its own. Exit code 0 does
   not make a run complete that logged fewer steps than planned, or none.
"""

from __future__ import annotations

import polars as pl

WORDS = {
    "out_of_memory": "host_oom",
    "node_fail": "node_fail",
    "boot_fail": "node_fail",
    "timeout": "timeout",
    "deadline": "timeout",
    "preempted": "preempted",
    "requeued": "preempted",
    "evicted": "preempted",
    "cancelled": "cancelled",
    "failed": "crash",
    "completed": "completed",
}
"""Word of JOB_STATE -> status of the run, where nothing else is known."""

_CAUSES = ("host_oom", "node_fail")
_STOPS = ("timeout", "preempted")
_OPEN = ("truncated", "unknown", "running", "failed")
_SIGTERM = ("143:0", "0:15")


def decide(runs: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """`runs` with status, confidence and evidence as the scheduler's word leaves them; the last attempt of each job.

    Args:
        runs: rows of `runs` with the log's status.
        pairs: job_match.PAIRS rows of those runs.
    """
    told = runs.join(
        pairs.select(
            "run_id", "is_last", "job_state", "job_id", "job_step", "step_state", "step_exit", "job_reason", _exit()
        ),
        on="run_id",
        maintain_order="left",
        suffix="_job",
    )
    word = _word()
    status = pl.col("status")
    is_weak = pl.col("status_confidence").is_in(["low", "medium"])
    is_guess = (status == "hang") & (pl.col("status_confidence") == "low")  # no more than a silence
    wins = (
        (word.is_in(_CAUSES) & ~status.is_in(["completed", "oom"]))
        | (word.is_in(_STOPS) & (status.is_in([*_OPEN, "cancelled"]) | ((status == "crash") & is_weak)))
        | ((word == "crash") & is_guess)
        | (word.is_in(["cancelled", "crash"]) & status.is_in(_OPEN))
        | ((word == "completed") & status.is_in(_OPEN) & _may_be_whole())
    )
    wins = (wins & pl.col("is_last")).fill_null(value=False)
    fits = (word == status) | (is_guess & word.is_in(["timeout", "cancelled"]))  # a silent job is ended by someone else
    agrees = fits.fill_null(value=False) & pl.col("is_last") & ~wins
    is_silent = status.is_in(["truncated", "unknown"]) & pl.col("is_last") & ~wins
    sure = pl.when(word.is_in(["crash", "completed"])).then(pl.lit("medium")).otherwise(pl.lit("high"))
    return told.with_columns(
        status=pl.when(wins).then(word).otherwise(status),
        status_confidence=pl.when(wins)
        .then(sure)
        .when(agrees & (pl.col("status_confidence") == "low"))
        .then(pl.lit("medium"))
        .otherwise("status_confidence"),
        status_evidence=pl.when(wins)
        .then(_sentence())
        .when(is_silent)
        .then(pl.format("{}; {}", "status_evidence", _sentence()))
        .otherwise("status_evidence"),
    ).select(runs.columns)


def _exit() -> pl.Expr:
    return pl.format("{}:{}", "exit_code", "exit_signal").alias("exit")


def _word() -> pl.Expr:
    """The job's end as a status. A step that ran out of memory or failed is not undone by what its script did next."""
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
    word = real.replace_strict(WORDS, default=None, return_dtype=pl.String)
    return pl.when(is_asked).then(pl.lit("cancelled")).otherwise(word)


def _may_be_whole() -> pl.Expr:
    """Whether nothing in the log speaks against a completed run: it has steps, and no plan that it fell short of."""
    falls_short = (pl.col("last_step") < pl.col("steps_planned")).fill_null(value=False)
    return pl.col("last_step").is_not_null() & ~falls_short


def _sentence() -> pl.Expr:
    """The scheduler's word in one sentence, in Slurm's spelling."""
    step = pl.when(pl.col("step_state").is_not_null() & (pl.col("step_state") != pl.col("job_state"))).then(
        pl.format("a step {}", pl.col("step_state").str.to_uppercase())
    )
    parts = [
        pl.format(
            "the scheduler says {} of job {}",
            pl.col("job_state").str.to_uppercase(),
            pl.coalesce("job_id_job", "job_id"),
        ),
        pl.format("exit code {}", "exit"),
        step,
        pl.when(pl.col("job_reason").is_not_null()).then("job_reason"),
    ]
    return pl.concat_str(parts, separator=", ", ignore_nulls=True)
