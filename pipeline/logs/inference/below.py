"""Values of a step in the lines below the one with its number, as keys with values."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from sweepscope.pipeline.logs.declared.rules import SIGNS_BELOW
from sweepscope.pipeline.logs.inference.columns import LOW, Guess, of_series
from sweepscope.pipeline.logs.inference.counter import Counter
from sweepscope.pipeline.logs.inference.fields import Field
from sweepscope.pipeline.logs.inference.series import Key, Line, Series, course
from sweepscope.pipeline.logs.synonyms import EVALUATION

_LEAST_SHARE = 0.5
"""Of the steps that have the value, from its first on: a throughput is one of the steps before."""
_BEGUN = 0.25
"""Of the steps, from its first on."""
_ONCE = 0.7
"""Of the values below their step that are its only one: an evaluation may print some again."""
_MOST_SURE = 2
_NOT_BELOW = ("step", "epoch", "rank")
_KEY = re.compile(rf"([A-Za-z][^:=\"'|│]*?)[\"']?\s*{SIGNS_BELOW}\s*[\"']?$")


def find_below(found: Mapping[Key, Series], counter: Counter, lines: Sequence[Line]) -> dict[str, Guess]:
    """Printed key to the column that it is, of every value that stands once below most steps and never above the first.

    Args:
        found: all series.
        counter: what numbers the steps.
        lines: the sample.
    """
    steps = sorted(row for row, one in found[counter.key].by_row.items() if one.split != "eval")
    chosen: dict[str, tuple[str, Guess]] = {}
    for key, every in found.items():
        series = every.within(set(every.rows))
        if key[1] or EVALUATION.search(key[0]) or not _is_below(series, steps, lines):
            continue
        for guess in of_series(series, course(series, lines)):
            before = chosen.get(guess.column)
            is_good = guess.column not in _NOT_BELOW and guess.confidence != LOW and guess.word is not None
            if is_good and guess.sure <= _MOST_SURE and (before is None or guess.sure < before[1].sure):
                printed = _printed_key(series, lines)
                if printed:
                    chosen[guess.column] = (printed, guess)
    return dict(chosen.values())


def _is_below(series: Series, steps: Sequence[int], lines: Sequence[Line]) -> bool:
    """Whether the values stand in lines of their own, once behind nearly each step and none before the first.

    Lines are left out between two blocks: a value above the first step of a block is that of one that is left out.
    """
    if not set(series.rows).isdisjoint(steps):
        return False
    places = [(bisect_right(steps, row), row) for row in series.by_row]
    if not places or places[0][0] == 0:
        return False
    own = [place for place, row in places if lines[steps[place - 1]].block == lines[row].block]
    if not own:
        return False
    since = len(steps) - min(own) + 1
    is_usual = since >= _BEGUN * len(steps) and len(set(own)) >= _LEAST_SHARE * since
    return is_usual and len(set(own)) >= _ONCE * len(own)


def _printed_key(series: Series, lines: Sequence[Line]) -> str | None:
    """The key as it is printed, the same in all lines; None where it is no key."""
    keys = {_key_of(lines[row], one) for row, one in series.by_row.items()}
    return keys.pop() if len(keys) == 1 else None


def _key_of(line: Line, one: Field) -> str | None:
    hit = _KEY.search(line.text[line.begin : one.begin])
    return hit[1].strip() if hit else None
