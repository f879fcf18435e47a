"""How a run ended, from ordered evidence. Pure: frames in, status words with confidence and the deciding line out.

The order of the rules is the knowledge:

1. The trainer reached its last step or said that it finished: `completed`, whatever came after.
2. A GPU out-of-memory, a host OOM kill, a watchdog timeout or an NCCL error explains the crash, SIGTERMs and exit codes
   that follow it. Between them the earliest line is the cause. One after which two more steps were logged is not,
   unless nothing else explains why the processes died (a buffered stdout may reach the file after the traceback).
3. A scheduler's or user's stop, or a crash: the earliest line is the cause, the rest is its echo.
4. A status file's word, which may be wrong (picotron greps it together) and so never beats the log.
5. Nothing: `running` while the file is fresh, `truncated` when it stops after it had started, else `unknown`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

STALE_AFTER = timedelta(minutes=15)
"""A log without an end that was written to within this time is `running`."""

OUTCOME = pl.Schema({"status": pl.String, "status_confidence": pl.String, "status_evidence": pl.String})

# Rule 2 and rule 3: event kind -> status word. Within a rule the earliest line decides.
_CAUSES = {"oom": "oom", "host_oom": "host_oom", "hang": "hang", "nccl_error": "nccl_error"}
_STOPS = {
    "timeout": "timeout", "node_fail": "node_fail", "preempted": "preempted", "cancelled": "cancelled",
    "interrupted": "cancelled", "exception": "crash", "child_failed": "crash", "exit_code": "crash",
    "sigkill": "crash", "sigterm": "cancelled",
}  # fmt: skip
# SIGTERM, SIGKILL and a bare exit code say that something ended the processes, not what.
_WEAK = ("sigterm", "sigkill", "exit_code", "child_failed")
# Lines of two files cannot be ordered. Between the first signs of each, the one that the other follows from wins: ranks
# hang when another has died, and processes raise when the scheduler ends them.
_ECHOES = ("hang", "nccl_error", "exception", *_WEAK)
_STATUS_FILE = {"fail": "crash", "oom": "oom", "timeout": "timeout", "completed": "completed"}


def classify(attempts: pl.DataFrame, events: pl.DataFrame, *, now: datetime) -> pl.DataFrame:
    """Status of each attempt.

    Args:
        attempts: one row per attempt with `key`, `last_step`, `steps_planned`, `last_step_line`, `previous_step_line`
            (the one before), `has_settings`, `modified_at` (newest modification time of its files) and `status_file`
            (its word or NULL).
        events: `key`, `line_no`, `kind`, `text`, and `is_secondary` (from another file than the steps).
        now: the moment of reading, for `running`.

    Returns:
        `key` plus OUTCOME columns, one row per attempt, in the order given.
    """
    seen = events.join(attempts.select("key", "last_step_line", "previous_step_line"), on="key", maintain_order="left")
    cause = _earliest(seen.filter(_is_behind("previous_step_line")), _CAUSES, "cause")
    earlier = _earliest(seen.filter(~_is_behind("previous_step_line")), _CAUSES, "earlier")
    stop = _earliest(seen.filter(_is_behind("last_step_line")), _STOPS, "stop")
    ended = _first(seen.filter(pl.col("kind") == "training_end"), "ended")
    rows = attempts
    for found in (cause, earlier, stop, ended):
        rows = rows.join(found, on="key", how="left", maintain_order="left")
    reached = pl.col("last_step") >= pl.col("steps_planned")
    filed = pl.col("status_file").replace_strict(_STATUS_FILE, default=None, return_dtype=pl.String)
    fresh = pl.col("modified_at") > pl.lit(now - STALE_AFTER)
    started = pl.col("last_step").is_not_null() | pl.col("has_settings")
    step_text = pl.format("step {} of {} was logged", "last_step", "steps_planned")
    filed_text = pl.format("the status file says {}", "status_file")
    ladder: list[tuple[pl.Expr, pl.Expr, str, pl.Expr]] = [
        (reached, pl.lit("completed"), "high", step_text),
        (pl.col("ended_text").is_not_null(), pl.lit("completed"), "high", pl.col("ended_text")),
        (pl.col("cause_status").is_not_null(), pl.col("cause_status"), "high", pl.col("cause_text")),
        (
            pl.col("stop_status").is_not_null() & ~pl.col("stop_is_weak"),
            pl.col("stop_status"),
            "high",
            pl.col("stop_text"),
        ),
        (
            pl.col("stop_status").is_not_null() & pl.col("earlier_status").is_not_null(),
            pl.col("earlier_status"),
            "low",
            pl.col("earlier_text"),
        ),
        (pl.col("stop_status").is_not_null(), pl.col("stop_status"), "medium", pl.col("stop_text")),
        (filed.is_not_null(), filed, "medium", filed_text),
        (fresh, pl.lit("running"), "medium", pl.lit("the log has no end and was written to in the last 15 minutes")),
        (started, pl.lit("truncated"), "low", pl.lit("the log stops without a reason")),
    ]
    status, confidence, evidence = pl.lit("unknown"), pl.lit("low"), pl.lit("no evidence of how it ended")
    for condition, word, sure, why in reversed(ladder):
        hold = condition.fill_null(value=False)
        status = pl.when(hold).then(word).otherwise(status)
        confidence = pl.when(hold).then(pl.lit(sure)).otherwise(confidence)
        evidence = pl.when(hold).then(why).otherwise(evidence)
    return rows.select("key", status=status, status_confidence=confidence, status_evidence=evidence)


def _is_behind(line: str) -> pl.Expr:
    """Evidence from a step line on; lines of other files cannot be placed and count always."""
    return pl.col("is_secondary") | (pl.col("line_no") >= pl.col(line).fill_null(0))


def _earliest(events: pl.DataFrame, words: dict[str, str], name: str) -> pl.DataFrame:
    kind = pl.col("kind")
    rows = events.filter(kind.is_in(list(words))).with_columns(weak=kind.is_in(_WEAK), echo=kind.is_in(_ECHOES))
    # An explicit reason beats the echo of processes being killed, wherever it stands.
    first = rows.sort("weak", "line_no", "echo", "kind", "text").unique(
        ["key", "is_secondary"], keep="first", maintain_order=True
    )
    return (
        first.sort("weak", "echo", "is_secondary")
        .unique("key", keep="first", maintain_order=True)
        .select(
            "key",
            kind.replace_strict(words, return_dtype=pl.String).alias(f"{name}_status"),
            pl.col("text").alias(f"{name}_text"),
            pl.col("weak").alias(f"{name}_is_weak"),
        )
    )


def _first(events: pl.DataFrame, name: str) -> pl.DataFrame:
    first = events.sort("is_secondary", "line_no", "text").unique("key", keep="first", maintain_order=True)
    return first.select("key", pl.col("text").alias(f"{name}_text"))
