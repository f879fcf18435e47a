"""Losses that are printed without a name, as in `step 120: 3.2214` or `120 l:3.2214`: what comes down as a loss does.

A training's loss falls from about ln V, the surprise of a model that knows nothing, or less where it was trained
before; it is noisy on its way, falls ever more slowly, and does not reach 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from sweepscope.pipeline.logs.inference.labels import is_unnamed
from sweepscope.pipeline.logs.inference.losses import prints_losses
from sweepscope.pipeline.logs.inference.naming import NAMELESS_LOSS
from sweepscope.pipeline.logs.inference.series import Key, Line, Series

_LEAST = 20
"""Values from which on their course is one."""
_HIGHEST, _LOWEST = 14.0, 0.01
"""Nats: ln V of a vocabulary of a million; and what no training of a language model falls below."""
_DIGITS = 2
"""Behind the point, at least: fewer have percentages and seconds."""
_LETTER = re.compile(r"l|tr|trn|train(?:ing)?")
"""Names that say no more than that it is of the training."""
_PARTS = 5
_RESTARTS = 0.25
"""Of lines, the most at which steps begin anew."""
_SIGMAS = 4.0
_NOISE = 0.05
"""Of the changes from line to line, the least that go up: of a learning rate or a time left none do."""


def with_nameless_loss(lines: Sequence[Line], found: Mapping[Key, Series]) -> list[Line]:
    """The lines with the one series called a loss that behaves like one, where the log prints none by name.

    Args:
        lines: the sample.
        found: all of its series.
    """
    if prints_losses(found):
        return list(lines)
    alike = [key for key, series in found.items() if _may_be(key) and _comes_down(_by_step(series, lines))]
    if len(alike) != 1:
        return list(lines)
    key = alike[0]
    return [
        replace(one, fields=tuple(replace(own, label=NAMELESS_LOSS) if own.key == key else own for own in one.fields))
        for one in lines
    ]


def _may_be(key: Key) -> bool:
    label, role, quantity = key
    return not role and not quantity and (is_unnamed(label) or _LETTER.fullmatch(label) is not None)


def _by_step(series: Series, lines: Sequence[Line]) -> Series:
    """The values in the order of the first whole number of their lines, where that begins anew: of several launches."""
    counts = [
        next((one.number for one in lines[row].fields if one.is_whole and not one.role), None) for row in series.rows
    ]
    known = [count for count in counts if count is not None]
    falls = sum(after < before for before, after in pairwise(known))
    if len(known) < len(counts) or not 0 < falls <= _RESTARTS * len(known):
        return series
    order = sorted(range(len(known)), key=known.__getitem__)
    return Series(series.key, [series.rows[at] for at in order], [series.fields[at] for at in order])


def _comes_down(series: Series) -> bool:
    """Whether values fall from part to part, with noise, within what a loss may be."""
    numbers = series.numbers
    is_fine = median(len(one.text.partition(".")[2]) for one in series.fields) >= _DIGITS
    if series.is_whole or not is_fine or len(numbers) < max(_LEAST, 0.9 * len(series.fields)):
        return False
    if min(numbers) < _LOWEST or max(numbers) > _HIGHEST:
        return False
    size = len(numbers) // _PARTS
    parts = [numbers[at * size : (at + 1) * size] for at in range(_PARTS)]
    middles = [median(part) for part in parts]
    changes = [after - before for before, after in pairwise(numbers)]
    spread = median(abs(change) for change in changes) / size**0.5
    falls = all(after <= before + spread for before, after in pairwise(middles))
    slows = middles[0] - middles[1] >= (middles[-2] - middles[-1]) / 2 - _SIGMAS * spread
    is_noisy = sum(change > 0 for change in changes) >= _NOISE * len(changes)
    return falls and slows and is_noisy and middles[0] - middles[-1] > _SIGMAS * spread
