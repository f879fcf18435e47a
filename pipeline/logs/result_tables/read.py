"""Rows of a table of one's own as runs.

Nobody has described such a table: a header under the usual names, a layout and a result in each row. What is printed of
a run that failed is often a word in the place of a number.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isclose, prod
from typing import Any

import polars as pl

from sweepscope.pipeline.logs.inference.units import number_of
from sweepscope.pipeline.logs.result_tables.cells import amount_of, composed, in_base_units, is_empty, word_of
from sweepscope.pipeline.logs.result_tables.endings import ending
from sweepscope.pipeline.logs.result_tables.meanings import LAYOUT, MEASURES, RESULTS, Meaning, meanings
from sweepscope.pipeline.logs.result_tables.records import is_json, is_open_object, rows_of
from sweepscope.pipeline.logs.synonyms import words
from sweepscope.schemas.tables.inference import INFERRED_COLUMNS
from sweepscope.schemas.tables.runs import RUNS
from sweepscope.schemas.vocab import REJECT_REASON_UNPARSED

SEPARATORS = ",\t;|"
_LEAST_NAMES = 4
_LEAST_LAYOUT = 2
_MANY_RESULTS = 3
"""So many make a table one of runs that differ in one setting."""
_SEEN_ROWS = 200
_ESTIMATED = re.compile(r"est_\w+|predicted?_\w+|planned?_\w+")
_OF_SERVING = re.compile(r"\b(?:ttft|tpot|itl|requests?|prompts?|decode|prefill|concurrency|qps)\b")
"""In headers of benchmarks of inference, which have tokens/s and degrees of tensor parallelism, too."""
_AGREE = 0.05
UNKNOWN_RESULT = "result"
"""Section under which a cell is kept that is a number of its own in most rows, as what was measured is."""

WANTED = (
    "a header with two columns of a layout at least (dp, tp, pp, gpus, micro batch, seq_len ...) and one of results "
    "(tokens/s, step time, MFU, memory, status), or with one and three"
)
"""What a table of runs is known by."""

REJECTS = pl.Schema({"line_no": pl.Int64, "reason": pl.String, "raw": pl.String})
CELLS = pl.Schema({"line_no": pl.Int64, "name": pl.String, "value": pl.String})
"""A row per run and cell that names or configures it, as it is printed."""


@dataclass(frozen=True)
class RunTable:
    """A table's contents.

    Attributes:
        runs: rows named as columns of `runs`, with `line_no`.
        rejects: REJECTS rows that could not be read.
        columns: INFERRED_COLUMNS rows without `source_path`: what each column was taken for.
        cells: CELLS rows of what configures each run.
    """

    runs: pl.DataFrame
    rejects: pl.DataFrame
    columns: pl.DataFrame
    cells: pl.DataFrame


def read_runs(text: str) -> RunTable | None:
    """The runs of a table or of records in JSON; None where their columns are none of runs and their layouts."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    separator = "," if is_json(text) else _separator(text)
    rows = rows_of(text) if is_json(text) else list(_rows(text, separator)) if separator else []
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
    read = [_run(found, line, cells) for line, cells in whole]
    reasons = [(line, f"{len(cells)} fields where the header names {len(header)}", cells) for line, cells in body]
    bad = [one for one in reasons if len(one[2]) != len(header)]
    bad += [(line, REJECT_REASON_UNPARSED, cells) for (line, cells), row in zip(whole, read, strict=True) if not row]
    rejects = [(line, reason, separator.join(cells)) for line, reason, cells in sorted(bad)]
    runs = pl.DataFrame([row for row in read if row], infer_schema_length=None)
    return RunTable(
        RUNS.conform(runs).select(runs.columns),
        pl.DataFrame(rejects, schema=REJECTS, orient="row"),
        _notes(found, header, whole, rows[0][0], separator),
        _cells(found, header, [(line, cells) for (line, cells), row in zip(whole, read, strict=True) if row]),
    )


def may_be_runs(start: str) -> bool:
    """Whether a text that begins so may be a table of runs. A list or an object in JSON shows that at its end only."""
    plain = start.lstrip("\ufeff \n")
    is_undecided = plain.startswith("[") or is_open_object(plain)
    return is_undecided or read_runs(plain.rpartition("\n")[0] or plain) is not None


def _separator(text: str) -> str:
    first = text.split("\n", 1)[0]
    best = max(SEPARATORS, key=first.count)
    return best if first.count(best) >= _LEAST_NAMES - 1 else ""


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


def _run(found: Mapping[int, Meaning], line: int, cells: Sequence[str]) -> dict[str, Any]:
    """Columns of `runs` of one row; empty where it names no layout."""
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
    row = _with_rates(_with_batch(row))
    return {name: row.get(name) for name in _columns(found)} | {"line_no": line} | _ended(ends, row)


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


def _columns(found: Mapping[int, Meaning]) -> list[str]:
    """Columns that rows of this table may fill."""
    ours = {meaning.column for meaning in found.values()} - {"status", "batch", "layout", "samples_per_s"}
    return sorted(
        ours
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


def _with_batch(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its batch of unknown kind as one process's or the whole job's.

    Another batch beside it decides, else the tokens that a step took; else the accumulation beside it, which a batch of
    the whole job has in it.
    """
    batch = row.pop("batch", None)
    if batch is None or {"gbs", "mbs"} <= row.keys():
        return row
    if "mbs" in row:
        return {**row, "gbs": batch} if batch % row["mbs"] == 0 else row
    if "gbs" in row:
        return {**row, "mbs": batch} if row["gbs"] % batch == 0 else row
    kind = _kind_of_batch(row, batch) or ("mbs" if "gas" in row else None)
    return {**row, kind: batch} if kind else row


def _kind_of_batch(row: Mapping[str, Any], batch: int) -> str | None:
    """`gbs` or `mbs`, by the tokens of a step; None where these are unknown or are those of neither."""
    replicas, rate = row.get("dp") or _replicas(row), row.get("tokens_per_s")
    if rate is None and row.get("tokens_per_s_per_gpu") and row.get("num_gpus"):
        rate = row["tokens_per_s_per_gpu"] * row["num_gpus"]
    if not (rate and replicas and row.get("step_time_s") and row.get("seq_len")):
        return None
    sequences = rate * row["step_time_s"] / row["seq_len"]
    sizes = {"gbs": batch, "mbs": batch * replicas * row.get("gas", 1)}
    fitting = [kind for kind, size in sizes.items() if isclose(sequences, size, rel_tol=_AGREE)]
    return fitting[0] if len({sizes[kind] for kind in fitting}) == 1 else None


def _replicas(row: Mapping[str, Any]) -> int | None:
    ways = prod(row.get(name, 1) for name in ("tp", "pp", "cp"))
    return row["num_gpus"] // ways if "num_gpus" in row and row["num_gpus"] % ways == 0 else None


def _with_rates(row: dict[str, Any]) -> dict[str, Any]:
    """The row with samples/s as tokens/s."""
    samples = row.pop("samples_per_s", None)
    if samples and "tokens_per_s" not in row and row.get("seq_len"):
        row["tokens_per_s"] = samples * row["seq_len"]
    return row


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
    schema = {name: kind for name, kind in INFERRED_COLUMNS.polars_schema.items() if name != "source_path"}
    return pl.DataFrame(notes, schema=schema)
