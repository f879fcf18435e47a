"""How much speaks for a value as the counter of the steps: its name, its course, and losses beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from sweepscope.pipeline.logs.inference.labels import is_unnamed
from sweepscope.pipeline.logs.inference.losses import alternate, has_measures, is_above_single
from sweepscope.pipeline.logs.inference.naming import columns_of, named
from sweepscope.pipeline.logs.inference.series import Course, Key, Line, Series

_MANY = 3
"""Changes from which on the course of a series tells something."""
_VAGUE = 3
"""Names that only may be another column's number a trainer's lines, too: `Train: [5/150] Loss 2.31`."""
_OPEN_BAR = "> it"
_NEARLY_ALL = 0.9
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


def points_of(
    series: Series, went: Course, losses: set[int], found: Mapping[Key, Series], lines: Sequence[Line]
) -> float | None:
    """How much speaks for a series as the counter; None where it cannot be one."""
    label = series.label
    step, epoch = named(label, "step"), named(label, "epoch")
    has_total = (label, "of", series.key[2]) in found
    is_other = any(sure < _VAGUE for _, sure in columns_of(label))
    is_never = step is None and epoch is None and (is_other or not set(label.split()).isdisjoint(_NEVER))
    is_once_an_epoch = step == 0 and _are_of_epochs(set(series.rows), found)
    is_of_samples = went.distinct > 1 and _stride(series) >= _SAMPLES and not is_once_an_epoch
    if is_never or is_of_samples or (went.moves >= _MANY and went.rising < 0.5):
        return None
    rows = set(series.rows)
    is_heading = has_total and is_above_single(rows, found)
    if went.distinct < 2 and (step or 0) > 0 and not is_heading:
        return None
    if label == _OPEN_BAR and not has_total and rows.isdisjoint(losses):
        return None  # of anything, too: `285385it [00:09, 31705.27it/s]`
    if is_unnamed(label) and rows.isdisjoint(losses):
        is_of_steps = alternate(rows, losses, lines) if losses else _is_in_epochs(rows, found)
        if not (has_total and is_of_steps):
            return None  # a bar of anything
    points = _by_name(series, step, epoch, has_total=has_total) + _by_course(went)
    points += 2.5 * len(rows & losses) / len(rows)
    if losses and rows.isdisjoint(losses):
        is_counter = step is not None or epoch is not None or is_unnamed(label)
        points += 1.5 if is_counter and (is_heading or alternate(rows, losses, lines)) else -1.5
    elif not losses and epoch == 0 and has_measures(rows, found):
        points += 1.0
    points += min(math.log10(len(rows)), 3) / 2
    return points


def _by_name(series: Series, step: int | None, epoch: int | None, *, has_total: bool) -> float:
    points = 0.0
    if step is not None:
        points += 3.0 - 0.5 * step
    elif epoch is not None:
        points += 0.5
    elif not is_unnamed(series.label):
        points -= 1.0
    return points + (1.5 if has_total else 0.0)


def _by_course(went: Course) -> float:
    points = 0.0
    if went.moves >= _MANY:
        points += 2.0 if went.rising >= 0.9 else 1.0
        points += 0.5 if went.down == 0 else 0.0
        points -= 1.0 if went.same > went.moves * 4 else 0.0
    elif went.distinct >= 2:
        points += 1.0 if went.down == 0 else 0.0
    return points


def _is_in_epochs(rows: set[int], found: Mapping[Key, Series]) -> bool:
    """Whether each of some lines has the number of an epoch, and of how many: `Epoch 2/50:  10%|#  | 39/391 [..]`."""
    return any(
        named(label, "epoch") == 0 and not role and (label, "of", unit) in found and rows <= set(series.rows)
        for (label, role, unit), series in found.items()
    )


def _are_of_epochs(rows: set[int], found: Mapping[Key, Series]) -> bool:
    """Whether the number of an epoch stands in each of some lines, another one in nearly all: its steps are many."""
    return any(
        named(key[0], "epoch") == 0
        and not key[1]
        and series.is_whole
        and rows <= set(series.rows)
        and len(set(series.numbers)) >= _NEARLY_ALL * len(rows)
        for key, series in found.items()
    )


def _stride(series: Series) -> float:
    """The smallest distance between two of its values."""
    values = sorted(set(series.numbers))
    return min(after - before for before, after in pairwise(values))
