"""Rows of a table of one's own as runs.

Nobody has described such a table: a header under the usual names, a layout and a result in each row. What is printed of
a run that failed is often a word in the place of a number.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

import polars as pl

from sweepscope.pipeline.logs.inference.units import in_label, number_of
from sweepscope.pipeline.logs.result_tables.cells import amount_of, composed, in_base_units, is_empty, word_of
from sweepscope.pipeline.logs.result_tables.completed_rows import with_batch, with_rates
from sweepscope.pipeline.logs.result_tables.decimal_commas import with_points
from sweepscope.pipeline.logs.result_tables.endings import ending
from sweepscope.pipeline.logs.result_tables.meanings import LAYOUT, MEASURES, RESULTS, Meaning, meanings
from sweepscope.pipeline.logs.result_tables.records import Row, is_json, is_open_object, rows_of
from sweepscope.pipeline.logs.result_tables.result_lines import result_lines
from sweepscope.pipeline.logs.result_tables.run_table import CELLS, REJECTS, RunTable, together
from sweepscope.pipeline.logs.result_tables.stated_above import StatedAbove, stated_above
from sweepscope.pipeline.logs.result_tables.text_tables import tables_in
from sweepscope.pipeline.logs.synonyms import words
from sweepscope.schemas.tables.inference import INFERRED_COLUMNS
from sweepscope.schemas.tables.runs import RUNS
from sweepscope.schemas.vocab import REJECT_REASON_UNPARSED

_DECIDED_BY = {"num_nodes": ("num_gpus",), "gbs": ("gas", "batch"), "gas": ("gbs", "batch"), "mbs": ("batch",)}
"""Columns of a table beside which a value for all of its runs would contradict some."""
_NOTES = {name: kind for name, kind in INFERRED_COLUMNS.polars_schema.items() if name != "source_path"}
SEPARATORS = ",\t;|"
_LEAST_NAMES = 4
_LEAST_LAYOUT = 2
_MANY_RESULTS = 3
"""So many make a table one of runs that differ in one setting."""
_SEEN_ROWS = 200
_MOST_TITLES = 20
"""Rows of a sheet above the header."""
_ESTIMATED = re.compile(r"est_\w+|predicted?_\w+|planned?_\w+")
_OF_SERVING = re.compile(r"\b(?:ttft|tpot|itl|requests?|prompts?|decode|prefill|concurrency|qps)\b")
"""In headers of benchmarks of inference, which have tokens/s and degrees of tensor parallelism, too."""
UNKNOWN_RESULT = "result"
"""Section under which a cell is kept that is a number of its own in most rows, as what was measured is."""

WANTED = (
    "a header with two columns of a layout at least (dp, tp, pp, gpus, micro batch, seq_len ...) and one of results "
    "(tokens/s, step time, MFU, memory, status), or with one and three"
)
"""What a table of runs is known by."""


def read_runs(text: str) -> RunTable | None:
    """The runs of a table or of records in JSON; None where their columns are none of runs and their layouts.

    What stands above the header, in a cell or two of a row or as a comment, is stated of all runs.
    """
    text = _plain(text)
    if is_json(text):
        return read_rows(rows_of(text), ",")
    separator = _separator(text)
    if not separator:
        return None
    titles, rows = _parted(_rows(text, separator))
    above = [(line, " ".join(cell for cell in cells if cell)) for line, cells in titles]
    header = rows[0][0] if rows else 0
    return read_rows(rows if separator == "," else with_points(rows), separator, stated_above(above, (), header))


def _parted(rows: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """The rows above the header, which have a cell or two, and those from it on."""
    wide = (at for at, (_, cells) in enumerate(rows[:_MOST_TITLES]) if sum(map(bool, cells)) >= _LEAST_NAMES)
    at = next(wide, 0)
    are_titles = all(sum(map(bool, cells)) < _LEAST_LAYOUT + 1 for _, cells in rows[:at])
    return (rows[:at], rows[at:]) if are_titles else ((), rows)


def read_text(text: str, first_line: int = 1) -> RunTable | None:
    """The runs of all tables in a text (`text_tables`) that begins with `first_line`; None without any.

    Where it has none, those that its lines state one by one (`result_lines`), with what is stated of all above them.
    """
    plain = _plain(text)
    tables = ([(line + first_line - 1, cells) for line, cells in table.rows] for table in tables_in(plain))
    if found := together(read_rows(rows, " | ") for rows in tables):
        return found
    lines = list(enumerate(plain.split("\n"), first_line))
    listed = result_lines(lines)
    taken = {line for rows in listed for line, _ in rows}
    return together(read_rows(rows, " | ", stated_above(lines, taken, rows[0][0])) for rows in listed)


def read_document(text: str) -> RunTable | None:
    """The runs of all tables in a document, with what it states of them above (`stated_above`); None without any."""
    plain = _plain(text)
    tables = [table.rows for table in tables_in(plain)]
    taken = {line for rows in tables for line in range(rows[0][0], rows[-1][0] + 1)}
    lines = list(enumerate(plain.split("\n"), 1))
    return together(read_rows(rows, " | ", stated_above(lines, taken, rows[0][0])) for rows in tables)


def read_sheets(sheets: Iterable[Sequence[list[str]]]) -> RunTable | None:
    """The runs of all tables in the sheets of a workbook, whose rows are counted on from sheet to sheet.

    A table ends at an empty row; what stands above its header is a title.
    """
    tables: list[RunTable | None] = []
    line = 0
    for sheet in sheets:
        rows = list(enumerate(sheet, line + 1))
        line += len(rows)
        for is_filled, group in groupby(rows, lambda row: any(row[1])):
            tables.append(_below_title(list(group)) if is_filled else None)
    return together(tables)


def _below_title(rows: Sequence[Row]) -> RunTable | None:
    """The runs of the rows below the first that may be a header, as all cells in its columns are filled, with words."""
    for at, (_, cells) in enumerate(rows[:_MOST_TITLES]):
        places = [place for place, cell in enumerate(cells) if cell and number_of(cell) is None]
        if len(places) >= _LEAST_LAYOUT + 1:
            below = [(line, [row[place] for place in places]) for line, row in rows[at:]]
            if (found := read_rows(below, " | ")) is not None:
                return found
    return None


def read_rows(rows: Sequence[Row], separator: str, above: Sequence[StatedAbove] = ()) -> RunTable | None:
    """The runs of a header and the rows below it; None where its columns are none of runs.

    Args:
        rows: lines and cells.
        separator: what parts the cells of a row that is shown.
        above: what is stated of all of them; a cell counts more.
    """
    rows = _with_units(rows)
    if len(rows) < 2:
        return None
    header, body = rows[0][1], [(line, cells) for line, cells in rows[1:] if cells != rows[0][1]]
    whole = [(line, cells) for line, cells in body if len(cells) == len(header)]
    seen = [list(column) for column in zip(*(cells for _, cells in whole[:_SEEN_ROWS]), strict=True)]
    if not seen or any(_ESTIMATED.fullmatch(name.lower()) or _OF_SERVING.search(words(name)) for name in header):
        return None
    found = meanings(header, seen)
    if not _is_of_runs(found, seen):
        return None
    named = {meaning.column for meaning in found.values()}
    of_all = [one for one in above if not named & {one.column, *_DECIDED_BY.get(one.column, ())}]
    read = [_run(found, line, cells, {one.column: one.value for one in of_all}) for line, cells in whole]
    reasons = [(line, f"{len(cells)} fields where the header names {len(header)}", cells) for line, cells in body]
    bad = [one for one in reasons if len(one[2]) != len(header)]
    bad += [(line, REJECT_REASON_UNPARSED, cells) for (line, cells), row in zip(whole, read, strict=True) if not row]
    rejects = [(line, reason, separator.join(cells)) for line, reason, cells in sorted(bad)]
    runs = pl.DataFrame([row for row in read if row], infer_schema_length=None)
    return RunTable(
        RUNS.conform(runs).select(runs.columns),
        pl.DataFrame(rejects, schema=REJECTS, orient="row"),
        pl.concat([_notes(found, header, whole, rows[0][0], separator), _notes_above(of_all)]),
        _cells(found, header, [(line, cells) for (line, cells), row in zip(whole, read, strict=True) if row]),
    )


def _with_units(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows without one below the header that holds nothing but units, which are put behind the names."""
    if len(rows) < 2 or len(rows[1][1]) != len(rows[0][1]):
        return rows
    (line, names), (_, below) = rows[:2]
    units = [cell.strip("[]() ") for cell in below]
    if not any(units) or not all(unit in ("", "%") or in_label(words(f"x {unit}"))[1] for unit in units):
        return rows
    return [(line, [f"{name} {unit}".strip() for name, unit in zip(names, units, strict=True)]), *rows[2:]]


