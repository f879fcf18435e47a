"""Logs in which no dialect found a step: trainings that died or print nothing known, and texts of another kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import polars as pl

from sweepscope.pipeline.ingest.file_kinds import is_named_step_table
from sweepscope.pipeline.logs.evidence.text_kinds import TextKind
from sweepscope.pipeline.logs.facts import EVENT_FACTS, Facts
from sweepscope.pipeline.logs.runs.primary_logs import telling_events

_TEXT_NAME = re.compile(r"\.(?:txt|md|rst|csv|tsv|json)(?:\.\d{1,3})?(?:\.gz|\.zst)?$", re.IGNORECASE)
_OUTPUT_WORD = re.compile(
    r"(?i)(?:^|[^a-z])(?:logs?|std(?:out|err)|console|train(?:ing)?|slurm)(?:$|[^a-z])|^(?:out(?:put)?|err(?:or)?|run)[-_\d]*\."
)


def is_output_name(path: str) -> bool:
    """Whether a name is that of a program's output: not of a text that somebody may have written.

    >>> is_output_name("a/run7.log"), is_output_name("train_log.txt"), is_output_name("notes.txt")
    (True, True, False)
    """
    name = path.rpartition("/")[2]
    return not _TEXT_NAME.search(name) or _OUTPUT_WORD.search(name) is not None


_TRAINING_NAME = re.compile(r"(?i)(?:^|[^a-z])(?:(?:pre)?train(?:ing)?|finetun(?:e|ing)|sft)(?:$|[^a-z])")


def is_training_name(path: str) -> bool:
    """Whether a name is that of the output of a training.

    >>> is_training_name("a/train_2.log"), is_training_name("train/eval.log")
    (True, False)
    """
    return is_output_name(path) and _TRAINING_NAME.search(path.rpartition("/")[2]) is not None


_LOG_NAME = re.compile(
    r"(?i)\.(?:log|out|err)(?:[.-]?\d{1,9})?(?:\.txt)?(?:\.gz|\.zst)?$|(?:^|[^a-z])logs?(?:$|[^a-z])"
)


_OF_WANDB = re.compile(r"(?:^|/)(?:offline-)?run-\d{8}_\d{6}-\w+/files/output\.log$")


def is_training_log_name(path: str) -> bool:
    """Whether a name is that of the log of a training, rather than of what it reads; wandb keeps one of each run.

    >>> is_training_log_name("train_lora.log"), is_training_log_name("data/train.txt")
    (True, False)
    >>> is_training_log_name("wandb/run-20241224_094815-zr8dc7bl/files/output.log")
    True
    """
    if _OF_WANDB.search(path):
        return True
    return is_training_name(path) and _LOG_NAME.search(path.rpartition("/")[2]) is not None


_OF_LOSSES = re.compile(r"(?:^|[^a-z])loss(?:es)?(?:$|[^a-z])")


def may_hold_losses(path: str) -> bool:
    """Whether numbers without any word in a file of that name may be the steps of a training.

    >>> may_hold_losses("a/loss.txt"), may_hold_losses("a/train.out"), may_hold_losses("a/spectrum.txt")
    (True, True, False)
    """
    name = path.rpartition("/")[2].lower()
    is_named = _OF_LOSSES.search(name) is not None or _LOG_NAME.search(name) is not None
    return is_named or is_named_step_table(name)


def judge_unread(
    files: pl.DataFrame, facts: Facts, kinds: Mapping[int, TextKind], others: Collection[int]
) -> tuple[pl.DataFrame, Facts]:
    """`files` and `facts` without the texts that are no logs of trainings, and with the last lines of odd ones.

    A text is a log if it was taken for one, or if a dialect knows it or it tells of a failure that only a training has,
    unless it surely is something else. One with other output, such as NCCL's, has to speak of a training. A run's
    configuration beside a text says that it is the run's, and so do settings in it beside the run's steps: the first
    node states them, and the last prints the losses.

    Args:
        files: `source`, `unit`, `kind`, `dialect`, `parser`, `status` and `error` of all files.
        facts: of all logs.
        kinds: what each log without steps was taken for.
        others: sources that hold something else that is kept, such as NCCL's output.
    """
    logs = dict(files.filter(pl.col("kind") == "log").select("source", "dialect").iter_rows())
    telling = set(telling_events(facts.events)["source"])
    settled = files.filter(pl.col("kind").is_in(["config", "status"]) & pl.col("parser").is_not_null())
    configured = set(files.join(settled, on="unit", how="semi")["source"])
    stepped = files.filter(pl.col("source").is_in(facts.steps["source"].unique().implode()))
    configured |= {*files.join(stepped, on="unit", how="semi")["source"]} & {*facts.settings["source"].unique()}
    no_log: dict[int, str] = {}
    unread: list[dict[str, object]] = []
    for source, kind in kinds.items():
        is_known = source in telling or source in configured or logs.get(source) is not None
        if source not in logs or not (kind.reason or kind.is_training):
            continue
        if source not in others and (kind.is_training is False or not (kind.is_training or is_known)):
            no_log[source] = f"not the log of a training: {kind.reason}"
        elif kind.is_training and logs[source] is None and (source not in others or kind.speaks_of_training):
            text = kind.last_text.strip()
            event = "launch" if kind.has_begun else "unread"
            unread.append({"source": source, "line_no": kind.last_line, "kind": event, "text": text})
    return _left_out(files, no_log), _with_events(facts.map(without(no_log)), unread)


def _left_out(files: pl.DataFrame, reasons: Mapping[int, str]) -> pl.DataFrame:
    if not reasons:
        return files
    reason = pl.col("source").replace_strict(dict(reasons), default=None, return_dtype=pl.String)
    is_out, nothing = reason.is_not_null(), pl.lit(None, pl.String)
    changed = {"kind": pl.lit("unknown"), "status": pl.lit("skipped"), "error": reason}
    changed |= {"dialect": nothing, "parser": nothing}
    return files.with_columns(
        pl.when(is_out).then(value).otherwise(name).alias(name) for name, value in changed.items()
    )


def without(sources: Collection[int]) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A change of facts that leaves out those of some sources."""
    return lambda frame: frame.filter(~pl.col("source").is_in(list(sources))) if sources else frame


def _with_events(facts: Facts, rows: Sequence[Mapping[str, object]]) -> Facts:
    if not rows:
        return facts
    events = pl.concat([facts.events, pl.DataFrame(rows, schema=EVENT_FACTS)])
    return replace(facts, events=events.sort("source", "line_no", maintain_order=True))
