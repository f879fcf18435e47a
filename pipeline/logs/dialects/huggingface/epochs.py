"""Steps of log dicts from their epochs, where no bar and no `logging_steps` tells them.

transformers/trainer.py: a dict's epoch is micro-batches done over those of an epoch, printed with two decimals (version
4), four significant digits (version 5) or in full. So steps go with epochs, off by what the rounding hides and by the
last, shorter accumulation of each epoch. A Trainer logs every `logging_steps` steps, with `logging_first_step` after
the first one, too: of the steps that the epochs allow, those in such a row are meant.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import lru_cache

from sweepscope.pipeline.logs.sidecars.speed_metrics import Span, rounded

_MOST_TRIED = 1000
_ROUND = (1000, 500, 250, 200, 100, 50, 25, 20, 10, 5, 2, 1)


@lru_cache(maxsize=4_096)  # with two decimals, many dicts have the same
def span_of(text: str) -> Span | None:
    """The epochs that are printed so, the first steps of many as `0.0`; None for what is no number.

    >>> span_of("'0.02078'"), span_of("0.5"), span_of("0.0")
    (Span(low=0.020775, high=0.020785), Span(low=0.495, high=0.505), Span(low=0.0, high=0.005))
    """
    bare = text.strip("'\"")
    try:
        value = float(bare)
    except ValueError:
        return None
    decimals = max(2, len(bare.partition(".")[2]))
    if not value:
        return Span(0.0, 0.5 * 10.0**-decimals)
    return rounded(value, 17, digits=4) if bare != text else rounded(value, decimals)


def steps_of(epochs: Sequence[Span | None], *, steps: int, over: Span) -> tuple[list[int], str] | None:
    """The step of each dict and a word of vocab.STEP_BASIS; None where the epochs do not rise.

    Args:
        epochs: of the dicts, in order.
        steps: a known number of steps.
        over: the epochs that those took.
    """
    known = [epoch for epoch in epochs if epoch is not None]
    rises = all(before.low < after.low for before, after in itertools.pairwise(known))
    if len(known) < len(epochs) or not known or not rises or over.low <= 0:
        return None
    slack = 1 if over.high > 1 else 0
    # An epoch of the dict itself is rounded as its neighbours are: its steps are `steps` exactly.
    low = [max(epoch.low * steps / over.high - slack, 1.0) for epoch in known]
    high = [min(epoch.high * steps / over.low + slack, float(steps)) for epoch in known]
    if any(most < least for least, most in zip(low, high, strict=True)):
        return None
    rows = [row for row in (_regular(low, high, 0, steps), _regular(low, high, 1, steps), _taken_up(low, high)) if row]
    if rows:
        found, basis = rows[0]
        return found, basis if all(row == rows[0] for row in rows) else "epoch"
    if all(math.ceil(least) == math.floor(most) for least, most in zip(low, high, strict=True)):
        return [math.ceil(least) for least in low], "step"
    return [round((least + most) / 2) for least, most in zip(low, high, strict=True)], "epoch"


def _regular(low: Sequence[float], high: Sequence[float], first: int, steps: int) -> tuple[list[int], str] | None:
    """Steps every so many, behind `first` dicts of step 1.

    Of several possible intervals the one that ends at the known number of steps is meant, else the roundest.
    """
    if len(low) == first or any(most < 1 or least > 1 for least, most in zip(low[:first], high[:first], strict=True)):
        return None
    positions = range(1, len(low) - first + 1)
    fewest = max(math.ceil(least / position) for least, position in zip(low[first:], positions, strict=True))
    most = min(math.floor(limit / position) for limit, position in zip(high[first:], positions, strict=True))
    if fewest > most or most <= first:
        return None
    share, rest = divmod(steps, len(positions))
    round_one = next(unit * math.ceil(fewest / unit) for unit in _ROUND if unit * math.ceil(fewest / unit) <= most)
    every = share if not rest and fewest <= share <= most else round_one
    return [1] * first + [every * position for position in positions], "step" if fewest == most else "epoch"


def _taken_up(low: Sequence[float], high: Sequence[float]) -> tuple[list[int], str] | None:
    """Steps every so many from a later one on, as behind a checkpoint; the roundest interval where several fit."""
    more = len(low) - 1
    if more < 1:
        return None
    fewest, most = math.ceil((low[-1] - high[0]) / more), math.floor((high[-1] - low[0]) / more)
    fitting = []
    for every in range(max(fewest, 1), min(most, fewest + _MOST_TRIED) + 1):
        first = max(math.ceil(least / every) - position for position, least in enumerate(low))
        last = min(math.floor(limit / every) - position for position, limit in enumerate(high))
        fitting += [(every, start) for start in range(max(first, 1), last + 1)]
    if not fitting:
        return None
    every, start = max(fitting, key=lambda pair: next(unit for unit in _ROUND if pair[0] % unit == 0))
    return [every * (start + position) for position in range(len(low))], "step" if len(fitting) == 1 else "epoch"
