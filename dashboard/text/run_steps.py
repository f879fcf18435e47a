"""What the numbers of a run's steps count, and what its step time is, in words."""

from __future__ import annotations

from sweepscope.dashboard.format.numbers import number
from sweepscope.dashboard.queries.query import Row

_NAMED = {
    "epoch": "about step {}",
    "whole_epoch": "epoch {}",
    "batch": "batch {}",
    "ordinal": "logged value {}, of an unknown step",
}
_AXIS = {
    "epoch": "Step, from rounded epochs",
    "whole_epoch": "Epoch",
    "batch": "Batch",
    "ordinal": "Logged value; its step is unknown",
}
_NOTES = {
    "epoch": "Steps are computed from epochs that the trainer rounds: they may be a few off.",
    "whole_epoch": "The numbers count epochs: the log numbers no steps.",
    "batch": "The numbers count batches; with gradient accumulation, several make a step.",
    "ordinal": "The numbers count logged values: nothing in the files tells which steps they belong to.",
}
MEANS = {
    "whole_run": "mean over the whole training",
    "summary": "mean or median that its script states",
    "throughput": "step time from tokens/s",
    "time_stamps": "median by the log's time stamps",
}
"""What a step time is, where it is no median of steps."""


def last_step(run: Row) -> str:
    """The number of its last step, called what it is.

    >>> last_step({"last_step": 7, "step_basis": "batch"})
    'batch 7'
    """
    return _NAMED.get(run["step_basis"] or "step", "step {}").format(number(run["last_step"]))


def counts_steps(run: Row) -> bool:
    """Whether the numbers of its steps can be compared with the steps planned."""
    return run["step_basis"] not in ("batch", "ordinal")


def is_last_of_planned(run: Row) -> bool:
    """Whether it logged the last of its planned steps."""
    return bool(run["last_step"] == run["steps_planned"] and counts_steps(run))


def axis(run: Row) -> str:
    """What the numbers of its steps count, as the title of an axis."""
    return _AXIS.get(run["step_basis"] or "step", "Step")


def step_note(run: Row) -> str:
    """What the numbers of its steps count, where they are not the optimizer's; else nothing."""
    return _NOTES.get(run["step_basis"] or "step", "")