def may_be_runs(start: str) -> bool:
    """Whether a text that begins so may be a table of runs. A list or an object in JSON shows that at its end only."""
    plain = start.lstrip("\ufeff \n")
    is_undecided = plain.startswith("[") or is_open_object(plain)
    return is_undecided or read_runs(plain.rpartition("\n")[0] or plain) is not None


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _separator(text: str) -> str:
    """What parts the cells of the header, below titles; "" of a text that is no table."""
    for line in text.split("\n", _MOST_TITLES)[:_MOST_TITLES]:
        best = max(SEPARATORS, key=line.count)
        if line.count(best) >= _LEAST_NAMES - 1:
            return best
    return ""


def _rows(text: str, separator: str) -> Sequence[tuple[int, list[str]]]:
    """Rows that hold something, with their lines; those of Markdown without its frame and its rule."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    found = []
    for row in reader:
        cells = [cell.strip() for cell in row]
        if separator == "|" and not cells[0] and not cells[-1]:
            cells = cells[1:-1]
        if any(cells) and not all(re.fullmatch(":?-{2,}:?", cell) for cell in cells):
            found.append((reader.line_num, cells))
    return found


def _is_of_runs(found: Mapping[int, Meaning], columns: Sequence[Sequence[str]]) -> bool:
    """Whether layouts and results are named, and the rows are no steps of one run."""
    named = {meaning.column for meaning in found.values()}
    settings, results = len(named & {*LAYOUT}), len(named & {*RESULTS} - {"status"})
    is_plain = settings >= _LEAST_LAYOUT and (results or "status" in named)
    if not is_plain and not (settings and results >= _MANY_RESULTS):
        return False
    step = next((place for place, meaning in found.items() if meaning.column == "last_step"), None)
    if step is None or any(len(set(columns[at])) > 1 for at, meaning in found.items() if meaning.column in LAYOUT):
        return True
    counts = [number_of(cell) for cell in columns[step]]
    return not all(a is not None and b is not None and a < b for a, b in pairwise(counts))


def _run(found: Mapping[int, Meaning], line: int, cells: Sequence[str], of_all: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of `runs` of one row; empty where it names no layout. What is stated of all rows fills it up."""
    row: dict[str, Any] = {}
    ends: list[tuple[str, str]] = []
    for place, meaning in found.items():
        cell = cells[place]
        if is_empty(cell) and not (cell and meaning.column == "recompute"):  # of which `none` is a value
            continue
        if meaning.column == "status":
            ends.insert(0, (ending(cell, meaning.name) or "unknown", f"{meaning.name}: {cell}"))
        elif meaning.column == "layout":
            row = composed(cell) | row
        elif (value := _value(meaning, cell)) is not None:
            row[meaning.column] = value
        elif meaning.column in RESULTS and (status := ending(cell)):
            ends.append((status, f"{meaning.name}: {cell}"))
    if not {*row} & {*LAYOUT}:
        return {}
    row = with_rates(with_batch({**of_all, **row}))
    return {name: row.get(name) for name in _columns(found, of_all)} | {"line_no": line} | _ended(ends, row)


