"""Tables in a text: Markdown's, those that tabulate, rich and prettytable frame, and columns that blanks align. Pure.

Forms: GitHub's Markdown (https://github.github.com/gfm/#tables-extension-); tabulate's `tablefmt`
(https://github.com/astanin/python-tabulate#table-format); rich's boxes (rich/box.py); what pandas prints of a frame,
cut into blocks of columns at `display.width` with a `\\` behind the header (pandas/io/formats/format.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from sweepscope.pipeline.logs.inference.units import number_of
from sweepscope.pipeline.logs.result_tables.records import Row

_LEAST_NAMES = 4
"""Of a header that no rule and no frame marks."""
_LEAST_CELLS = 3
_LEAST_NUMBERS = 2
"""In a row below names that nothing marks as a header."""
_RULE = re.compile(r"[\s|+:=_~\u2500-\u257f-]*(?:--|==|__|:-|-:|\u2014\u2014|[\u2500-\u257f])[\s|+:=_~\u2500-\u257f-]*")
_DASHES = re.compile(r"[-=\u2500\u2550\u2501]{2,}")
_VERTICAL = str.maketrans(dict.fromkeys("\u2502\u2503\u2551\u2506\u2507\u250a\u250b\u254e\u254f", "|"))
_BAR = re.compile(r"(?<!\\)\|{1,2}")
_WIDE = re.compile(r"\S+(?: \S+)*")
"""A cell between two blanks at least, or tabs."""
_NARROW = re.compile(r"\S+(?: [(\[]\S+[)\]])?")
"""A name, with its unit, or a cell between single blanks."""
_DECORATION = re.compile(r"^([*_`~]{1,3})(.+)\1$")
_GOES_ON = re.compile(r"\s\\\s*$")


@dataclass(frozen=True)
class TextTable:
    """A table with a header of names, and rows of as many cells.

    Attributes:
        rows: the header and what stands below it, with their lines.
        goes_on: whether its further columns are in the next one.
    """

    rows: tuple[Row, ...]
    goes_on: bool = False


@dataclass(frozen=True)
class _Line:
    number: int
    text: str

    @property
    def is_rule(self) -> bool:
        return _RULE.fullmatch(self.text) is not None

    @property
    def is_framed(self) -> bool:
        return not self.is_rule and len(_BAR.findall(self.text)) >= _LEAST_CELLS - 1


def tables_in(text: str) -> list[TextTable]:
    """The tables of a text, in their order; rows whose number of cells is another than the header's are in them, too.

    >>> [table.rows for table in tables_in("| tp | mbs | mfu |\\n|---|:-:|--:|\\n| 2 | 4 | **0.4** |\\n")]
    [((1, ['tp', 'mbs', 'mfu']), (3, ['2', '4', '0.4']))]
    >>> [table.rows for table in tables_in("tp  mbs  gpus  step time\\n 2    4     8      1.5 s\\n")]
    [((1, ['tp', 'mbs', 'gpus', 'step time']), (2, ['2', '4', '8', '1.5 s']))]
    """
    found: list[TextTable] = []
    lines = [_Line(number, line.translate(_VERTICAL)) for number, line in enumerate(text.split("\n"), 1)]
    for table in _tables(lines):
        if found and found[-1].goes_on and len(found[-1].rows) == len(table.rows):
            found[-1] = _side_by_side(found[-1], table)
        else:
            found.append(table)
    return found


def _tables(lines: Sequence[_Line]) -> Iterator[TextTable]:
    """Tables, each block of columns of a frame as one."""
    at = 0
    goes_on = False
    while at < len(lines):
        found = _framed(lines, at) if lines[at].is_framed else _aligned(lines, at, is_part=goes_on)
        if found:
            yield found[1]
            at, goes_on = found[0], found[1].goes_on
        else:
            goes_on = goes_on and not lines[at].text.strip()
            at += 1


def _framed(lines: Sequence[_Line], start: int) -> tuple[int, TextTable] | None:
    """A table whose cells bars part, from its header on: the line behind it, and the table.

    Where a rule closes each row, the lines between two of them are one row; so is a header of several lines.
    """
    stop = next((at for at in range(start, len(lines)) if not (lines[at].is_framed or lines[at].is_rule)), len(lines))
    groups: list[list[_Line]] = [[]]
    for line in lines[start:stop]:
        if line.is_rule:
            groups.append([])
        else:
            groups[-1].append(line)
    groups = [group for group in groups if group]
    cells_of = _Bars.of(groups[0][0].text).cells
    if len(groups) > 2 and any(len(group) > 1 for group in groups[1:]) and _is_wrapped(groups[1:], cells_of):
        rows = [_joined(group, cells_of) for group in groups]
    else:
        flat = [line for group in groups[1:] or [groups[0][1:]] for line in group]
        head = groups[0] if len(groups) > 1 else groups[0][:1]
        rows = [_joined(head, cells_of), *((line.number, cells_of(line.text)) for line in flat)]
    rows = [row for row in rows if any(row[1])]
    return (stop, TextTable(tuple(rows))) if len(rows) > 1 and len(rows[0][1]) >= _LEAST_CELLS else None


def _is_wrapped(groups: Sequence[Sequence[_Line]], cells_of: Callable[[str], list[str]]) -> bool:
    """Whether lines go on with the cells of those above them: each has an empty cell where the first has one."""
    rest = [cells_of(line.text) for group in groups for line in group[1:]]
    return bool(rest) and all("" in cells for cells in rest)


def _joined(group: Sequence[_Line], cells_of: Callable[[str], list[str]]) -> Row:
    """The lines of one row as one."""
    parts = [cells_of(line.text) for line in group]
    if any(len(cells) != len(parts[0]) for cells in parts):
        return group[-1].number, parts[-1]
    return group[0].number, [" ".join(filter(None, column)) for column in zip(*parts, strict=True)]


@dataclass(frozen=True)
class _Bars:
    """Whether the lines of a table begin and end with a bar."""

    is_left: bool
    is_right: bool

    @classmethod
    def of(cls, header: str) -> _Bars:
        """Those of a table by its header, of which no cell is empty."""
        return cls(header.lstrip().startswith("|"), header.rstrip().endswith("|"))

    def cells(self, text: str) -> list[str]:
        """The cells of a line, without Markdown's emphasis."""
        parts = [part.strip() for part in _BAR.split(text.strip())]
        begin = 1 if self.is_left and not parts[0] else 0
        end = -1 if self.is_right and not parts[-1] else None
        return [_plain(part.replace("\\|", "|")) for part in parts[begin:end]]


