"""Values of a step in the lines below the one with its number, as keys with values."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

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
_RATES = ("tokens_per_s", "tokens_per_s_per_gpu", "tflops", "mfu", "mem_allocated", "mem_reserved")
"""Rates and levels, which are the same of one step and of several: below every n-th, nobody knows which it is."""
_FEWEST_OF_SEVERAL = 3
"""Values below every n-th step: two have one distance between them, which shows nothing."""
_KEY = re.compile(rf"([A-Za-z][^:=\"'|│]*?)[\"']?\s*{SIGNS_BELOW}\s*[\"']?$")


def find_below(
    found: Mapping[Key, Series], counter: Counter, lines: Sequence[Line], *, has_loss: bool = False
) -> dict[str, Guess]:
    """Printed key to the column that it is, of every value that stands once below most steps, or every n-th.

    None stands above the first.

    Args:
        found: all series.
        counter: what numbers the steps.
        lines: the sample.
        has_loss: the steps have their loss beside their number; how fast they were may stand below all the same.
    """
    steps = sorted(row for row, one in found[counter.key].by_row.items() if one.split != "eval")
    chosen: dict[str, tuple[str, Guess]] = {}
    for key, every in found.items():
        series = every.within(set(every.rows))
        if key[1] or EVALUATION.search(key[0]) or (places := _places(series, steps, lines)) is None:
            continue
        is_each = _is_below_each(places, len(steps))
        if not is_each and not _is_below_every_nth(places):
            continue
        if has_loss and EVALUATION.search(lines[series.rows[0]].text.lower()):
            continue
        for guess in of_series(series, course(series, lines)):
            before = chosen.get(guess.column)
            is_good = guess.column not in _NOT_BELOW and guess.confidence != LOW and guess.word is not None
            is_good &= (is_each and (not has_loss or guess.column == "step_time")) or guess.column in _RATES
            if is_good and guess.sure <= _MOST_SURE and (before is None or guess.sure < before[1].sure):
                printed = _printed_key(series, lines)
                if printed:
                    chosen[guess.column] = (printed, guess)
    return dict(chosen.values())


def _places(series: Series, steps: Sequence[int], lines: Sequence[Line]) -> list[int] | None:
    """The step above each value, counted from 1; None where values stand in lines of steps, or above the first.

    Lines are left out between two blocks: a value above the first step of a block is that of one that is left out.
    """
    if not set(series.rows).isdisjoint(steps):
        return None
    places = [(bisect_right(steps, row), row) for row in series.by_row]
    if not places or places[0][0] == 0:
        return None
    return [place for place, row in places if lines[steps[place - 1]].block == lines[row].block] or None


def _is_below_each(places: Sequence[int], steps: int) -> bool:
    """Whether the values stand once behind nearly each step, from their first on."""
    since = steps - min(places) + 1
    is_usual = since >= _BEGUN * steps and len(set(places)) >= _LEAST_SHARE * since
    return is_usual and len(set(places)) >= _ONCE * len(places)


def _is_below_every_nth(places: Sequence[int]) -> bool:
    """Whether the values stand once behind every n-th step, but where lines are left out."""
    gaps = [after - before for before, after in pairwise(places)]
    usual = max(set(gaps), key=gaps.count, default=0)
    return len(places) >= _FEWEST_OF_SEVERAL and usual > 1 and gaps.count(usual) >= _ONCE * len(gaps)


def _printed_key(series: Series, lines: Sequence[Line]) -> str | None:
    """The key as it is printed, the same in all lines; None where it is no key."""
    keys = {_key_of(lines[row], one) for row, one in series.by_row.items()}
    return keys.pop() if len(keys) == 1 else None


def _key_of(line: Line, one: Field) -> str | None:
    hit = _KEY.search(line.text[line.begin : one.begin])
    return hit[1].strip() if hit else None
