"""Lines by which a trainer says, or shows, that it is done, as events of a dialect file."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

import polars as pl

from sweepscope.pipeline.logs.inference.epoch_lines import epoch_lines
from sweepscope.pipeline.logs.inference.milestones import end_of_epoch, epilogue, form, training_end
from sweepscope.pipeline.logs.inference.naming import named
from sweepscope.pipeline.logs.inference.series import Key, Line, Series

_LAST_LINES = 40
"""Of a log without steps, where its trainer says that it is done."""
_FAILED = r"^\s?Traceback \(most recent call last\)|^Exception in thread "
_SHARE = "share"
_ALL = 100.0
"""Percent."""
_LEAST_SHARES = 10
_DONE = re.compile(r"""["']?\b(?:is[_ ])?(?:done|finished|completed)["']?\s*[:=]\s*[Tt]rue\b""")
"""The flag with which each step says whether it is the last, as Ray Tune's results do (TrialInfo, tune/result.py)."""


def ending(
    sample: pl.DataFrame, others: pl.DataFrame, step_lines: Collection[int], *, has_steps: bool
) -> tuple[tuple[str, str], ...]:
    """Kind and text of a line by which the trainer says or shows that it is done, and that no line has before.

    Args:
        sample: `line_no`, `text` of all lines.
        others: those that are no steps.
        step_lines: numbers of the lines of steps.
        has_steps: whether those are the training's.
    """
    last = max(step_lines, default=0)
    before, behind = others.filter(pl.col("line_no") < last), others.filter(pl.col("line_no") > last)
    below = list((behind if has_steps else behind.tail(_LAST_LINES)).iter_rows())
    # Without a step, a trainer that has failed before says how long it took all the same.
    has_failed = not has_steps and others["text"].str.contains(_FAILED).any()
    kind, text = "training_end", None if has_failed else training_end(below)
    earlier = before["text"]
    if text is None and has_steps:
        epochs = epoch_lines(others.iter_rows())
        is_open = any(one.line_no > last for one in epochs) or bool(epochs and epochs[-1].epoch < epochs[-1].epochs)
        above = list(before.iter_rows())
        kind, text = "epilogue", None
        if not is_open:
            ended = end_of_epoch(above, below, [one.line_no for one in epochs])
            text = ended or epilogue({form(line) for _, line in above}, below)
        earlier = sample.filter(pl.col("line_no") <= last)["text"]
    return ((kind, text),) if text and not earlier.str.contains(text, literal=True).any() else ()


def whole_share(
    found: Mapping[Key, Series], lines: Sequence[Line], step_lines: Collection[int]
) -> tuple[tuple[str, str], ...]:
    """The share of the work that lines of steps print, where the last one, and no other line, prints all of it.

    Where it is that of an epoch, the number of the last epoch stands in front of it: `Epoch 3/3 100%`.
    """
    last = max(step_lines, default=0)
    for series in (series for key, series in found.items() if key[2] == _SHARE):
        own = {lines[row].number: one for row, one in series.by_row.items() if lines[row].number in step_lines}
        if len(own) < _LEAST_SHARES or last not in own or own[last].number != _ALL:
            continue
        line = next(one for one in lines if one.number == last)
        printed = [one.number or 0.0 for one in own.values()]
        is_rising = all(before <= after for before, after in pairwise(printed))
        begin = own[last].begin if is_rising else _last_epoch(line, own[last].begin)
        text = line.text[begin : own[last].stop] if begin is not None else ""
        if text and not any(text in one.text for one in lines if one.number != last):
            return (("training_end", text),)
    return ()


def done_flag(sample: pl.DataFrame, step_lines: Collection[int]) -> tuple[tuple[str, str], ...]:
    """The flag of being done that the last step sets, and no other line does.

    >>> rows = [(1, '{"step": 1, "done": false}'), (2, '{"step": 2, "done": true}')]
    >>> done_flag(pl.DataFrame(rows, schema=["line_no", "text"], orient="row"), [1, 2])
    (('training_end', '"done": true'),)
    """
    last = sample.filter(pl.col("line_no") == max(step_lines, default=0))["text"]
    flag = _DONE.search(last[0]) if last.len() else None
    is_once = flag is not None and sample["text"].str.contains(flag[0], literal=True).sum() == 1
    return (("training_end", flag[0]),) if flag and is_once else ()


def _last_epoch(line: Line, stop: int) -> int | None:
    """Where a line tells, in front of a character, that its epoch is the last: `Epoch 3/3`; None where it is not."""
    for epoch, total in pairwise(line.fields):
        is_epoch = total.role == "of" and total.end <= stop and named(epoch.label, "epoch") == 0
        if is_epoch and epoch.number == total.number:
            return epoch.head
    return None
