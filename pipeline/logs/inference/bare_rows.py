"""Rows of numbers without a header and without words: `120 3.2214`, `000120 | 3.2214 | 312 ms`, `120,3.2214,0.001`.

Which cell is what was guessed from how its values go. No word of such a row can find it, so its rule names its cells
in their order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from sweepscope.pipeline.logs.inference.columns import Guess
from sweepscope.pipeline.logs.inference.counter import Counter
from sweepscope.pipeline.logs.inference.labels import is_unnamed
from sweepscope.pipeline.logs.inference.series import Line
from sweepscope.pipeline.logs.inference.tables import Table

_SEPARATORS = {"": " ", ",": ",", ";": ";", "|": "|", "│": "│"}
"""Separator of cells, as a dialect file spells it, by the signs between two of them without blanks."""
_NEARLY_ALL = 0.95


def bare_rows(lines: Sequence[Line], rows: Collection[int], counter: Counter, chosen: Sequence[Guess]) -> Table | None:
    """The rows as those of a table; None where they have words, are no cells, or differ in what separates these.

    Args:
        lines: the sample.
        rows: those of steps.
        counter: what numbers them: their first cell.
        chosen: what other cells are.
    """
    keys = [counter.key, *(guess.key for guess in chosen)]
    if counter.epoch or counter.epoch_line or not all(is_unnamed(key[0]) for key in keys):
        return None
    forms = {row: form for row in rows if (form := _form(lines[row]))}
    if not forms:
        return None
    usual = max(set(forms.values()), key=list(forms.values()).count)
    mine = [row for row in sorted(rows) if forms.get(row) == usual]
    first = lines[mine[0]]
    if len(mine) < _NEARLY_ALL * len(rows) or first.fields[0].key != counter.key:
        return None
    named = {counter.key: ("step", "")} | {one.key: (one.column, one.word or "") for one in chosen if one.is_read}
    columns = [named.get(one.key) for one in first.fields]
    return Table(
        cells=tuple(":".join(filter(None, one)) if one else "_" for one in columns),
        separator="\t" if all("\t" in lines[row].text for row in mine) else _SEPARATORS[usual[0]],
        header="",
        columns=tuple((one[0], f"cell {at}", one[1]) for at, one in enumerate(columns, 1) if one),
        line_nos=frozenset(lines[row].number for row in mine),
        example=(first.number, first.text),
    )


def _form(line: Line) -> tuple[str, int] | None:
    """What separates the cells of a row, and how many they are; None of a line with anything else in it."""
    ends = [line.begin, *(one.stop for one in line.fields)]
    begins = [*(one.begin for one in line.fields), len(line.text)]
    gaps = [line.text[end:begin].strip() for end, begin in zip(ends, begins, strict=True)]
    between = set(gaps[1:-1])
    is_row = len(between) == 1 and all(gap in ("", *between) for gap in (gaps[0], gaps[-1]))
    sign = between.pop() if is_row else None
    is_parted = sign != "" or all(re.match(r"\s", line.text[end:]) for end in ends[1:-1])
    return (sign, len(line.fields)) if sign in _SEPARATORS and is_parted else None
