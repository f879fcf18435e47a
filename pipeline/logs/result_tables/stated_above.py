"""What a document states of all runs of a table, above it: in sentences and lists (`8x H100`, `seq len 8192`)."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sweepscope.pipeline.logs.inference.settings import choose
from sweepscope.pipeline.logs.inference.stated import stated
from sweepscope.pipeline.logs.result_tables.cells import word_of

_OF_ALL = ("seq_len", "gbs", "gas", "mbs", "accelerator", "num_nodes", "gpus_per_node", "precision", "model")
"""Columns that hold for all runs where a document states one value; degrees of parallelism are what differs."""
_FENCE = re.compile(r"\s*(?:```|~~~)")
_EMPHASIS = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}(?!\w)")
_FULL_STOP = re.compile(r"\.(?=\s|$)")
_EXAMPLE = re.compile(r"\s{4,}\S|\s*(?:\$|>>>|#!)")
"""Lines of code: what they do is no run of the table."""


@dataclass(frozen=True)
class StatedAbove:
    """A value for all runs of a table: its column, and the line that states it."""

    column: str
    value: Any
    name: str
    line_no: int
    text: str


def stated_above(lines: Sequence[tuple[int, str]], taken: Collection[int], header: int) -> tuple[StatedAbove, ...]:
    """What the lines above a header state once, or alike, of columns that a table may leave out.

    Args:
        lines: of the document, with their numbers.
        taken: numbers of lines that are of tables.
        header: number of the table's first line.
    """
    above, is_code = [], False
    for number, text in lines:
        if number >= header:
            break
        is_fence = _FENCE.match(text) is not None
        is_code ^= is_fence
        if not (is_code or is_fence or number in taken or _EXAMPLE.match(text)):
            above.append((number, _FULL_STOP.sub(";", _EMPHASIS.sub("", text))))
    found = []
    for one in choose(each for each in stated(above) if each.form != "option"):
        source = one.sources[0]
        value = word_of(one.column, source.name, one.value) if one.is_used and one.column in _OF_ALL else None
        if value is not None:
            found.append(StatedAbove(one.column, value, source.name or source.printed, source.line_no, source.text))
    return tuple(found)
