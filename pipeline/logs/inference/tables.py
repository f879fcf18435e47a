"""Rows of values under a header that names them: CSV, cells between bars, aligned columns.

A row has no words of its own, so its rule names its cells in their order.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, takewhile

from sweepscope.pipeline.logs.inference.naming import columns_of
from sweepscope.pipeline.logs.inference.units import in_label, is_instant, number_of
from sweepscope.pipeline.logs.synonyms import EVALUATION, words

_SEPARATORS = ("\t", "|", "│", ";", ",", "  ", " ")
_BETWEEN_CELLS = (",", "\t", ";")
_VALUE = r"[-+]?(?:[0-9][0-9,]*\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+|nan|NaN|inf|N/A|None|-{1,2})"
_NUMERIC = re.compile(rf"{_VALUE}(?: ?(?:%|ms|s|[KMG]i?B?|it/s|tok/s))?")
_DIGITS = re.compile(r"[0-9]+")
_PIECES = re.compile(r"[0-9]+|[A-Za-z_]+|.")
_BEHIND_PREFIX = " \t]>|"
_HEADS = 400
"""Lines in which a header is looked for."""
_MOST_HEADER_CHARS = 400
_MOST_NAME_CHARS = 40
_MOST_DELIMITED = 50
"""Times as long a header between commas or tabs may be: an export names each value of the configuration, too."""
_LEAST_ROWS = 3
_SCREENS = 1_000
"""Rows among which a header that is printed for each screen stands several times."""
_DEFAULT_UNITS = {"step_time": None, "mfu": "fraction", "mem_allocated": None, "mem_reserved": None}


@dataclass(frozen=True)
class Table:
    """A table of steps.

    Attributes:
        cells: columns of a row as a dialect file names them, "_" for others.
        separator: what stands between two of them.
        header: the line that names the cells; "" where none does.
        columns: column, printed name and unit of each cell that is kept.
        line_nos: rows of the sample; `example` is the first.
        is_launch: where the header stands again, the steps begin anew.
    """

    cells: tuple[str, ...]
    separator: str
    header: str
    columns: tuple[tuple[str, str, str], ...]
    line_nos: frozenset[int]
    example: tuple[int, str]
    is_launch: bool = False


def find_table(rows: Sequence[tuple[int, str]]) -> Table | None:
    """The table of the training's steps; None where there is none."""
    best: Table | None = None
    seen: set[str] = set()
    for at, (_, text) in enumerate(rows[:_HEADS]):
        prefix = common_prefix(text, rows[at + 1][1]) if at + 1 < len(rows) else None
        plain = (prefix.sub("", text, count=1) if prefix else text).strip()
        form = _DIGITS.sub("0", plain)  # what differs in numbers only is no header if the first of its form is none
        most = _MOST_HEADER_CHARS * (_MOST_DELIMITED if any(one in plain for one in _BETWEEN_CELLS) else 1)
        if not 3 <= len(plain) <= most or form in seen or any(char.isdigit() for char in plain[:2]):
            continue
        seen.add(form)
        below = (
            [(line_no, prefix.sub("", row, count=1)) for line_no, row in rows[at + 1 :]] if prefix else rows[at + 1 :]
        )
        for separator in _SEPARATORS:
            if separator not in plain or (len(plain) > _MOST_HEADER_CHARS and separator not in _BETWEEN_CELLS):
                continue
            # A header may be written with commas above rows with tabs.
            others = [one for one in _BETWEEN_CELLS if separator in _BETWEEN_CELLS and one != separator]
            tables = (_table(_cells(plain, separator), one, plain, below) for one in (separator, *others))
            table = next(filter(None, tables), None)
            if table and (best is None or len(table.line_nos) > len(best.line_nos)):
                best = table
                break
    return best


def common_prefix(header: str, row: str) -> re.Pattern[str] | None:
    """Matches what a logger puts in front of a header and of a row alike, whatever its numbers are; None for nothing.

    Behind it, the header begins with a word and has no number, and the row begins with a number.

    >>> common_prefix("10:00:01 | INFO | step loss", "10:00:07 | INFO |   10 2.5").match("11:12:13 | INFO | 20 2.4")[0]
    '11:12:13 | INFO | '
    >>> common_prefix("step loss", "10 2.5")
    """
    return _prefix_of_forms(_DIGITS.sub("0", header), _DIGITS.sub("0", row))


@lru_cache(maxsize=1_024)
def _prefix_of_forms(header: str, row: str) -> re.Pattern[str] | None:
    """The answer is the same for all lines that differ in their numbers only."""
    pieces = zip(_PIECES.findall(header), _PIECES.findall(row), strict=False)
    same = [one for one, other in takewhile(lambda pair: _is_alike(*pair), pieces)]
    while same and same[-1][-1] not in _BEHIND_PREFIX:
        same.pop()
    if not any(piece.strip() for piece in same):
        return None
    prefix = re.compile("^" + "".join(r"[0-9]+" if piece.isdigit() else re.escape(piece) for piece in same))
    name, value = (prefix.sub("", text, count=1).lstrip(" |│") for text in (header, row))
    is_table = name[:1].isalpha() and not _DIGITS.search(name) and value[:1].isdigit()
    return prefix if is_table else None


