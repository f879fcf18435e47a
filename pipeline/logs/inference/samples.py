"""Counters of samples: `Train Epoch: 2 [6400/60000 (11%)]` of PyTorch's examples shows those that a rank has seen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from sweepscope.pipeline.logs.declared.rules import BATCH_OF
from sweepscope.pipeline.logs.inference.counter import Counter, named
from sweepscope.pipeline.logs.inference.series import Key, Line, Series

_LEAST = 3
"""Values that have to be whole batches."""
_ROUNDED = 2.0
"""Percentage points by which a printed share may differ from that of the counter."""
_SHARE = re.compile(r"\s*\(\s*(\d+(?:\.\d+)?)\s*%\s*\)")


def in_samples(
    counter: Counter, found: Mapping[Key, Series], lines: Sequence[Line], settings: Mapping[str, str]
) -> Counter:
    """The counter, of samples where it is no named one, a share follows its total and it moves by whole batches.

    Args:
        counter: what numbers the lines.
        found: all series.
        lines: the sample.
        settings: believed values by column; without a batch, the counter stays what it is.
    """
    total = found.get((counter.key[0], "of", counter.key[2]))
    if total is None or named(counter.key[0], "step") is not None:
        return counter
    shares = dict(_shares(found[counter.key], total, lines))
    values = {one.number for row, one in found[counter.key].by_row.items() if row in shares and one.number}
    if len(values) < _LEAST:
        return counter
    for counts, batch in BATCH_OF.items():
        size = settings.get(batch, "")
        if size.isdigit() and int(size) > 1 and all(value % int(size) == 0 for value in values):
            is_of_all = all(abs(printed - own) <= _ROUNDED for printed, own in shares.values())
            return replace(counter, counts=counts, has_total=is_of_all)
    return counter


def _shares(counted: Series, total: Series, lines: Sequence[Line]) -> list[tuple[int, tuple[float, float]]]:
    """Row, and the share of the total as it is printed behind it and as it follows from the two numbers, in percent."""
    found = []
    for row, whole in total.by_row.items():
        one, hit = counted.by_row.get(row), _SHARE.match(lines[row].text, whole.stop)
        if one and one.number is not None and whole.number and hit:
            found.append((row, (float(hit[1]), 100 * one.number / whole.number)))
    return found
