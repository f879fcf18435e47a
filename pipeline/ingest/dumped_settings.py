"""Settings of configurations that logs of unknown trainers print as blocks with sections: `parallel:`, `tensor: 2`.

A line of such a block means something together with the lines above it only, which no rule of a dialect file can say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import polars as pl

from sweepscope.pipeline.logs.facts import SETTING_FACTS, Facts, in_order
from sweepscope.pipeline.logs.inference.documents import settings_of_document

_SOURCE = "argument_dump"
_Printed = tuple[int, str, str]
"""Line, dotted name and value."""


def with_dumped(facts: Facts, arguments: pl.DataFrame, known: Collection[int]) -> Facts:
    """`facts` with the settings of dumps whose names have sections, but for those that a log states in another way.

    Args:
        facts: of all logs.
        arguments: SETTING_FACTS rows of what they print under its own names.
        known: sources whose trainer is known: its reader knows better what they mean.
    """
    found = _dumped(arguments, known).join(facts.settings, on=["source", "name"], how="anti", maintain_order="left")
    return replace(facts, settings=in_order(pl.concat([facts.settings, found]))) if found.height else facts


def _dumped(arguments: pl.DataFrame, known: Collection[int]) -> pl.DataFrame:
    dumped = arguments.filter((pl.col("setting_source") == _SOURCE) & ~pl.col("source").is_in(list(known)))
    rows = [
        (source, line_no, name, value, _SOURCE)
        for (source,), part in dumped.group_by("source", maintain_order=True)
        for dump in _dumps(part.sort("line_no", maintain_order=True).select("line_no", "name", "value").rows())
        for line_no, name, value in _settings(dump)
    ]
    return pl.DataFrame(rows, schema=SETTING_FACTS, orient="row")


def _dumps(printed: list[_Printed]) -> Iterator[list[_Printed]]:
    """Each time that all arguments are printed, as a restarted training does again: a name of it comes once."""
    dump: list[_Printed] = []
    names: set[str] = set()
    for row in printed:
        if row[1] in names:
            yield dump
            dump, names = [], set()
        dump.append(row)
        names.add(row[1])
    yield dump


def _settings(dump: list[_Printed]) -> Iterator[_Printed]:
    if any("." in name for _, name, _ in dump):
        found = settings_of_document((name, value) for _, name, value in dump)
        yield from ((dump[0][0], column, value) for column, value in found.items())
