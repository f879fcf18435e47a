"""The value that numbers the steps: it rises with the lines, is named as counters are, and a loss stands beside it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sweepscope.pipeline.logs.inference.fields import is_unnamed
from sweepscope.pipeline.logs.inference.series import Course, Key, Line, Series, course
from sweepscope.pipeline.logs.synonyms import step_columns

_LEAST = 4.0
"""Points below which nothing counts as a counter."""
_BY_PART = 2
_PART_OF_LOSS = re.compile(
    r"aux|auxiliary|balance|balancing|router|z|kl|kd|reg|best|min|lowest|act|cri|unsuper|mtp|distill|distillation|gen|disc|"
    r"policy|value|"
    r"critic|actor|entropy|delta|lb|load|moe|final"
)
"""Words in front of "loss" that make it another quantity than the loss of the training."""
_OF_MOST = 2.0
"""Points of the counter that most lines have."""
_MANY = 3
"""Changes from which on the course of a series tells something."""
_VAGUE = 3
"""Names that only may be another column's number a trainer's lines, too: `Train: [5/150] Loss 2.31`."""
_OFTEN = 10
_NEARLY_ALL = 0.9
CLEAR = 3
"""So many times more often a counter has to begin anew with an epoch than to go on; after a restart it may."""
_SAMPLES = 2_000
"""A counter that moves by so much each time counts samples or tokens."""
_NEVER = (
    "seed",
    "port",
    "pid",
    "time",
    "eta",
    "elapsed",
    "sample",
    "samples",
    "size",
    "param",
    "params",
    "bytes",
    "tokens",
)


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
        epoch_line: piece of the line above the steps of an epoch; "" without.
        has_total: the number behind its slash is that of its last value.
    """

    key: Key
    epoch: Key | None = None
    first_epoch: int = 0
    is_epoch: bool = False
    sure: int = 0
    counts: str = "steps"
    epoch_line: str = ""
    has_total: bool = True


def columns_of(label: str) -> tuple[tuple[str, int], ...]:
    """The columns that a label may name: by all of its words, else by those next to the value, which is less sure."""
    plain = label.removeprefix("> ")
    if whole := step_columns(plain):
        return whole
    parts = plain.split()
    for count in (3, 2, 1):
        near = parts[:count] if label != plain else parts[-count:]
        if count < len(parts) and (found := step_columns(" ".join(near))):
            other = [] if label != plain else parts[: len(parts) - count]
            allowed = (
                ("step", "epoch") if any(_PART_OF_LOSS.fullmatch(word) for word in other) else ("step", "epoch", "loss")
            )
            return tuple((column, sure + _BY_PART) for column, sure in found if column in allowed)
    return ()


def named(label: str, column: str) -> int | None:
    """How sure a label names a column, from 0 for the surest on; None where it does not."""
    return dict(columns_of(label)).get(column)


def find_counter(found: Mapping[Key, Series], lines: Sequence[Line]) -> Counter | None:
    """The counter of the training's steps; None where nothing is one."""
    losses = _loss_rows(found)
    epochs = [
        series for key, series in found.items() if not key[1] and named(key[0], "epoch") is not None and series.is_whole
    ]
    scored = []
    for key, series in found.items():
        if key[1] or not series.is_whole or key[2] or min(series.numbers, default=-1) < 0:
            continue
        own = series.within(set(series.rows))
        went = course(own if own.rows else series, lines)
        if went.down and named(key[0], "step") is not None:
            anew = max((_restarts_with(series, epoch, lines)[0] for epoch in epochs), default=0)
            went = replace(went, down=max(went.down - anew, 0))
        points = _points(series, went, losses, found, lines)
        if points is not None:
            scored.append((points, len(series.rows), key, went))
    if not scored:
        return None
    most = max(count for _, count, *_ in scored)
    points, _, key, _ = max(scored, key=lambda one: (one[0] + _OF_MOST * one[1] / most, one[1]))
    if points < _LEAST:
        return None
    is_epoch = named(key[0], "epoch") is not None and named(key[0], "step") is None
    if is_epoch and (finer := _within_epochs(found, key, losses, lines)):
        key, is_epoch = finer, False
    epoch = None if is_epoch else _epoch(found, key, lines)
    sure = 0 if points >= _LEAST + 2 else 1
    first = 0
    if epoch:
        smallest = int(min(found[epoch].numbers))
        first = smallest if smallest in (0, 1) else 0
        total = found.get((epoch[0], "of", epoch[2]))
        if smallest > 1 and total and max(found[epoch].numbers) >= max(total.numbers):
            first = 1
    return Counter(key, epoch, first, is_epoch, sure, "epochs" if is_epoch else "steps")


def _within_epochs(found: Mapping[Key, Series], epoch: Key, losses: set[int], lines: Sequence[Line]) -> Key | None:
    """The series without a name that counts within each epoch: `[Epoch 2/50][ 100:391] Loss`, `Epoch: [2][100] Loss`.

    It counts up to the same total, or begins anew with nearly every epoch from a first value that few lines have.
    """
    for key, series in found.items():
        if key[1] or not is_unnamed(key[0]) or not series.is_whole:
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