def _is_alike(one: str, other: str) -> bool:
    return one == other or (one.isdigit() and other.isdigit())


def _cells(text: str, separator: str) -> list[str]:
    bare = text.strip().strip("|│") if separator in ("|", "│") else text.strip()
    parts = (
        re.split(r"\s{2,}", bare) if separator == "  " else bare.split() if separator == " " else bare.split(separator)
    )
    return [part.strip().strip("\"'") for part in parts]


def _table(names: list[str], separator: str, header: str, rows: Sequence[tuple[int, str]]) -> Table | None:
    longest = _MOST_NAME_CHARS * (3 if separator in _BETWEEN_CELLS else 1)
    if len(names) < 2 or any(not re.search(r"[A-Za-z]", name) or len(name) > longest for name in names):
        return None
    columns = _columns(names)
    if "step" not in columns or not {"loss", "step_time", "tokens_per_s"} & columns.keys():
        return None
    mine = [(line_no, text) for line_no, text in rows if _is_row(_cells(text, separator), columns, len(names))]
    if len(mine) < _LEAST_ROWS:
        return None
    steps = [float(_cells(text, separator)[columns["step"][0]].replace(",", "")) for _, text in mine]
    ups = sum(after >= before for before, after in pairwise(steps))
    if ups < 0.7 * (len(steps) - 1):
        return None
    headers = [line_no for line_no, text in rows if text.strip() == header]
    is_launch = _begins_anew([line_no for line_no, _ in mine], steps, headers)
    columns |= _moments(names, columns, [_cells(text, separator) for _, text in mine])
    return replace(_rule(names, columns, separator, header, mine), is_launch=is_launch)


def _moments(
    names: Sequence[str], columns: Mapping[str, tuple[int, str]], rows: Sequence[Sequence[str]]
) -> dict[str, tuple[int, str]]:
    """The cell that holds seconds since 1970 in all rows; nothing where there is none."""
    taken = {at for at, _ in columns.values()}
    for at, name in enumerate(names):
        is_named = any(column == "ts" for column, _ in columns_of(words(name)))
        numbers = [number_of(cells[at]) for cells in rows] if is_named and at not in taken else [None]
        if all(number is not None and is_instant(number) for number in numbers):
            return {"ts": (at, "epoch")}
    return {}


def _begins_anew(line_nos: Sequence[int], steps: Sequence[float], headers: Sequence[int]) -> bool:
    """Whether steps fall over each of some lines, and only there; or there are none though the table is long.

    A header that is printed anew every screen would stand among so many rows.
    """
    over = [bisect_left(line_nos, line_no) for line_no in headers]
    over = [at for at in over if 0 < at < len(steps)]
    falls = {at for at in range(1, len(steps)) if steps[at] < steps[at - 1]}
    return falls == set(over) if over else not falls and len(steps) >= _SCREENS


def _columns(names: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Index and unit of each column that a cell is named after; the first cell of that name counts."""
    found: dict[str, tuple[int, str, int]] = {}
    for at, name in enumerate(names):
        label, unit = in_label(words(name))
        if EVALUATION.search(label):
            continue
        named = columns_of(label) or tuple((column, 0) for column in (unit.columns if unit else ()))
        if unit and unit.quantity == "time" and ("step", 0) in named and "opt" not in label:
            named = (("step_time", 1),)  # a step that has a duration is no counter: `total_iter_ms`
        for column, sure in named:
            if column == "ts":  # known from a time by its values
                continue
            if unit and column in ("loss", "step", "epoch", "grad_norm", "learning_rate"):
                continue
            word = unit.word if unit else _DEFAULT_UNITS.get(column, "")
            if word is None or (column not in found or sure < found[column][2]) is False:
                continue
            found[column] = (at, word, sure)
    if epoch := found.pop("epoch", None):
        found.setdefault("step", epoch)  # a row for each epoch
    return {column: (at, word) for column, (at, word, sure) in found.items() if sure < 3}


def _is_row(cells: Sequence[str], columns: Mapping[str, tuple[int, str]], count: int) -> bool:
    if len(cells) != count:
        return False
    needed = (cells[at] for at, _ in columns.values())
    return cells[columns["step"][0]].replace(",", "").isdigit() and all(
        _NUMERIC.fullmatch(cell) or not cell for cell in needed
    )


def _rule(
    names: Sequence[str],
    columns: Mapping[str, tuple[int, str]],
    separator: str,
    header: str,
    rows: Sequence[tuple[int, str]],
) -> Table:
    by_index = {at: (column, word) for column, (at, word) in columns.items()}
    cells = [":".join(filter(None, by_index[at])) if at in by_index else "_" for at in range(len(names))]
    return Table(
        cells=tuple(cells),
        separator=" " if separator == "  " else separator,
        header=header,
        columns=tuple((column, names[at], word) for at, (column, word) in sorted(by_index.items())),
        line_nos=frozenset(line_no for line_no, _ in rows),
        example=rows[0],
    )
