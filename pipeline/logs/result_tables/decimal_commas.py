"""Numbers as spreadsheets write them in much of Europe: `25.600,5`, `38,2`.

What a comma means is decided by the whole table: `2,314` alone may be both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBER = re.compile(r"[-+]?\d[\d.,]*")
_DECIMAL_COMMA = re.compile(r"[-+]?(?:\d{1,3}(?:\.\d{3})*,(?:\d{1,2}|\d{4,})|0,\d+|\d{1,3}(?:\.\d{3})+,\d+|\d{4,},\d+)")
_DECIMAL_POINT = re.compile(
    r"[-+]?(?:\d{1,3}(?:,\d{3})*\.(?:\d{1,2}|\d{4,})|0\.\d+|\d{1,3}(?:,\d{3})+\.\d+|\d{4,}\.\d+)"
)
"""Numbers whose other sign can be none of thousands."""


def with_points(rows: Sequence[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Rows in which numbers have decimal points, where some number of the table can only have a decimal comma.

    >>> with_points([(1, ["run", "tokens/s", "loss"]), (2, ["a", "25.600,5", "2,314"])])
    [(1, ['run', 'tokens/s', 'loss']), (2, ['a', '25600.5', '2.314'])]
    >>> with_points([(1, ["a", "25,600.5", "2,314"])])
    [(1, ['a', '25,600.5', '2,314'])]
    """
    cells = [cell for _, row in rows for cell in row]
    if not any(map(_DECIMAL_COMMA.fullmatch, cells)) or any(map(_DECIMAL_POINT.fullmatch, cells)):
        return list(rows)
    return [(line, [_with_point(cell) for cell in row]) for line, row in rows]


def _with_point(cell: str) -> str:
    return cell.replace(".", "").replace(",", ".") if _NUMBER.fullmatch(cell) else cell
