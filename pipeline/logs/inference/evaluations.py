"""Lines of an evaluation that look like those of steps: `step 10/88 - loss: 0.13` below `Eval begin...`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sweepscope.pipeline.logs.inference.series import Line
from sweepscope.pipeline.logs.synonyms import EVALUATION

_NEARLY_ALL = 0.9
"""Of the stretches of such lines, that stand below a heading of an evaluation."""

_Total = tuple[str, float]
"""Label of a counter, and the number that it counts up to."""


def with_evaluations(lines: Sequence[Line], rows: Sequence[tuple[int, str, int]]) -> list[Line]:
    """The lines, those of an evaluation marked as such: they count up to another total, below a line that names it.

    Args:
        lines: the sample, as far as it has values.
        rows: `line_no`, `text` and `block` of the whole sample, in order.
    """
    counts: dict[str, Counter[float]] = {}
    for line in lines:
        for label, total in _totals(line):
            counts.setdefault(label, Counter())[total] += 1
    usual = {label: seen.most_common(1)[0][0] for label, seen in counts.items() if len(seen) > 1}
    if not usual:
        return list(lines)
    others = {line.number: {one for one in _totals(line) if usual.get(one[0], one[1]) != one[1]} for line in lines}
    marked = _below_headings(others, rows)
    return [
        replace(line, fields=tuple(replace(one, split="eval") for one in line.fields))
        if others[line.number] & marked
        else line
        for line in lines
    ]


def _totals(line: Line) -> Iterator[_Total]:
    """Those of which the line itself does not tell whose they are."""
    for one in line.fields:
        if one.role == "of" and one.number is not None and not one.split:
            yield one.label, one.number


def _below_headings(others: dict[int, set[_Total]], rows: Sequence[tuple[int, str, int]]) -> set[_Total]:
    """Those of the totals, by line, whose stretches stand below headings of evaluations, as far as these are known."""
    seen: Counter[_Total] = Counter()
    named: Counter[_Total] = Counter()
    above: tuple[int, set[_Total], str] | None = None
    for number, text, block in rows:
        mine = others.get(number, set())
        if above and above[0] == block:
            begun = mine - above[1]
            seen.update(begun)
            named.update(begun if EVALUATION.search(above[2].lower()) else ())
        if text.strip():
            above = block, mine, text
    return {total for total, count in seen.items() if named[total] >= _NEARLY_ALL * count}
