"""Lines of an evaluation that look like those of steps: `step 10/88 - loss: 0.13` below `Eval begin...`.

They count up to another total, or are indented below a line that names an evaluation and ends in a colon.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sweepscope.pipeline.logs.inference.milestones import form
from sweepscope.pipeline.logs.inference.series import Line
from sweepscope.pipeline.logs.synonyms import EVALUATION

_NEARLY_ALL = 0.9
"""Of the stretches of such lines, that stand below a heading of an evaluation."""

_MOST_CHARS = 60
"""Of a heading; longer ones are sentences."""

_Total = tuple[str, float]
"""Label of a counter, and the number that it counts up to."""


def with_evaluations(lines: Sequence[Line], rows: Sequence[tuple[int, str, int]]) -> list[Line]:
    """The lines, those of an evaluation marked as such, of which the line itself does not tell.

    Args:
        lines: the sample, as far as it has values.
        rows: `line_no`, `text` and `block` of the whole sample, in order.
    """
    inner = _indented(rows)
    return [_marked(one) if one.number in inner else one for one in _with_other_totals(lines, rows)]


def _indented(rows: Sequence[tuple[int, str, int]]) -> set[int]:
    """Numbers of the lines that are indented below `Evaluation:`, up to the first that is not.

    Those that look like them are of an evaluation, too, as where the sample has left out their heading, or another
    process has printed something between.
    """
    found: set[int] = set()
    heading: tuple[int, bool] | None = None  # its block, and whether it names an evaluation
    for number, text, block in rows:
        if text[:1].isspace() or not text.strip():
            found |= {number} if heading == (block, True) else set()
        else:
            is_heading = text.rstrip().endswith(":") and len(text) <= _MOST_CHARS
            heading = block, is_heading and EVALUATION.search(text.lower()) is not None
    if not found:
        return found
    forms = {number: form(text) for number, text, _ in rows}
    every, inner = Counter(forms.values()), Counter(forms[number] for number in found)
    return found | {number for number, one in forms.items() if inner[one] >= _NEARLY_ALL * every[one]}


def _marked(line: Line) -> Line:
    return replace(line, fields=tuple(replace(one, split="eval") for one in line.fields))


def _with_other_totals(lines: Sequence[Line], rows: Sequence[tuple[int, str, int]]) -> list[Line]:
    """The lines, those marked that count up to another total than most, below a line that names an evaluation."""
    counts: dict[str, Counter[float]] = {}
    for line in lines:
        for label, total in _totals(line):
            counts.setdefault(label, Counter())[total] += 1
    usual = {label: seen.most_common(1)[0][0] for label, seen in counts.items() if len(seen) > 1}
    if not usual:
        return list(lines)
    others = {line.number: {one for one in _totals(line) if usual.get(one[0], one[1]) != one[1]} for line in lines}
    marked = _below_headings(others, rows)
    return [_marked(line) if others[line.number] & marked else line for line in lines]


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