def _ended(ends: Sequence[tuple[str, str]], row: Mapping[str, Any]) -> dict[str, str]:
    """How a run ended: by the words of its row, else by what the row has measured."""
    is_measured = any(row.get(name) for name in RESULTS)
    known = [one for one in ends if one[0] != "unknown"]
    if known:
        status, evidence = known[0]
        return {"status": status, "status_confidence": "high", "status_evidence": evidence}
    status, confidence = ("completed", "low") if is_measured else ("unknown", "low")
    evidence = "the table holds its results" if is_measured else "the table holds no result of it"
    return {"status": status, "status_confidence": confidence, "status_evidence": evidence}


def _columns(found: Mapping[int, Meaning], of_all: Iterable[str]) -> list[str]:
    """Columns that rows of this table may fill."""
    ours = {meaning.column for meaning in found.values()} - {"status", "batch", "layout", "samples_per_s"}
    return sorted(
        ours
        | {*of_all}
        | {"dp", "tp", "pp", "cp", "ep", "vpp", "mbs", "gas", "gbs", "num_gpus", "num_nodes"}
        | {"seq_len", "zero_stage", "step_time_s", "tokens_per_s"}
    )


def _value(meaning: Meaning, cell: str) -> Any:
    column = meaning.column
    if column not in MEASURES:
        return word_of("gbs" if column == "batch" else column, meaning.name, cell)
    amount = amount_of(cell)
    if amount is None or (amount[0] <= 0 and column != "last_loss"):
        return None
    number = amount[0] * meaning.factor
    if column in ("params", "last_step"):
        return round(number)
    return in_base_units(column, number, amount[1] or meaning.unit)


