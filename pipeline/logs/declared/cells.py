"""A row of cells, as a dialect file describes it, to an expression: its columns in order, and what separates them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sweepscope.pipeline.logs.declared.columns import Target
from sweepscope.pipeline.logs.declared.units import MISSING

_BARS = ("|", "│", "┃")
_BEGIN = r"(?:^|[\s\]>])\s*"


def cells_regex(cells: Sequence[Target | None], separator: str) -> str:
    """Finds a row of so many cells, with a group per column.

    Args:
        cells: what each cell fills; None for one that is not kept.
        separator: text between two cells; blanks stand for any number of them. Bars also stand around a row.
    """
    mark = separator.strip()
    between = rf"\s*{re.escape(mark)}\s*" if mark else r" *\t *" if separator == "\t" else r"\s+"
    other = rf"[^{re.escape(mark)}]*?" if mark else r"[^\t]*" if separator == "\t" else r"\S+"
    edge = rf"{re.escape(mark)}?\s*" if mark in _BARS else ""
    return f"{_BEGIN}{edge}{between.join(_cell(kept, other) for kept in cells)}\\s*{edge}$"


def _cell(kept: Target | None, other: str) -> str:
    if kept is None:
        return other
    value = rf"\"?(?P<{kept.column}>{kept.printed.pattern}){kept.printed.unit}\"?"
    return value if kept.column == "step" else rf"(?:{value}|{MISSING}|)"
