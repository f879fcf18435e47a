"""Tables without a header: lines that state a layout and what it came to, as the driver of a sweep prints them. Pure.

`[ 3/12] tp=8 pp=1 mbs=2 ... 21.4 s/step, 7,655 tok/s/gpu, 41.2% MFU, peak 96 GB`, `tp2-pp1-mbs4: OOM`. Each value
stands under its own name, or under the unit behind it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from sweepscope.pipeline.logs.result_tables.cells import composed
from sweepscope.pipeline.logs.result_tables.endings import ending
from sweepscope.pipeline.logs.result_tables.meanings import RESULTS, meanings
from sweepscope.pipeline.logs.result_tables.records import Row
from sweepscope.pipeline.logs.synonyms import words

_LEAST_LAYOUT = 2
_LEAST_LINES = 3
_DIFFERENT = 0.8
"""Of the layouts, at least: the lines of a step repeat one."""
_MOST_CHARS = 500
_NUMBER = r"\d[\d,]*(?:\.\d+)?(?:[kKM](?![A-Za-z]))?"
_UNIT = r"[A-Za-z]+(?: ?(?:/|per) ?[A-Za-z]+){0,2}"
_OF_VALUE = r"(?:ms|s|secs?|seconds|min|h|[KMGT]i?B|tok\S*|tflop\S*|steps?/s|it/s)"
_VALUE = rf"{_NUMBER}\s?%|{_NUMBER}(?: (?i:{_OF_VALUE}))?(?=[\s,;:|)\]]|$)|[^\s,;|()]+"
_PAIR = re.compile(rf"(?<![\w./-])(?P<name>[A-Za-z][\w./-]{{0,39}})\s?[=:]\s?(?P<value>{_VALUE})")
_LABEL = r"(?:(?P<label>[A-Za-z][\w-]*(?: [A-Za-z][\w-]*)?) )?"
_AMOUNT = re.compile(rf"(?<![\w./=-]){_LABEL}(?P<number>{_NUMBER})\s?(?P<unit>%(?: {_UNIT})?|{_UNIT})(?!\w)")
_DEGREE = re.compile(r"(?i)(?<![\w./-])(?P<name>[tpdce]p|mbs|gas|gbs)[ ]?(?P<value>\d{1,5})(?![\w.])")
_WORD = re.compile(r"[A-Za-z][\w.-]*\w")
_OF_STEPS = {"step", "iter", "iteration", "it", "epoch", "loss", "train loss", "lr", "grad norm"}
"""Names in a line of a step."""
_OF_MEMORY = re.compile(r"(?i)[KMGT]i?B")
_NO_RESULTS = (None, "running", "completed")
"""Endings that a line may announce before a run, or of another than the one that it names."""
STATUS = "status"


def result_lines(lines: Sequence[tuple[int, str]]) -> list[tuple[Row, ...]]:
    """Tables of a header and a row for each line that states a layout and its result, those of one form together.

    Args:
        lines: of a text, with their numbers.
    """
    by_form: dict[frozenset[str], list[tuple[int, dict[str, str]]]] = {}
    for number, text in lines:
        layout, results = _of_line(text)
        if results and layout:
            by_form.setdefault(frozenset(layout), []).append((number, {**layout, **results}))
    return [table for form, rows in by_form.items() if (table := _table(form, rows))]


def _table(form: frozenset[str], rows: Sequence[tuple[int, Mapping[str, str]]]) -> tuple[Row, ...] | None:
    distinct = {tuple(cells.get(name, "") for name in sorted(form)) for _, cells in rows}
    if len(rows) < _LEAST_LINES or len(distinct) < _DIFFERENT * len(rows):
        return None
    header = list(dict.fromkeys(name for _, cells in rows for name in cells))
    body = [(number, [cells.get(name, "") for name in header]) for number, cells in rows]
    return (rows[0][0], header), *body


def _of_line(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """The layout that a line states and its results, by name; both empty for another line."""
    nothing: tuple[dict[str, str], dict[str, str]] = {}, {}
    if len(text) > _MOST_CHARS:
        return nothing
    layout: dict[str, str] = {}
    cells: dict[str, str] = {}
    whole = next((one for one in _WORD.findall(text) if len(composed(one)) >= _LEAST_LAYOUT), None)
    rest = text.replace(whole, " " * len(whole)) if whole else text
    for hit in (*_PAIR.finditer(rest), *_DEGREE.finditer(rest)):
        name, value = hit["name"], hit["value"].rstrip(".,:")
        if words(name) in _OF_STEPS:
            return nothing
        is_layout = bool(composed(f"{words(name).replace(' ', '')}{value}"))
        (layout if is_layout else cells).setdefault(name, value)
    layout |= {name: str(value) for name, value in composed(whole or "").items() if name not in layout}
    if len(layout) < _LEAST_LAYOUT:
        return nothing
    for name, value in _amounts(_PAIR.sub(lambda hit: " " * len(hit[0]), rest)):
        cells.setdefault(name, value)
    end = ending(rest)
    if end not in _NO_RESULTS:
        cells.setdefault(STATUS, end)
    has_result = STATUS in cells or any(_is_result(name, value) for name, value in cells.items())
    return (layout, cells) if has_result else nothing


def _is_result(name: str, value: str) -> bool:
    return any(meaning.column in RESULTS for meaning in meanings([name], [[value]]).values())


def _amounts(text: str) -> Iterator[tuple[str, str]]:
    """Results by the unit behind them, as it would stand in a header."""
    for hit in _AMOUNT.finditer(text):
        unit, label = hit["unit"], hit["label"] or ""
        if unit.startswith("%"):
            name = f"{unit[1:].strip() or label} %"
        elif _OF_MEMORY.fullmatch(unit):
            name = f"{label} memory {unit}".strip()
        else:
            name = unit
        if _is_result(name, hit["number"]):
            yield name, hit["number"]