def _plain(cell: str) -> str:
    while found := _DECORATION.match(cell):
        cell = found[2].strip()
    return cell


@dataclass(frozen=True)
class _Names:
    """The line of names over aligned columns.

    Attributes:
        names: as they are printed.
        spans: where each of them begins and ends.
        split: finds the cells of a line.
        is_frame: whether they are those of a frame, whose index has none; its cells end where their names do.
    """

    names: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    split: re.Pattern[str]
    is_frame: bool = False


def _aligned(lines: Sequence[_Line], start: int, *, is_part: bool) -> tuple[int, TextTable] | None:
    """A table whose cells blanks part: the line behind it, and the table; None where a line is no header of one.

    Args:
        lines: of the text.
        start: the place of the header.
        is_part: whether the columns of the table before go on here.
    """
    text = _GOES_ON.sub("", lines[start].text.expandtabs())
    below = start + 1
    rule = lines[below].text if below < len(lines) and lines[below].is_rule else ""
    body = below + 1 if rule else below
    begins = [found.start() for found in _DASHES.finditer(rule)]
    if len(begins) >= _LEAST_CELLS and not _BAR.search(rule):
        return _ruled(lines, start, body, begins)
    split = _WIDE if len(_WIDE.findall(text)) >= _LEAST_NAMES else _NARROW
    found = [(one.span(), one[0]) for one in split.finditer(text)]
    is_part |= _GOES_ON.search(lines[start].text) is not None
    if len(found) < (1 if is_part else _LEAST_NAMES) or any(number_of(name) is not None for _, name in found):
        return None
    head = _Names(tuple(name for _, name in found), tuple(span for span, _ in found), split)
    return _in_columns(lines, start, body, head)


