"""The line with which each launch of a script begins in a log that all append to, by the silence in front of it.

Python's `logging` appends to the file of a FileHandler, so that a script which is started again and again, and most
often dies before its first step, leaves one log of many launches.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from statistics import median

from sweepscope.pipeline.logs.inference.headings import NO_HEADING, bare, number_of_step
from sweepscope.pipeline.logs.inference.milestones import form
from sweepscope.pipeline.logs.inference.step_rules import StepRule

_Row = tuple[int, str, int, int | None, datetime | None]
_FIRST_LINES = 12
"""Among which such a line stands first: the code of the very first launch may have printed another one."""
_LETTERS = re.compile(r"[^\W\d_]")
_LEAST_LETTERS = 6
_LEAST_SILENCE_S = 5.0
_LONGER, _MUCH_LONGER = 5, 20
"""Times as long as between most lines: the silence in front of each launch, and in front of most of them. A person or
a scheduler takes as long to start the next one.
"""
_MOSTLY = 0.95
"""Share of the launches with a long silence in front of them: one may be started right after the one before failed."""
_ALIKE = 0.5
"""Of the launches that print more than the line, the share that go on as another one does."""
_DATED = 0.8
"""Share of lines with a time: a job's output, to which a driver may start process after process, has others, too."""
_MOST_ABOVE = 2
"""Lines without words, such as rules, above it."""


def restart_line(rows: Sequence[_Row], rule: StepRule | None) -> str | None:
    """Its text without what a logger puts in front of it; None where no line is one.

    It stands there again word by word, each time behind a silence, and goes on alike; steps below it do not count on
    from those above, as those of an epoch do.

    Args:
        rows: `line_no`, `text`, `block`, `rank`, `ts` of the sample, from the begin of the log.
        rule: of the lines of steps; None where there are none.
    """
    printed = [row for row in rows if row[1].strip()]
    dated = [row for row in printed if row[4] is not None]
    if len(dated) < _DATED * len(printed):
        return None
    silences_s = [_silence_s(before, after) for before, after in pairwise(dated)]
    known = [silence for silence in silences_s if silence is not None]
    if not known:
        return None
    usual_s = median(known)
    above_s = [None, *silences_s]
    texts = [bare(row[1]) for row in dated]
    for first in dict.fromkeys(texts[:_FIRST_LINES]):
        at = [index for index, text in enumerate(texts) if text == first]
        if len(at) < 2 or len(_LETTERS.findall(first)) < _LEAST_LETTERS or NO_HEADING.search(first):
            continue
        begins = [_with_rules_above(texts, index) for index in at]
        parts = [dated[begin:end] for begin, end in zip(at, [*at[1:], len(dated)], strict=True)]
        late = [silence for begin in begins if (silence := above_s[begin]) is not None]
        if _are_late(late, usual_s) and _go_on_alike(parts) and not _count_on(parts, rule):
            return first
    return None


def _are_late(silences_s: Sequence[float], usual_s: float) -> bool:
    """Whether nearly all are long. A negative one, between logs that were put together, is as good as none."""
    forward = [silence for silence in silences_s if silence >= 0]
    long = [silence for silence in forward if silence >= max(_LEAST_SILENCE_S, _LONGER * usual_s)]
    return bool(long) and len(long) >= _MOSTLY * len(forward) and median(forward) >= _MUCH_LONGER * usual_s


def _silence_s(before: _Row, after: _Row) -> float | None:
    """Seconds between two lines; None where lines between them may have been left out of the sample."""
    if before[2] != after[2] or before[4] is None or after[4] is None:
        return None
    return (after[4] - before[4]).total_seconds()


def _with_rules_above(texts: Sequence[str], index: int) -> int:
    """Index of the first of the rules above a line, behind the name of a logger too: `__main__ - =====`."""
    begin = index
    while begin > 0 and index - begin < _MOST_ABOVE and not _LETTERS.search(texts[begin - 1].rpartition(" - ")[2]):
        begin -= 1
    return begin


def _go_on_alike(parts: Sequence[Sequence[_Row]]) -> bool:
    """Whether most launches that print more than their first line go on as another one does."""
    seconds = [form(bare(part[1][1])) for part in parts if len(part) > 1]
    return sum(seconds.count(second) > 1 for second in seconds) >= _ALIKE * len(seconds)


def _count_on(parts: Sequence[Sequence[_Row]], rule: StepRule | None) -> bool:
    """Whether the steps of each part go on right where those of the part above ended."""
    own = [[n for row in part if (n := _number(row[1], rule)) is not None] for part in parts]
    own = [numbers for numbers in own if numbers]
    pairs = [(above[-1], below[0]) for above, below in pairwise(own)]
    return bool(pairs) and all(above < below for above, below in pairs)


def _number(text: str, rule: StepRule | None) -> float | None:
    found = number_of_step(text, rule)
    try:
        return float(found[0].replace(",", "")) if found else None
    except ValueError:
        return None
