"""Which of two readings of a log counts: the steps that a dialect found in it, or those that were inferred from it.

A dialect that knows the log is right, unless far more steps, or the losses that it lacks, were inferred for sure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import polars as pl

from sweepscope.pipeline.ingest.line_numbers import LineNumbers
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.rotated import RotatedReader
from sweepscope.pipeline.logs.declared.explain import FAR_MORE
from sweepscope.pipeline.logs.inference.columns import HIGH
from sweepscope.pipeline.logs.inference.result import Inference

_LEAST_LINES = 10
"""Of steps that overrule a dialect that has found some."""

_APART = (0, 1, -1)
_VALUES = ("loss", "grad_norm", "learning_rate", "step_time_s", "tokens_per_s", "tokens_per_s_per_gpu")

Open = Callable[[], Reader | RotatedReader]


@dataclass(frozen=True)
class Candidate:
    """A log that may have to be inferred.

    Attributes:
        path: its name.
        opened: opens it anew.
        step_lines: lines in which a dialect has found steps.
        missed_lines: lines of steps that it could not read: they may have been cut.
        is_known: a dialect knows the log: only far more steps than it has found put another reading in its place.
        is_doubtful: it holds no more than one text by which that dialect is known.
        has_settings: whether settings are not needed: a dialect has found some, or the log may have been cut before
            the lines that it would read.
        is_only_completed: a dialect reads it well, but for losses: no other reading is put in its place.
    """

    path: str
    opened: Open
    step_lines: LineNumbers = field(default_factory=LineNumbers)
    missed_lines: LineNumbers = field(default_factory=LineNumbers)
    is_known: bool = False
    is_doubtful: bool = False
    has_settings: bool = False
    is_only_completed: bool = False


def wanted_steps(log: Candidate, known: pl.DataFrame) -> Callable[[Collection[int], bool], bool] | None:
    """Which steps may say more of a log than is `known` of it; None where its settings are wanted, too."""
    if not (log.is_known and log.has_settings):
        return None
    lacks_loss = is_without_loss(known)

    def may_know_more(lines: Collection[int], has_losses: bool) -> bool:
        if lacks_loss and has_losses:
            return True
        least = max(FAR_MORE * len(log.step_lines.among(lines)), _LEAST_LINES) if log.step_lines else 0
        return not log.is_only_completed and len(lines) >= least

    return may_know_more


def is_settled(log: Candidate, sample: pl.DataFrame, known: pl.DataFrame) -> bool:
    """Whether nothing in a sample can tell more steps of a log than are `known`: few other lines have numbers."""
    if not (log.is_known and log.step_lines) or is_without_loss(known):
        return False
    numbered = sample.filter(pl.col("text").str.contains("[0-9]"))["line_no"]
    found = int(log.step_lines.holds(numbered).sum())
    return log.is_only_completed or numbered.len() < max(FAR_MORE * found, _LEAST_LINES)


def has_sure_steps(inference: Inference) -> bool:
    """Whether steps and losses were inferred that are sure."""
    sure = {one.column for one in inference.columns if one.is_used and one.confidence == HIGH}
    return inference.has_steps and {"step", "loss"} <= sure


def is_without_loss(steps: pl.DataFrame) -> bool:
    """Whether there are steps, and none has a loss."""
    return not steps.is_empty() and steps["loss"].is_null().all()


def knows_losses(inference: Inference, log: Candidate, known: pl.DataFrame) -> bool:
    """Whether steps with losses were inferred where a dialect in doubt only counts: batches of bars, or bare steps."""
    is_of_bars = bool((known["step_basis"] == "batch").fill_null(value=False).all())
    is_bare = all(known[name].is_null().all() for name in _VALUES)
    return log.is_doubtful and is_without_loss(known) and (is_of_bars or is_bare) and has_sure_steps(inference)


def counts_coarser(known: pl.DataFrame, inferred: pl.DataFrame) -> bool:
    """Whether a dialect counts by another number of the same lines: optimizer steps beside micro batches."""
    counted = known.select("line_no", "step").drop_nulls()
    both = counted.join(inferred.select("line_no", other="step"), on="line_no")
    return 2 * both.height >= counted.height and 2 * int((both["step"] < both["other"]).sum()) > both.height


def goes_together(known: pl.DataFrame, inferred: pl.DataFrame) -> bool:
    """Whether two readings of a log count the same steps: the inferred ones hold the others, and none falls behind."""
    both = pl.concat([known.select("line_no", "step"), inferred.select("line_no", "step")]).sort("line_no")
    falls = [int((steps["step"].diff() < 0).sum()) for steps in (both, inferred.sort("line_no"))]
    return bool(known["step"].is_in(inferred["step"].implode()).all()) and falls[0] <= falls[1]


def aligned(known: pl.DataFrame, inferred: pl.DataFrame) -> pl.DataFrame | None:
    """Inferred steps by the numbers of the known ones, from which they may be one apart; None where they are others.

    A trainer that counts from 0 logs its step 12 when DeepSpeed's engine has done 13.
    """
    for shift in _APART:
        moved = inferred.with_columns(pl.col("step") + shift)
        if goes_together(known, moved):
            return moved
    return None


def knows_more(inference: Inference, log: Candidate) -> bool:
    """Whether far more steps were inferred than a dialect has found in the same lines, and it is the one in doubt."""
    if not inference.has_steps or log.is_only_completed:
        return False
    if not log.is_known:
        return True
    if not log.step_lines:
        return len(inference.step_lines) >= FAR_MORE or not log.missed_lines.holds(inference.step_lines).all()
    return (log.is_doubtful or has_sure_steps(inference)) and _is_far_ahead(inference, log)


def counts_between(inference: Inference, log: Candidate) -> bool:
    """Whether far more steps were inferred than a dialect has found, by a sure counter: it may read evaluations."""
    is_counted = any(one.column == "step" and one.is_used and one.confidence == HIGH for one in inference.columns)
    is_found = inference.has_steps and bool(log.step_lines) and not log.is_only_completed
    return is_found and is_counted and _is_far_ahead(inference, log)


def _is_far_ahead(inference: Inference, log: Candidate) -> bool:
    found = len(log.step_lines.among(inference.seen_lines))
    return len(inference.step_lines) >= max(FAR_MORE * found, _LEAST_LINES)
