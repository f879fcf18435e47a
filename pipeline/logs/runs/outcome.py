"""Status of runs with confidence and the deciding line, from evidence in order of rules. Pure.

1. `completed`: the trainer reached its last step or reported its end, whatever came after. The last of n steps is n - 1
   where they count from 0. Where the planned steps may be those of a single epoch, that counts only if no line tells
   how the run failed.
2. Exhausted GPU or host memory and failed nodes are never consequences of something else, and explain all other
   evidence at the end, before or behind it. The run survived such a line if two more steps were logged after it.
3. Otherwise the earliest of: a collective that hung, an NCCL error, and what the scheduler or the user did. The others
   follow from it, and so do later exceptions, SIGTERMs and exit codes. An exception before one of them is its cause:
   the other ranks wait in vain for the one that raised it.
4. An exception, but for one that the run had raised before and trained on: what catches it the one time does so the
   other; then nodes that did not find each other (torchrun's rendezvous), since a dead node is not found either.
5. Processes that died without a stated reason. If all workers were terminated (SIGTERM), the signal came from outside:
   `cancelled`, see `runs.terminated`. SIGKILL alone is a `crash` of low confidence: it may come from the host's OOM
   killer, a scheduler or a user, and those that report it (the kernel, Slurm, LSF, Flux) were considered above. A
   survived line of rule 2 explains it after all: a buffered stdout may reach the file later than the traceback.
6. A status file. It may be wrong (picotron greps it together), so the log overrules it. Then a line behind the last
   step by which a script of any framework says that it is done.
7. `hang`: no step for many times the usual pause, though the log went on or was being written. A process that died
   silently looks the same; see `logs.diagnostics.silence`.
8. Without any evidence `running` while the file is fresh and no time in the log says that it is a copy: the last time
   of a log that is being written is not days older than the file. A tracker that has closed says that nothing runs.
   Else `completed` if only every n-th step is logged and no later one would be, or if lines of new forms follow the
   last step and no plan says that more steps were to come, `truncated` if the run had started, else `unknown`. A log
   of which no line is known is a `crash` if it holds a traceback, whatever was raised. Records of steps alone never say
   how a run ended: that is `unknown`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from sweepscope.pipeline.logs.runs.ended_together import OF_RECORDS
from sweepscope.pipeline.logs.runs.terminated import without_echoes
from sweepscope.schemas.thresholds import COPIED_AFTER, COPIED_AFTER_UNSTAMPED, STALE_AFTER, STALE_PAUSES

OUTCOME = pl.Schema({"status": pl.String, "status_confidence": pl.String, "status_evidence": pl.String})


def _roles(**kinds: Sequence[str]) -> pl.DataFrame:
    """`role`, `kind`: one row per role in the rules and kind of event that may play it."""
    return pl.DataFrame({"role": list(kinds), "kind": [list(names) for names in kinds.values()]}).explode("kind")


_STATUS = (
    {"oom": "oom", "host_oom": "host_oom", "node_fail": "node_fail", "hang": "hang", "nccl_error": "nccl_error"}
    | {"timeout": "timeout", "preempted": "preempted", "cancelled": "cancelled", "interrupted": "cancelled"}
    | {"exception": "crash", "rendezvous": "nccl_error", "child_failed": "crash"}
    | {"exit_code": "crash", "sigkill": "crash", "sigterm": "cancelled", "aborted": "failed"}
)
"""Event kind -> status, for the kinds that decide one."""

_CERTAIN = ("oom", "host_oom", "node_fail")
_STOPS = ("timeout", "preempted", "cancelled", "interrupted")
_LOST = ("hang", "nccl_error")  # a rank lost the others: watchdog and NCCL cannot say why
_ECHO_OF_LOSS = r"^terminate called|^Fatal Python error: Aborted|DistBackendError"
"""Exceptions by which the watchdog itself ends a rank; it prints `terminate called` in front of its message."""
_FIRST_CHARS = 40
"""Of an exception: its class and the first words of what it says."""
_LONGEST_S = 1000 * 365 * 86_400.0
_DEAD = ("child_failed", "exit_code", "sigkill", "sigterm", "aborted")
_FAILED = ("child_failed", "exit_code", "sigkill")

# Roles of all evidence, and of evidence behind the last step.
_OF_ALL = _roles(
    launch=("launch",), end=("training_end",), certain=_CERTAIN, survived=(*_CERTAIN, *_LOST), unread=("unread",)
)
_OF_END = _roles(
    ending=(*_STOPS, *_LOST),
    raised=("exception",),
    cause=("exception",),
    failed=_FAILED,
    lonely=("rendezvous",),
    dead=_DEAD,
    fallen=("traceback",),
    finished=("finished",),
    epilogue=("epilogue",),
    closed=("tracker_closed",),
)
_ROLES = [*_OF_ALL["role"].unique(maintain_order=True), *_OF_END["role"].unique(maintain_order=True)]
_LINE = ("kind", "line_no", "is_secondary", "text")
_REST = 0.05
"""Of the planned steps: with fewer left than this, a log that could not show more of them is that of a finished run."""
_STATUS_FILE = {
    **{word: word for word in ("oom", "timeout", "completed", "cancelled")},
    "fail": "crash",
}


def classify(attempts: pl.DataFrame, events: pl.DataFrame, *, now: datetime) -> pl.DataFrame:
    """`key` and OUTCOME columns, one row per attempt, in the order given.

    Args:
        attempts: one row per attempt with `key`, `last_step`, `steps_planned`, `is_plan_guessed` (those may be an
            epoch's), `is_from_zero` (the first of them has the number 0), `stride` (the mean distance of logged steps),
            `last_step_line`, `previous_step_line` (the one before), `has_settings`, `is_of_records` (it has no log but
            records of steps), `modified_at` (newest modification time of its files), `stamped_at` (last timestamp of
            the log), `is_step_stamped` (whether its last step has one), `step_time_s`, `status_file` (its content or
            NULL), `longest_pause_s` between two logged steps and `silence` (the text of a silence that is a sign of a
            hang, or NULL).
        events: `key`, `line_no`, `kind`, `text`, and `is_secondary` (from another file than the steps).
        now: the moment of reading, for `running`.
    """
    seen = events.join(attempts.select("key", "last_step_line", "previous_step_line"), on="key", maintain_order="left")
    at_end = without_echoes(_without_caught(seen).filter(_is_behind("last_step_line")))
    is_recent, role = _is_behind("previous_step_line"), pl.col("role")
    of_all = seen.join(_OF_ALL, on="kind").filter(
        pl.when(role == "certain").then(is_recent).when(role == "survived").then(~is_recent).otherwise(True)
    )
    of_end = at_end.join(_OF_END, on="kind").filter((role != "cause") | ~pl.col("text").str.contains(_ECHO_OF_LOSS))
    first = _earliest(pl.concat(part.select("key", "role", *_LINE) for part in (of_all, of_end)))
    by_role = first.select("key", "role", line=pl.struct(_LINE)).pivot(
        on="role", on_columns=_ROLES, index="key", values="line"
    )
    rows = attempts.join(by_role.unnest(_ROLES, separator="."), on="key", how="left", maintain_order="left")
    status, confidence, evidence = pl.lit("unknown"), pl.lit("low"), pl.lit("no evidence of how it ended")
    for condition, state, sure, why in reversed(_rules(now)):
        holds = condition.fill_null(value=False)
        status = pl.when(holds).then(state).otherwise(status)
        confidence = pl.when(holds).then(pl.lit(sure)).otherwise(confidence)
        evidence = pl.when(holds).then(why).otherwise(evidence)
    return rows.select("key", status=status, status_confidence=confidence, status_evidence=evidence)


def _without_caught(seen: pl.DataFrame) -> pl.DataFrame:
    """`seen` without exceptions that the run had survived before it logged its last two steps.

    Its numbers, and what it quotes behind its first words, may be others the next time.
    """
    is_exception = pl.col("kind") == "exception"
    first_words = pl.col("text").str.replace_all("[0-9]+", "0").str.slice(0, _FIRST_CHARS)
    known = seen.with_columns(raised=pl.when(is_exception).then(first_words))
    survived = known.filter(~pl.col("is_secondary") & (pl.col("line_no") < pl.col("previous_step_line")))
    return known.join(survived, on=["key", "raised"], how="anti", maintain_order="left").drop("raised")


_Rule = tuple[pl.Expr, pl.Expr, str, pl.Expr]


def _duration(seconds: pl.Expr) -> pl.Expr:
    """At most a thousand years: a log may print any number of steps, or seconds of one."""
    return pl.duration(microseconds=(seconds.clip(0, _LONGEST_S) * 1e6).cast(pl.Int64))


def _rules(now: datetime) -> list[_Rule]:
    """(condition, status, confidence, evidence), the strongest first."""
    final_step = pl.col("steps_planned") - pl.col("is_from_zero").cast(pl.Int64)
    is_all = pl.col("last_step") >= pl.col("steps_planned")
    reached = pl.col("last_step") >= final_step  # of steps that count from 0: evidence of a failure says otherwise
    is_last_logged = pl.col("last_step") + pl.col("stride") > final_step
    is_near = pl.col("steps_planned") - pl.col("last_step") <= _REST * pl.col("steps_planned")
    status_file = pl.col("status_file").replace_strict(_STATUS_FILE, default=None, return_dtype=pl.String)
    pause = _duration(pl.col("longest_pause_s") * STALE_PAUSES)
    fresh = pl.lit(now) - pl.col("modified_at") < pl.max_horizontal(pl.lit(STALE_AFTER), pause)
    # A log may state one time at its start and none later: then its steps took what lies in between.
    steps_s = pl.when(~pl.col("is_step_stamped")).then(pl.col("last_step") * pl.col("step_time_s")).fill_null(0.0)
    patience = pl.when("is_step_stamped").then(pl.lit(COPIED_AFTER)).otherwise(pl.lit(COPIED_AFTER_UNSTAMPED))
    age = pl.lit(now) - pl.col("stamped_at") - _duration(steps_s)
    fresh &= (age < pl.max_horizontal(patience, pause)).fill_null(value=True)
    fresh &= ~_is_there("closed")
    started = pl.col("last_step").is_not_null() | pl.col("has_settings") | _is_there("launch")
    is_stop = pl.col("ending.kind").is_in(_STOPS)
    # Slurm cancels the rest of a step itself when one of its tasks fails.
    is_cleanup = pl.col("ending.kind") == "cancelled"
    is_lost = pl.col("ending.kind").is_in(_LOST)
    last = pl.format("step {} of {} was logged", "last_step", "steps_planned")
    return [
        (is_all & ~pl.col("is_plan_guessed"), pl.lit("completed"), "high", last),
        (_is_there("end"), pl.lit("completed"), "high", pl.col("end.text")),
        _rule("certain", "high"),
        _rule("raised", "high", is_stop & _is_before("raised", "ending")),
        _rule("failed", "medium", is_cleanup & _is_before("failed", "ending")),
        _rule("cause", "medium", is_lost & _is_before("cause", "ending")),
        _rule("ending", "high"),
        _rule("raised", "high"),
        _rule("lonely", "medium"),
        _rule("survived", "low", _is_there("dead")),
        _killed(),
        _rule("dead", "medium"),
        (reached & ~pl.col("is_plan_guessed"), pl.lit("completed"), "medium", last),
        (reached, pl.lit("completed"), "medium", pl.format("{}; the plan may be that of a single epoch", last)),
        (status_file.is_not_null(), status_file, "medium", pl.format("the status file says {}", "status_file")),
        (
            _is_there("finished") & pl.col("last_step").is_not_null(),
            pl.lit("completed"),
            "medium",
            pl.col("finished.text"),
        ),
        (_is_there("unread") & _is_there("fallen"), pl.lit("crash"), "low", pl.col("unread.text")),
        (pl.col("silence").is_not_null(), pl.lit("hang"), "low", pl.col("silence")),
        (fresh, pl.lit("running"), "medium", pl.lit("the log has no ending and was written to recently")),
        (is_last_logged & is_near, pl.lit("completed"), "medium", pl.format("{}, and none after it would be", last)),
        (
            _is_there("epilogue") & (pl.col("steps_planned").is_null() | is_near),
            pl.lit("completed"),
            "low",
            pl.format("behind the last step it prints what it had not printed before: {}", "epilogue.text"),
        ),
        (
            pl.col("is_of_records"),
            pl.lit("unknown"),
            "low",
            pl.lit(OF_RECORDS),
        ),
        (started, pl.lit("truncated"), "low", pl.lit("the log stops without a reason")),
        (_is_there("unread"), pl.lit("unknown"), "low", pl.format("no line is known; the last: {}", "unread.text")),
    ]


def _rule(role: str, sure: str, condition: pl.Expr | None = None) -> _Rule:
    there = _is_there(role) if condition is None else _is_there(role) & condition
    status = pl.col(f"{role}.kind").replace_strict(_STATUS, default=None, return_dtype=pl.String)
    return there, status, sure, pl.col(f"{role}.text")


def _killed() -> _Rule:
    """SIGKILL from an unknown sender."""
    there, status, _, text = _rule("dead", "low", pl.col("dead.kind") == "sigkill")
    doubt = "{}; the signal may come from the host's OOM killer, a scheduler or a user"
    return there, status, "low", pl.format(doubt, text)


def _is_there(role: str) -> pl.Expr:
    return pl.col(f"{role}.kind").is_not_null()


def _is_before(first: str, second: str) -> pl.Expr:
    """Whether one line precedes another; false for lines of two files, which have no order."""
    same_file = pl.col(f"{first}.is_secondary") == pl.col(f"{second}.is_secondary")
    return same_file & (pl.col(f"{first}.line_no") < pl.col(f"{second}.line_no"))


def _is_behind(line: str) -> pl.Expr:
    """Whether evidence follows a step line; always true for lines of other files, which have no order."""
    return pl.col("is_secondary") | (pl.col("line_no") >= pl.col(line).fill_null(0))


def _earliest(evidence: pl.DataFrame) -> pl.DataFrame:
    """The first line per `key` and `role`; between two files, that of the scheduler or user comes first."""
    rows = evidence.with_columns(lost=pl.col("kind").is_in(_LOST)).sort("line_no", "lost", "kind", "text")
    per_file = rows.unique(["key", "role", "is_secondary"], keep="first", maintain_order=True)
    return per_file.sort("lost", "is_secondary").unique(["key", "role"], keep="first", maintain_order=True)
