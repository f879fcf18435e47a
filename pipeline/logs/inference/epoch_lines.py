"""Lines above the steps of an epoch that have its number: `Epoch 3/10`, and the steps below it count from the start.

A line below them may have it, too, which sums the epoch up: `[warm up] Epoch 3/10 - train loss 2.35, val loss 2.41`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sweepscope.pipeline.logs.extractors import LEADING
from sweepscope.pipeline.logs.inference.counter import CLEAR, Counter
from sweepscope.pipeline.logs.inference.losses import loss_rows
from sweepscope.pipeline.logs.inference.series import Key, Line, Series

_LOGGED = re.compile(f"^{LEADING}")
_LINE = re.compile(
    r"(?i)\W*(?P<name>(?:(?:start(?:ing)?|begin(?:ning)?|train(?:ing)?|running)(?: of)?(?: the)? )?epoch\W{1,3})"
    r"(?P<epoch>\d+)"
    r"(?:(?P<slash> ?(?:/|of) ?)(?P<epochs>\d+))?\W*(?:(?:start(?:s|ed)?|begins?|training)\W*)?"
)
"""A line that tells the number of an epoch, and nothing else."""
_SUMMARY = re.compile(
    r"(?i)(?:\[[A-Za-z][\w -]{0,29}\])?\W*(?P<name>(?:(?:end of|finished|completed) )?epoch\W{1,3})(?P<epoch>\d+)"
    r"(?:(?P<slash> ?(?:/|of) ?)(?P<epochs>\d+))?(?![\w.])\W.*\d.*"
)
"""A line with the number of an epoch and what it came to."""


@dataclass(frozen=True)
class EpochLine:
    """A line that tells the number of an epoch, and of how many; 0 where it does not say."""

    line_no: int
    epoch: int
    epochs: int
    piece: str


def with_epoch_line(
    counter: Counter, found: Mapping[Key, Series], lines: Sequence[Line], others: Iterable[tuple[int, str]]
) -> Counter:
    """The counter, with the line of its epochs where it begins anew below each.

    Args:
        counter: what numbers the steps.
        found: all series.
        lines: the sample.
        others: number and text of lines that are no steps.
    """
    if counter.epoch or counter.is_epoch:
        return counter
    epochs = epoch_lines(others)
    if len({one.piece for one in epochs}) != 1:
        return counter
    agree, differ = _anew(_counts(counter, found, lines), epochs)
    if not agree or agree < CLEAR * differ:
        return counter
    return replace(counter, epoch_line=epochs[0].piece, first_epoch=0 if any(not one.epoch for one in epochs) else 1)


def with_epoch_summary(
    counter: Counter, found: Mapping[Key, Series], lines: Sequence[Line], others: Iterable[tuple[int, str]]
) -> Counter:
    """The counter, with the line that sums each of its epochs up, where it begins anew behind each.

    The first one ends epoch 0 or 1, has steps above it, and each of the others has the next number.
    """
    if counter.epoch or counter.is_epoch or counter.is_lines or counter.epoch_line:
        return counter
    ends = [one for line_no, text in others if (one := _epoch_line(line_no, text, _SUMMARY))]
    epochs = [one for one, before in zip(ends, [None, *ends], strict=False) if not before or one.epoch != before.epoch]
    if len({one.piece for one in epochs}) != 1 or epochs[0].epoch > 1:
        return counter
    rows = _counts(counter, found, lines)
    jumps = [one.epoch - before.epoch for before, one in pairwise(epochs)]
    is_in_turn = all(jump > 0 for jump in jumps) and sum(jump > 1 for jump in jumps) <= 1  # where the sample was cut
    agree, differ = _anew(rows, epochs, at_first=True)
    if not is_in_turn or not agree or differ or epochs[0].line_no < rows[0][0]:
        return counter
    return replace(counter, epoch_line=epochs[0].piece, first_epoch=epochs[0].epoch, epoch_line_is="below")


def without_total_of_epoch(
    counter: Counter, found: Mapping[Key, Series], settings: Mapping[str, str], *, is_one_epoch: bool = False
) -> Counter:
    """The counter, without its total where it came to that, and the log plans more: it is the length of an epoch.

    Of a log that plans one epoch, that is the whole training, and what it plans besides is a limit that is not reached.

    Args:
        counter: what numbers the steps.
        found: all series.
        settings: believed values by column.
        is_one_epoch: the log states that it plans one epoch.
    """
    total, planned = found.get((counter.key[0], "of", counter.key[2])), settings.get("steps_planned", "")
    if (
        is_one_epoch
        or total is None
        or not planned.isdigit()
        or counter.epoch
        or counter.epoch_line
        or counter.is_epoch
    ):
        return counter
    length = max(total.numbers, default=0)
    is_reached = max(found[counter.key].numbers, default=0) >= length - 1
    return replace(counter, has_total=False) if is_reached and int(planned) > length else counter


def is_once_an_epoch(count: int, others: Iterable[tuple[int, str]]) -> bool:
    """Whether `count` lines of steps are one for each line that begins an epoch, but for the last."""
    begun = len({one.line_no for one in epoch_lines(others)})
    return begun > 0 and count in (begun - 1, begun)


def epoch_lines(lines: Iterable[tuple[int, str]]) -> list[EpochLine]:
    """Those of some lines that tell the number of an epoch, and nothing else."""
    return [one for line_no, text in lines if (one := _epoch_line(line_no, text))]


def _epoch_line(line_no: int, text: str, form: re.Pattern[str] = _LINE) -> EpochLine | None:
    logged = _LOGGED.match(text)
    hit = form.fullmatch(text, logged.end() if logged else 0)
    if not hit:
        return None
    name = hit["name"].replace("{", "{{").rstrip()
    total = f"{hit['slash']}{{epochs}}" if hit["epochs"] else ""
    blank = " " if hit["name"][-1:].isspace() else ""
    return EpochLine(line_no, int(hit["epoch"]), int(hit["epochs"] or 0), f"{name}{blank}{{epoch}}{total}")


def _counts(counter: Counter, found: Mapping[Key, Series], lines: Sequence[Line]) -> list[tuple[int, float]]:
    """Line and number of each step: of those beside losses, if any are, for texts may count `Step 1:`, too."""
    counts = found[counter.key].by_row
    beside = loss_rows(found) & counts.keys()
    return [(lines[row].number, one.number or 0) for row, one in counts.items() if not beside or row in beside]


def _anew(rows: Sequence[tuple[int, float]], epochs: Sequence[EpochLine], *, at_first: bool = False) -> tuple[int, int]:
    """At how many lines of a new epoch a counter begins anew, and at how many it goes on, with `at_first` at the first,
    too. Of several between two steps none counts: they stand where the sample leaves steps out."""
    at = [line_no for line_no, _ in rows]
    agree = differ = 0
    ahead = Counts(bisect_left(at, one.line_no) for one in epochs)
    for before, one in pairwise([replace(epochs[0], epoch=-1), *epochs] if at_first else epochs):
        row = bisect_left(at, one.line_no)
        if one.epoch <= before.epoch or not 0 < row < len(rows) or ahead[row] > 1:
            continue
        agree += rows[row][1] <= rows[row - 1][1]
        differ += rows[row][1] > rows[row - 1][1]
    return agree, differ
