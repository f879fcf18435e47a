"""Whether a table has a row for each step of a training, by its header and its first rows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from itertools import pairwise

from sweepscope.pipeline.logs.synonyms import setting_of, step_columns, words
from sweepscope.pipeline.logs.trackers.tracked_run import is_training_loss
from sweepscope.schemas.columns.shared import LAYOUT

_SEPARATORS = "\t,;"
_LEAST_ROWS = 3
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
    lines = head.removeprefix("\ufeff").splitlines(keepends=True)[: _LEAST_ROWS + 2]
    whole = [line for line in lines if line.endswith(("\n", "\r"))]
    separator = next((one for one in _SEPARATORS if whole and one in whole[0]), None)
    if separator is None:
        return False
    header, *rows = csv.reader(whole, delimiter=separator)
    counters = [at for at, name in enumerate(header) if _is_counter(name)]
    losses = [at for at, name in enumerate(header) if is_training_loss(name)]
    layout = {column for name in header if (column := (setting_of(words(name)) or ("", 0))[0]) in LAYOUT}
    full = [row for row in rows if len(row) == len(header)]
    if not counters or not losses or len(layout) >= _MOST_LAYOUT or len(full) < _LEAST_ROWS or _are_named(full):
        return False
    has_losses = any(_number(row[at]) is not None for row in full for at in losses)
    return has_losses and _are_numbers(full) and any(_is_rising(row[at] for row in full) for at in counters)


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
