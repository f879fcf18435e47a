"""Whether a table has a row for each step of a training, by its header and its first rows, and what its rows share."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from sweepscope.pipeline.logs.evidence.argument_values import node_values
from sweepscope.pipeline.logs.inference.documents import settings_of_document
from sweepscope.pipeline.logs.synonyms import setting_of, step_columns, words
from sweepscope.pipeline.logs.trackers.tracked_run import is_training_loss
from sweepscope.schemas.columns.shared import LAYOUT

_SEPARATORS = "\t,;"
_LEAST_ROWS = 3
_LEAST_RECORDS, _MOST_RECORDS = 2, 20
_COUNTERS = ("step", "epoch")
_MOST_LAYOUT = 2
"""Columns of a layout from which on a row is that of a run."""


def is_step_table(head: str) -> bool:
    """Whether a text begins with a header that names a counter and a loss, and with rows in which the counter rises.

    >>> is_step_table("epoch,accuracy,loss\\n0,0.1,4.2\\n1,0.2,3.9\\n2,0.2,3.8\\n")
    True
    >>> is_step_table("run,steps,loss\\na,100,2.5\\nb,200,2.4\\nc,300,2.3\\n")
    False
    """
    header, rows = _read(head)
    counters = [at for at, name in enumerate(header) if _is_counter(name)]
    losses = [at for at, name in enumerate(header) if is_training_loss(name)]
    if not counters or not losses or len(rows) < _LEAST_ROWS or _are_named(rows) or _differ_in_layout(header, rows):
        return False
    has_losses = any(_number(row[at]) is not None for row in rows for at in losses)
    return has_losses and _are_numbers(rows) and any(_is_rising(row[at] for row in rows) for at in counters)


def are_step_records(head: str) -> bool:
    """Whether a text begins with JSON objects, a line each, that number rising steps of one layout, with their losses.

    >>> are_step_records('{"step": 1, "loss": 4.2, "cfg": {"tp": 2}}\\n{"step": 2, "loss": 3.9, "cfg": {"tp": 2}}\\n')
    True
    >>> are_step_records('{"run": "a", "steps": 100, "loss": 2.5}\\n{"run": "b", "steps": 100, "loss": 2.4}\\n')
    False
    """
    whole = [line for line in head.splitlines(keepends=True)[:_MOST_RECORDS] if line.endswith("\n")]
    found = [dict(node_values(_object(line))) for line in whole]
    header = [name for name in (found[0] if found else {}) if all(name in one for one in found)]
    rows = [[one[name] for name in header] for one in found]
    counters = [at for at, name in enumerate(header) if _is_counter(name)]
    has_losses = any(is_training_loss(name) for name in header)
    if len(rows) < _LEAST_RECORDS or not has_losses or _differ_in_layout(header, rows):
        return False
    return any(_is_rising(row[at] for row in rows) for at in counters)


def _object(line: str) -> Mapping[str, object]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def shared_settings(head: str) -> dict[str, str]:
    """Settings by column, of a table that begins so: named cells that hold one value in all rows, as a copy of the
    configuration beside the metrics does.

    >>> shared_settings("step,loss,config/tp,config/mbs,lr\\n1,4.2,8,2,0.1\\n2,3.9,8,2,0.2\\n3,3.8,8,2,0.3\\n")
    {'tp': '8', 'mbs': '2'}
    """
    header, rows = _read(head)
    columns = zip(header, zip(*rows, strict=True), strict=True) if len(rows) >= _LEAST_ROWS else ()
    values = [(_dotted(name), cells[0]) for name, cells in columns if cells[0] and len(set(cells)) == 1]
    return settings_of_document([(name, value) for name, value in values if not step_columns(words(name))])


def _read(head: str) -> tuple[list[str], list[list[str]]]:
    """The header of a table that begins so, and its first whole rows; nothing of another text."""
    lines = head.removeprefix("\ufeff").splitlines(keepends=True)[: _LEAST_ROWS + 2]
    whole = [line for line in lines if line.endswith(("\n", "\r"))]
    separator = next((one for one in _SEPARATORS if whole and one in whole[0]), None)
    if separator is None:
        return [], []
    header, *rows = csv.reader(whole, delimiter=separator)
    return header, [row for row in rows if len(row) == len(header)]


def _differ_in_layout(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows have layouts of their own, as those of runs have; a run's own steps repeat its layout."""
    layout: dict[str, set[str]] = {}
    for at, name in enumerate(header):
        column = (setting_of(words(_dotted(name).rpartition(".")[2])) or ("", 0))[0]
        if column in LAYOUT:
            layout.setdefault(column, set()).update(row[at] for row in rows)
    return len(layout) >= _MOST_LAYOUT and any(len(values) > 1 for values in layout.values())


def _dotted(name: str) -> str:
    """The name of a nested setting as configurations have it; trackers and Ray Tune part its levels by bars."""
    return name.strip().replace("/", ".")


def is_bare_step_table(head: str) -> bool:
    """Whether a text begins with rows of numbers without a header, of which the first are whole and rise.

    >>> is_bare_step_table("1,6.95,0.001\\n2,6.91,0.001\\n3,6.87,0.001\\n")
    True
    >>> is_bare_step_table("a,b\\n1,2\\n2,3\\n3,4\\n")
    False
    """
    whole = [line for line in head.removeprefix("\ufeff").splitlines(keepends=True) if line.endswith(("\n", "\r"))]
    separator = next((one for one in _SEPARATORS if whole and one in whole[0]), None)
    if separator is None or len(whole) < _LEAST_ROWS:
        return False
    rows = list(csv.reader(whole, delimiter=separator))
    if len({len(row) for row in rows}) > 1 or any(_number(cell) is None for row in rows for cell in row):
        return False
    return all(row[0].isdigit() for row in rows) and _is_rising(row[0] for row in rows)


def _is_counter(name: str) -> bool:
    return any(column in _COUNTERS and not doubt for column, doubt in step_columns(words(name)))


def _is_rising(cells: Iterable[str]) -> bool:
    numbers = [_number(cell) for cell in cells]
    return all(a is not None and b is not None and a < b for a, b in pairwise(numbers))


def _are_named(rows: Sequence[Sequence[str]]) -> bool:
    """Whether each row has a name of its own, as those of runs have."""
    columns = zip(*rows, strict=True)
    return any(len(set(cells)) == len(cells) and all(cell[:1].isalpha() for cell in cells) for cells in columns)


def _are_numbers(rows: Sequence[Sequence[str]]) -> bool:
    """Whether most cells of each row are numbers; a run's name, a machine's and a date may be among them."""
    return all(2 * sum(_number(cell) is not None for cell in row if cell) > sum(map(bool, row)) for row in rows)


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