def _cells(
    found: Mapping[int, Meaning], header: Sequence[str], rows: Sequence[tuple[int, Sequence[str]]]
) -> pl.DataFrame:
    """Every cell but those that are results of a run in `runs`. What seems to be one, too, is named as a result."""
    kept = {}
    for place, name in enumerate(header):
        values = [cells[place] for _, cells in rows if cells[place]]
        is_result = len({*values}) * 3 > len(values) + 3 and all(amount_of(value) for value in values)
        if name and not (place in found and found[place].column in MEASURES):
            kept[place] = f"{UNKNOWN_RESULT}.{name}" if is_result and place not in found else name
    listed = [(line, name, cells[place]) for line, cells in rows for place, name in kept.items() if cells[place]]
    return pl.DataFrame(listed, schema=CELLS, orient="row").unique(
        ["line_no", "name"], keep="first", maintain_order=True
    )


def _notes(
    found: Mapping[int, Meaning],
    header: Sequence[str],
    rows: Sequence[tuple[int, Sequence[str]]],
    line: int,
    separator: str,
) -> pl.DataFrame:
    example = separator.join(rows[0][1])
    notes = [
        {
            "column_name": meaning.column,
            "field": header[place],
            "printed_unit": meaning.unit or None,
            "confidence": ("high", "medium", "low")[min(meaning.sure, 2)],
            "is_read": True,
            "grounds": f"the column is named {header[place]!r}",
            "line_no": line,
            "example": example,
        }
        for place, meaning in found.items()
    ]
    return pl.DataFrame(notes, schema=_NOTES)


def _notes_above(of_all: Iterable[StatedAbove]) -> pl.DataFrame:
    notes = [
        {
            "column_name": one.column,
            "field": one.name,
            "confidence": "medium",
            "is_read": True,
            "grounds": "stated above the table, of all of its runs",
            "line_no": one.line_no,
            "example": one.text,
        }
        for one in of_all
    ]
    return pl.DataFrame(notes, schema=_NOTES)