def has_losses(found: Mapping[Key, Series]) -> bool:
    """Whether lines of the log print losses of its training, by a name that is sure, as often as steps are printed."""
    return any(
        not key[1] and named(key[0], "loss") == 0 and sum(one.split != "eval" for one in series.fields) >= _OFTEN
        for key, series in found.items()
    )


def prints_losses(found: Mapping[Key, Series]) -> bool:
    """Whether lines of the log may print losses of its training."""
    return len(_loss_rows(found)) >= _OFTEN


def losses_are_elsewhere(found: Mapping[Key, Series], key: Key, lines: Sequence[Line]) -> bool:
    """Whether a log prints losses, and hardly any of them beside or below the values of a key."""
    rows, losses = set(found[key].rows), _loss_rows(found)
    is_beside = len(rows & losses) > (1 - _NEARLY_ALL) * len(losses)
    return len(losses) >= _OFTEN and not is_beside and not _alternate(rows, losses, lines)


def _loss_rows(found: Mapping[Key, Series]) -> set[int]:
    return {
        row
        for key, series in found.items()
        if not key[1] and named(key[0], "loss") is not None
        for row, one in zip(series.rows, series.fields, strict=True)
        if one.split != "eval"
    }


def _points(
    series: Series, went: Course, losses: set[int], found: Mapping[Key, Series], lines: Sequence[Line]
) -> float | None:
    """How much speaks for a series as the counter; None where it cannot be one."""
    label = series.label
    step, epoch = named(label, "step"), named(label, "epoch")
    has_total = (label, "of", series.key[2]) in found
    is_other = any(sure < _VAGUE for _, sure in columns_of(label))
    if step is None and epoch is None and (is_other or not set(label.split()).isdisjoint(_NEVER)):
        return None
    if went.distinct > 1 and _stride(series) >= _SAMPLES:
        return None
    if went.moves >= _MANY and went.rising < 0.5:
        return None
    if went.distinct < 2 and (step or 0) > 0:
        return None
    points = 0.0
    if step is not None:
        points += 3.0 - 0.5 * step
    elif epoch is not None:
        points += 0.5
    elif not is_unnamed(label):
        points -= 1.0
    points += 1.5 if has_total else 0.0
    if went.moves >= _MANY:
        points += 2.0 if went.rising >= 0.9 else 1.0
        points += 0.5 if went.down == 0 else 0.0
        points -= 1.0 if went.same > went.moves * 4 else 0.0
    elif went.distinct >= 2:
        points += 1.0 if went.down == 0 else 0.0
    rows = set(series.rows)
    if is_unnamed(label) and rows.isdisjoint(losses):
        is_of_steps = _alternate(rows, losses, lines) if losses else _is_in_epochs(rows, found)
        if not (has_total and is_of_steps):
            return None  # a bar of anything
    points += 2.5 * len(rows & losses) / len(rows)
    if losses and rows.isdisjoint(losses):
        is_counter = step is not None or epoch is not None or is_unnamed(label)
        points += 1.5 if is_counter and _alternate(rows, losses, lines) else -1.5
    points += min(math.log10(len(rows)), 3) / 2
    return points


def _is_in_epochs(rows: set[int], found: Mapping[Key, Series]) -> bool:
    """Whether each of some lines has the number of an epoch, and of how many: `Epoch 2/50:  10%|#  | 39/391 [..]`."""
    return any(
        named(label, "epoch") == 0 and not role and (label, "of", unit) in found and rows <= set(series.rows)
        for (label, role, unit), series in found.items()
    )


def _alternate(rows: set[int], losses: set[int], lines: Sequence[Line]) -> bool:
    """Whether below nearly each of some lines there is one of a loss before the next, and none above the first.

    Lines are left out between two blocks: what a block begins with may belong to a line that is.
    """
    if len(rows) < _MANY or min(losses) < min(rows):
        return False
    followed = open_ = more = 0
    last: tuple[int, bool] | None = None  # block of the last counter, and whether a loss has followed it
    for row in sorted(rows | losses):
        block = lines[row].block
        if row in rows:
            open_ += last is not None and last[0] == block and not last[1]
            last = block, False
        elif last is not None and last[0] == block:
            more += last[1]
            followed += not last[1]
            last = block, True
    is_each = followed >= _NEARLY_ALL * (followed + open_)
    return followed > 0 and is_each and more <= (1 - _NEARLY_ALL) * followed


def _stride(series: Series) -> float:
    """The smallest distance between two of its values."""
    values = sorted(set(series.numbers))
    return min(after - before for before, after in pairwise(values))


def _epoch(found: Mapping[Key, Series], key: Key, lines: Sequence[Line]) -> Key | None:
    """The epoch's series, where the counter begins anew with each epoch, or would: the last one is known."""
    counter = found[key]
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
