"""Lines of a log that are looked at: from everywhere, and few of the redraws of a bar that say nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from sweepscope.pipeline.logs.synonyms import LOSS_VALUES

ENOUGH = 900
"""Lines with numbers that are looked at."""
_STRETCH = 20
_DIGIT = re.compile("[0-9]")
_BAR = re.compile(r"\d{1,3}%\|[^|]*\| *[\d.]+\w?/[\d.]+\w? \[[^\]]*\]\s*$")
"""A bar with nothing but its count, as redrawn many times a second."""
_LOSS = re.compile(LOSS_VALUES)
_LEAST = 10

Row = tuple[int, str, int, int | None, datetime | None]
"""Number, text, block, rank and time of a line."""


def sampled(rows: Sequence[Row]) -> list[Row]:
    """Lines with numbers: those at the begin and the end, and stretches from between; each stretch is a block."""
    numbered = [row for row in rows if _DIGIT.search(row[1])]
    if len(numbered) > ENOUGH:
        numbered = _without_redraws(numbered)
    if len(numbered) <= ENOUGH:
        return numbered
    head, tail = numbered[: ENOUGH // 3], numbered[-ENOUGH // 6 :]
    middle = numbered[len(head) : -len(tail)]
    count = ENOUGH // 2 // _STRETCH
    kept = list(head)
    for at in range(count):
        begin = at * len(middle) // count
        kept += [(number, text, -at - 1, rank, ts) for number, text, _, rank, ts in middle[begin : begin + _STRETCH]]
    return kept + tail


def _without_redraws(rows: list[Row]) -> list[Row]:
    """The lines without those of a bar between its first and its last, where others print the losses.

    They would be nearly all of the sample.
    """
    is_bar = [_BAR.search(text) is not None for _, text, *_ in rows]
    losses = sum(not bar and _LOSS.search(text) is not None for bar, (_, text, *_) in zip(is_bar, rows, strict=True))
    if losses < _LEAST:
        return rows
    last = len(rows) - 1
    return [
        row for at, row in enumerate(rows) if not (is_bar[at] and 0 < at < last and is_bar[at - 1] and is_bar[at + 1])
    ]
