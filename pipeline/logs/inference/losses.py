"""Where a log prints its losses, and whether something counts them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sweepscope.pipeline.logs.inference.naming import named
from sweepscope.pipeline.logs.inference.series import Key, Line, Series

_OFTEN = 10
_NEARLY_ALL = 0.9
_MANY = 3
"""Lines from which on their order tells something."""
_VAGUE = 3
"""Names that may be those of other quantities, too."""


def is_loss(series: Series) -> bool:
    """Whether a series may be the losses of a training.

    They have no unit, as `Training:  25%|` of a bar has; and where their name says little, they have a fraction, as
    `Train: 4622, Val: 924` has not.
    """
    label, role, quantity = series.key
    sure = named(label, "loss")
    return not role and not quantity and sure is not None and not (sure >= _VAGUE and series.is_whole)


def has_losses(found: Mapping[Key, Series]) -> bool:
    """Whether lines of the log print losses of its training, by a name that is sure, as often as steps are printed."""
    return any(
        is_loss(series)
        and named(series.label, "loss") == 0
        and sum(one.split != "eval" for one in series.fields) >= _OFTEN
        for series in found.values()
    )


def prints_losses(found: Mapping[Key, Series]) -> bool:
    """Whether lines of the log may print losses of its training."""
    return len(loss_rows(found)) >= _OFTEN


def losses_are_elsewhere(found: Mapping[Key, Series], key: Key, lines: Sequence[Line]) -> bool:
    """Whether a log prints losses, and hardly any of them beside or below the values of a key."""
    rows, losses = set(found[key].rows), loss_rows(found)
    is_beside = len(rows & losses) > (1 - _NEARLY_ALL) * len(losses)
    return len(losses) >= _OFTEN and not is_beside and not alternate(rows, losses, lines)


def loss_rows(found: Mapping[Key, Series]) -> set[int]:
    """Rows in which a loss of the training may stand."""
    return {
        row
        for series in found.values()
        if is_loss(series)
        for row, one in zip(series.rows, series.fields, strict=True)
        if one.split != "eval"
    }


def has_measures(rows: set[int], found: Mapping[Key, Series]) -> bool:
    """Whether in each of some lines stands a number with a fraction: `[epoch 3] mIoU=0.42`."""
    return any(not role and not one.is_whole and rows <= set(one.rows) for (_, role, _), one in found.items())


def is_above_single(rows: set[int], found: Mapping[Key, Series]) -> bool:
    """Whether a line stands above the only loss of a log, or one of each name: the first step of a log that is cut."""
    losses = [series.rows for series in found.values() if is_loss(series)]
    return len(rows) == 1 and bool(losses) and all(len(own) == 1 and min(own) > min(rows) for own in losses)


def alternate(rows: set[int], losses: set[int], lines: Sequence[Line]) -> bool:
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
