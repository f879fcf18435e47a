"""How a run ended, from ordered evidence. Pure: frames in, status words with confidence and the deciding line out.

The order of the rules is the knowledge:

1. The trainer reached its last step or said that it finished: `completed`, whatever came after. What may be the last
   step of an epoch only counts where nothing says how the run failed.
2. GPU or host memory that ran out and a failed node are never the consequence of something else. They explain what
   else stands at the end, before or behind it. One after which two more steps were logged was survived.
3. Else the earliest of: a collective that hung, an NCCL error, and what the scheduler or the user did. The others are
   its echo, and so are the exceptions, SIGTERMs and exit codes behind it; an exception before one of them is its cause:
   the ranks that go on wait in vain for the one that raised it.
4. An exception.
   Nodes that did not find each other (torchrun's rendezvous) come next: one that has died is not found either.
5. Processes that died, without a reason. Workers that were all terminated (SIGTERM) were so from outside: `cancelled`;
   see `pipeline.logs.runs.terminated`. SIGKILL alone is a `crash` of low confidence: the host's OOM killer, a scheduler
   and a user look alike, and who has a word (the kernel, Slurm, LSF, Flux) was heard before. One that was survived
   explains it after all: a buffered stdout may reach the file later than the traceback.
6. A status file's word, which may be wrong (picotron greps it together) and so never beats the log.
7. No step for many times the usual pause between steps, though the log went on or was written live: `hang`, which a
   process that died without a word looks like, too. See `pipeline.logs.diagnostics.silence`.
8. Nothing: `running` while the file is fresh, `truncated` when it stops after it had started, else `unknown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import polars as pl

from sweepscope.pipeline.logs.runs.terminated import weigh

STALE_AFTER = timedelta(minutes=15)
"""A log without an end that was written to within this time, or PAUSES of its own longest pauses, is `running`."""

PAUSES = 3

OUTCOME = pl.Schema({"status": pl.String, "status_confidence": pl.String, "status_evidence": pl.String})


def _signs(**kinds: Sequence[str]) -> pl.DataFrame:
    """One row per sign and kind of event."""
    return pl.DataFrame({"sign": list(kinds), "kind": [list(names) for names in kinds.values()]}).explode("kind")


_STATUS = {
    "oom": "oom",
    "host_oom": "host_oom",
    "node_fail": "node_fail",
    "hang": "hang",
    "nccl_error": "nccl_error",
    "timeout": "timeout",
    "preempted": "preempted",
    "cancelled": "cancelled",
    "interrupted": "cancelled",
    "exception": "crash",
    "rendezvous": "nccl_error",
    "child_failed": "crash",
    "exit_code": "crash",
    "sigkill": "crash",
    "sigterm": "cancelled",
    "aborted": "failed",
}
"""Event kind -> status word, for the kinds that say how a run ended."""

_CERTAIN = ("oom", "host_oom", "node_fail")
_STOPS = ("timeout", "preempted", "cancelled", "interrupted")
_LOST = ("hang", "nccl_error")  # a rank lost the others: watchdog and NCCL cannot say why
_ECHO_OF_LOSS = r"^terminate called|^Fatal Python error: Aborted|DistBackendError"
"""Exceptions with which the watchdog itself ends a rank; `terminate called` stands in front of what it has to say."""
_DEAD = ("child_failed", "exit_code", "sigkill", "sigterm", "aborted")
_FAILED = ("child_failed", "exit_code", "sigkill")

# Which signs the lines of a kind may be: of all, and of those behind the last step.
_OF_ALL = _signs(launch=("launch",), end=("training_end",), certain=_CERTAIN, survived=(*_CERTAIN, *_LOST))
_OF_END = _signs(
    ending=(*_STOPS, *_LOST),
    raised=("exception",),
    cause=("exception",),
    failed=_FAILED,
    lonely=("rendezvous",),
    dead=_DEAD,
)
_SIGNS = [*_OF_ALL["sign"].unique(maintain_order=True), *_OF_END["sign"].unique(maintain_order=True)]
_PLACE = ("kind", "line_no", "is_secondary", "text")
_STATUS_FILE = {"fail": "crash", "oom": "oom", "timeout": "timeout", "completed": "completed"}


def classify(attempts: pl.DataFrame, events: pl.DataFrame, *, now: datetime) -> pl.DataFrame:
    """Status of each attempt.

    Args:
        attempts: one row per attempt with `key`, `last_step`, `steps_planned`, `is_plan_guessed` (those may be an
            epoch's), `last_step_line`, `previous_step_line` (the one before), `has_settings`, `modified_at` (newest
            modification time of its files), `status_file` (its word or NULL), `longest_pause_s` between two logged
            steps and `silence` (a hang's sign in words, or NULL).
        events: `key`, `line_no`, `kind`, `text`, and `is_secondary` (from another file than the steps).
        now: the moment of reading, for `running`.

    Returns:
        `key` plus OUTCOME columns, one row per attempt, in the order given.
    """
    seen = events.join(attempts.select("key", "last_step_line", "previous_step_line"), on="key", maintain_order="left")
    at_end = weigh(seen.filter(_is_behind("last_step_line")))
    is_recent, sign = _is_behind("previous_step_line"), pl.col("sign")
    of_all = seen.join(_OF_ALL, on="kind").filter(
        pl.when(sign == "certain").then(is_recent).when(sign == "survived").then(~is_recent).otherwise(True)
    )
    of_end = at_end.join(_OF_END, on="kind").filter((sign != "cause") | ~pl.col("text").str.contains(_ECHO_OF_LOSS))
    first = _earliest(pl.concat(part.select("key", "sign", *_PLACE) for part in (of_all, of_end)))
    by_sign = first.select("key", "sign", line=pl.struct(_PLACE)).pivot(
        on="sign", on_columns=_SIGNS, index="key", values="line"
    )
    rows = attempts.join(by_sign.unnest(_SIGNS, separator="."), on="key", how="left", maintain_order="left")
    status, confidence, evidence = pl.lit("unknown"), pl.lit("low"), pl.lit("no evidence of how it ended")
    for condition, word, sure, why in reversed(_ladder(now)):
        hold = condition.fill_null(value=False)
        status = pl.when(hold).then(word).otherwise(status)
        confidence = pl.when(hold).then(pl.lit(sure)).otherwise(confidence)
        evidence = pl.when(hold).then(why).otherwise(evidence)
    return rows.select("key", status=status, status_confidence=confidence, status_evidence=evidence)


_Rung = tuple[pl.Expr, pl.Expr, str, pl.Expr]


def _ladder(now: datetime) -> list[_Rung]:
    """(condition, status, confidence, evidence), the strongest first."""
    reached = pl.col("last_step") >= pl.col("steps_planned")
    filed = pl.col("status_file").replace_strict(_STATUS_FILE, default=None, return_dtype=pl.String)
    pause = pl.duration(microseconds=(pl.col("longest_pause_s") * 1e6 * PAUSES).cast(pl.Int64))
    fresh = pl.lit(now) - pl.col("modified_at") < pl.max_horizontal(pl.lit(STALE_AFTER), pause)
    started = pl.col("last_step").is_not_null() | pl.col("has_settings") | _is_there("launch")
    is_stop = pl.col("ending.kind").is_in(_STOPS)
    # Slurm cancels the rest of a step itself when one of its tasks fails.
    is_cleanup = pl.col("ending.kind") == "cancelled"
    is_lost = pl.col("ending.kind").is_in(_LOST)
    last = pl.format("step {} of {} was logged", "last_step", "steps_planned")
    return [
        (reached & ~pl.col("is_plan_guessed"), pl.lit("completed"), "high", last),
        (_is_there("end"), pl.lit("completed"), "high", pl.col("end.text")),
        _rung("certain", "high"),
        _rung("raised", "high", is_stop & _is_before("raised", "ending")),
        _rung("failed", "medium", is_cleanup & _is_before("failed", "ending")),
        _rung("cause", "medium", is_lost & _is_before("cause", "ending")),
        _rung("ending", "high"),
        _rung("raised", "high"),
        _rung("lonely", "medium"),
        _rung("survived", "low", _is_there("dead")),
        _killed(),
        _rung("dead", "medium"),
        (reached, pl.lit("completed"), "medium", pl.format("{}; they may be those of an epoch", last)),
        (filed.is_not_null(), filed, "medium", pl.format("the status file says {}", "status_file")),
        (pl.col("silence").is_not_null(), pl.lit("hang"), "low", pl.col("silence")),
        (fresh, pl.lit("running"), "medium", pl.lit("the log has no end and was written to a short while ago")),
        (started, pl.lit("truncated"), "low", pl.lit("the log stops without a reason")),
    ]


def _rung(sign: str, sure: str, condition: pl.Expr | None = None) -> _Rung:
    there = _is_there(sign) if condition is None else _is_there(sign) & condition
    word = pl.col(f"{sign}.kind").replace_strict(_STATUS, default=None, return_dtype=pl.String)
    return there, word, sure, pl.col(f"{sign}.text")


def _killed() -> _Rung:
    """SIGKILL and not a word on who sent it."""
    there, word, _, text = _rung("dead", "low", pl.col("dead.kind") == "sigkill")
    doubt = "{}; the host's OOM killer, a scheduler or a user: nothing says which"
    return there, word, "low", pl.format(doubt, text)


def _is_there(sign: str) -> pl.Expr:
    return pl.col(f"{sign}.kind").is_not_null()


def _is_before(first: str, second: str) -> pl.Expr:
    """Lines of two files cannot be ordered: then neither is before the other."""
    same_file = pl.col(f"{first}.is_secondary") == pl.col(f"{second}.is_secondary")
    return same_file & (pl.col(f"{first}.line_no") < pl.col(f"{second}.line_no"))


def _is_behind(line: str) -> pl.Expr:
    """Evidence from a step line on; lines of other files cannot be placed and count always."""
    return pl.col("is_secondary") | (pl.col("line_no") >= pl.col(line).fill_null(0))


def _earliest(signs: pl.DataFrame) -> pl.DataFrame:
    """The first line per `key` and `sign`; between two files, what the scheduler or user did comes first."""
    rows = signs.with_columns(lost=pl.col("kind").is_in(_LOST)).sort("line_no", "lost", "kind", "text")
    per_file = rows.unique(["key", "sign", "is_secondary"], keep="first", maintain_order=True)
    return per_file.sort("lost", "is_secondary").unique(["key", "sign"], keep="first", maintain_order=True)
