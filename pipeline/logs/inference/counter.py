"""The value that numbers the steps: it rises with the lines, is named as counters are, and a loss stands beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sweepscope.pipeline.logs.declared.rules import LINES
from sweepscope.pipeline.logs.inference.labels import is_unnamed
from sweepscope.pipeline.logs.inference.losses import loss_rows
from sweepscope.pipeline.logs.inference.naming import named
from sweepscope.pipeline.logs.inference.points import points_of
from sweepscope.pipeline.logs.inference.series import Key, Line, Series, course
from sweepscope.pipeline.logs.synonyms import words

_LEAST = 4.0
"""Points below which nothing counts as a counter."""
_OF_MOST = 2.0
"""Points of the counter that most lines have."""
_MANY = 3
"""Changes from which on the course of a series tells something."""
_OFTEN = 10
_NEARLY_ALL = 0.9
CLEAR = 3
"""So many times more often a counter has to begin anew with an epoch than to go on; after a restart it may."""
_ROUND = 5
_GLOBAL = re.compile(r"\b(?:global|total|overall)\b")
"""In the name of a counter that no epoch begins anew."""
_FEW = 0.25
"""Of the losses, which tell of a part of the training."""


@dataclass(frozen=True)
class Counter:
    """What numbers the steps.

    Attributes:
        key: of its series.
        epoch: key of the epoch's number, where the steps of each epoch are counted anew.
        first_epoch: number of the first epoch.
        is_epoch: steps are not printed, and epochs stand for them.
        sure: 0 where name, course and neighbours agree; 1 where one of them is missing; 2 for a guess.
        counts: what it counts, as a dialect file spells it.
        epoch_line: piece of the line above the steps of an epoch, or `epoch_line_is` "below" them; "" without.
        has_total: the number behind its slash is that of its last value.
    """

    key: Key
    epoch: Key | None = None
    first_epoch: int = 0
    is_epoch: bool = False
    sure: int = 0
    counts: str = "steps"
    epoch_line: str = ""
    epoch_line_is: str = "above"
    has_total: bool = True

    @property
    def is_lines(self) -> bool:
        """Whether no value numbers the steps, and its key is that of the losses, each of which is one more."""
        return self.counts == LINES

    @property
    def taken(self) -> tuple[Key | None, ...]:
        """Keys of series that are no column's, since they number the steps."""
        return (self.epoch,) if self.is_lines else (self.key, self.epoch)


def find_counter(found: Mapping[Key, Series], lines: Sequence[Line]) -> Counter | None:
    """The counter of the training's steps; None where nothing is one."""
    losses = loss_rows(found)
    epochs = [
        series for key, series in found.items() if not key[1] and named(key[0], "epoch") is not None and series.is_whole
    ]
    scored = []
    for key, series in found.items():
        is_count = series.is_whole or (series.is_count and named(key[0], "step") == 0)
        if key[1] or not is_count or key[2] or min(series.numbers, default=-1) < 0:
            continue
        own = series.within(set(series.rows))
        went = course(own if own.rows else series, lines)
        if went.down and named(key[0], "step") is not None:
            anew = max((_restarts_with(series, epoch, lines)[0] for epoch in epochs), default=0)
            went = replace(went, down=max(went.down - anew, 0))
        points = points_of(series, went, losses, found, lines)
        if points is not None:
            scored.append((points, len(series.rows), key, went))
    if not scored:
        return None
    most = max(count for _, count, *_ in scored)
    points, _, key, _ = max(scored, key=lambda one: (one[0] + _OF_MOST * one[1] / most, one[1]))
    if points < _LEAST:
        return None
    key = _throughout([key for _, _, key, _ in scored], key, found, lines, losses)
    key = _of_most_losses([key for _, _, key, _ in scored], key, found, lines, losses)
    is_epoch = named(key[0], "epoch") is not None and named(key[0], "step") is None
    if is_epoch and (finer := _within_epochs(found, key, losses, lines)):
        key, is_epoch = finer, False
    epoch = None if is_epoch else _epoch(found, key, lines)
    sure = 0 if points >= _LEAST + 2 else 1
    first = 0
    if epoch:
        first = _first_epoch(found[epoch], found.get((epoch[0], "of", epoch[2])))
    return Counter(key, epoch, first, is_epoch, sure, "epochs" if is_epoch else "steps")


def _throughout(
    keys: Sequence[Key], key: Key, found: Mapping[Key, Series], lines: Sequence[Line], losses: set[int]
) -> Key:
    """The counter that goes on over the epochs, where one stands beside that of each: `Step 20] global_step=336`.

    It is known by the epochs that begin, or, of few lines, because it is beyond the total of the other: `STEP: 10/13 --
    GLOBAL_STEP: 25`.
    """
    if not course(found[key], lines).down:
        return _beyond_total(key, found)
    needed = losses & set(found[key].rows)
    for other in keys:
        went = course(found[other], lines)
        is_on = named(other[0], "step") == 0 and not went.down and went.up >= _MANY
        if is_on and needed and needed <= set(found[other].rows):
            return other
    return key