def _ruled(lines: Sequence[_Line], start: int, body: int, begins: Sequence[int]) -> tuple[int, TextTable] | None:
    """A table with a stroke for each column in the rule below its names, down to the next rule or an empty line."""
    ends = [*begins[1:], None]
    stop = next((at for at in range(body, len(lines)) if not lines[at].text.strip() or lines[at].is_rule), len(lines))
    header, *rows = [
        (line.number, [line.text.expandtabs()[left:right].strip() for left, right in zip(begins, ends, strict=True)])
        for line in (lines[start], *lines[body:stop])
    ]
    is_header = all(header[1]) and all(number_of(name) is None for name in header[1])
    return (stop, TextTable((header, *rows))) if rows and is_header else None


def _in_columns(lines: Sequence[_Line], start: int, body: int, head: _Names) -> tuple[int, TextTable] | None:
    """A table below a line of names, down to the first line that does not fit them.

    One cell more than names is the index of a frame, whose header is empty.
    """
    first = _GOES_ON.sub("", lines[body].text.expandtabs()) if body < len(lines) else ""
    index = _NARROW.search(first)
    if index and index.end() <= head.spans[0][0]:
        found = [*_NARROW.finditer(_GOES_ON.sub("", lines[start].text.expandtabs()))]
        ends = [0, index.end(), *(one.end() for one in found)]
        head = _Names(("", *(one[0] for one in found)), tuple(pairwise(ends)), _NARROW, is_frame=True)
    rows: list[Row] = []
    stop = body
    for at, line in enumerate(lines[body:], body):
        if line.is_rule:
            continue
        fitted = _fitted(head, _GOES_ON.sub("", line.text.expandtabs()))
        if fitted is None:
            break
        rows.append((line.number, fitted))
        stop = at + 1
    header = (lines[start].number, [*head.names])
    goes_on = _GOES_ON.search(lines[start].text) is not None
    table = TextTable((header, *rows), goes_on=goes_on)
    return (stop, _whole_names(table) if head.is_frame else table) if rows else None


def _fitted(head: _Names, text: str) -> list[str] | None:
    """The cells of a line, one for each name; None for a line that is none of the table's."""
    if head.is_frame:  # which is aligned to the right
        is_cut = any(len(text[end - 1 : end + 1].strip()) > 1 for _, end in head.spans[1:])
        index = re.match(r"\S*", text)
        begin = index.end() if index else 0  # an index may be wider than that of the first row
        fitted = [text[:begin], *(text[max(left, begin) : right].strip() for left, right in head.spans[1:])]
        return None if is_cut or text[head.spans[-1][1] :].strip() or not (fitted[0] and any(fitted[1:])) else fitted
    cells = [(one.span(), one[0]) for one in head.split.finditer(text)]
    fitted_or_not = [cell for _, cell in cells] if len(cells) == len(head.names) else _below(head, cells)
    if fitted_or_not and sum(number_of(cell) is not None for cell in fitted_or_not) >= _LEAST_NUMBERS:
        return fitted_or_not
    return None


def _whole_names(table: TextTable) -> TextTable:
    """A frame with names of several words as one each: below all but the last of them are no cells."""
    header, *body = table.rows
    columns = [*zip(*(cells for _, cells in body), strict=True)]
    kept = [at for at, column in enumerate(columns) if any(column)]
    begins = [0, *(at + 1 for at in kept[:-1])]
    names = [" ".join(header[1][begin : at + 1]) for begin, at in zip(begins, kept, strict=True)]
    return replace(table, rows=((header[0], names), *((line, [cells[at] for at in kept]) for line, cells in body)))


def _below(head: _Names, cells: Sequence[tuple[tuple[int, int], str]]) -> list[str] | None:
    """A cell for each name above it, empty where there is none; None where a cell is below none or two below one."""
    if head.split is _NARROW or len(cells) * 2 < len(head.names) or len(cells) > len(head.names):
        return None
    fitted = [""] * len(head.names)
    for (left, right), cell in cells:
        shared = [min(right, end) - max(left, begin) for begin, end in head.spans]
        best = max(range(len(shared)), key=shared.__getitem__)
        if shared[best] <= 0 or fitted[best]:
            return None
        fitted[best] = cell
    return fitted


def _side_by_side(left: TextTable, right: TextTable) -> TextTable:
    """Two blocks of columns of one frame as one table, with the index of the first."""
    skipped = 1 if not right.rows[0][1][0] else 0
    rows = [(line, [*cells, *more[skipped:]]) for (line, cells), (_, more) in zip(left.rows, right.rows, strict=True)]
    return replace(left, rows=tuple(rows), goes_on=right.goes_on)