def _beyond_total(key: Key, found: Mapping[Key, Series]) -> Key:
    total, rows = found.get((key[0], "of", key[2])), set(found[key].rows)
    if total is None or not total.numbers:
        return key
    for other, series in found.items():
        is_counter = not other[1] and series.is_whole and named(other[0], "step") == 0
        if is_counter and rows <= set(series.rows) and min(series.numbers) > max(total.numbers):
            return other
    return key


def _of_most_losses(
    keys: Sequence[Key], key: Key, found: Mapping[Key, Series], lines: Sequence[Line], losses: set[int]
) -> Key:
    """The epoch's number where it goes on beside all losses, and the counter stopped after few: `[Step 0200/0500]`.

    As of a trainer that logs steps while it warms up, and epochs throughout.
    """
    if len(losses & set(found[key].rows)) > _FEW * len(losses) or len(losses) < _OFTEN:
        return key
    last = max(losses & set(found[key].rows), default=0)
    for other in keys:
        went = course(found[other], lines)
        is_on = named(other[0], "epoch") == 0 and not went.down and went.up >= _MANY
        if is_on and losses <= set(found[other].rows) and sum(row > last for row in losses) > len(losses) / 2:
            return other
    return key


def _first_epoch(epoch: Series, total: Series | None) -> int:
    """The number of a training's first epoch, of which the log may have lost the begin: 0 or 1.

    Trainings are as long as round numbers are: one that ends with epoch 30 counts from 1.
    """
    first, last = int(min(epoch.numbers)), int(max(epoch.numbers))
    if first <= 1:
        return max(first, 0)
    if total:
        return int(last >= max(total.numbers))
    return int(last % _ROUND == 0)


def _within_epochs(found: Mapping[Key, Series], epoch: Key, losses: set[int], lines: Sequence[Line]) -> Key | None:
    """The series without a name that counts within each epoch: `[Epoch 2/50][ 100:391] Loss`, `Epoch: [2][100] Loss`.

    Where no line has a loss, a name does no harm: `Epoch[2] Batch [20] Speed: 142.3 samples/sec`. It counts up to the
    same total, or begins anew with nearly every epoch from a first value that few lines have.
    """
    for key, series in found.items():
        is_named = not losses and named(key[0], "step") is not None
        if key[1] or not (is_named or is_unnamed(key[0])) or not series.is_whole:
            continue
        if not losses & set(found[epoch].rows) <= set(series.rows) <= set(found[epoch].rows):
            continue
        total, went = found.get((key[0], "of", key[2])), course(series, lines)
        agree, differ = _restarts_with(series, found[epoch], lines)
        is_up_to = total is not None and len(set(total.numbers)) == 1 and went.distinct >= _MANY
        is_anew = went.distinct > 1 and agree >= max(_OFTEN, _NEARLY_ALL * went.down) and went.up >= _NEARLY_ALL * agree
        if (is_up_to or is_anew) and agree and agree >= CLEAR * differ:
            return key
    return None


def _epoch(found: Mapping[Key, Series], key: Key, lines: Sequence[Line]) -> Key | None:
    """The epoch's series, where the counter begins anew with each epoch, or would: the last one is known."""
    counter = found[key]
    if _GLOBAL.search(words(key[0])):
        return None
    for other, series in found.items():
        if other[1] or named(other[0], "epoch") is None or not series.is_whole:
            continue
        agree, differ = _restarts_with(counter, series, lines)
        is_clear = agree >= CLEAR * differ if agree else not differ and (other[0], "of", other[2]) in found
        if is_clear:
            return other
    return None


def _restarts_with(counter: Series, epoch: Series, lines: Sequence[Line]) -> tuple[int, int]:
    """How often the counter falls where the epoch rises, and how often it goes on there."""
    last: dict[int | None, tuple[int, float, float]] = {}
    agree = differ = 0
    rows = {row: one for row, one in counter.by_row.items() if one.split != "eval"}
    beside = sum(row in epoch.by_row for row in rows)
    is_beside = beside >= _NEARLY_ALL * len(rows)  # others name a step, as of a checkpoint
    for row, one in rows.items():
        other = epoch.by_row.get(row)
        if other is None or other.number is None or one.number is None:
            differ += not is_beside
            continue
        block, rank = lines[row].block, lines[row].rank
        before = last.get(rank)
        if before is not None and other.number > before[2]:
            agree += one.number <= before[1]
            differ += one.number > before[1] and block == before[0]  # between two blocks, lines are left out
        last[rank] = (block, one.number, other.number)
    return agree, differ
