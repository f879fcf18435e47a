"""The rows of a table that is written as JSON: a line a run, or one list of all runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Row = tuple[int, list[str]]
"""A line, or the place in a list from 1 on, and the cells of the row."""


def is_json(text: str) -> bool:
    """Whether a text begins like JSON."""
    return text.lstrip()[:1] in ("[", "{")


def rows_of(text: str) -> list[Row]:
    """The header and the rows of records; none where the text has no records.

    A value within a section has its own name where that is the name of one value only, else that of its sections, too.

    >>> rows_of('{"config": {"tp": 2}, "tok_s": 10}\\n{"config": {"tp": 4}, "ok": true}')
    [(0, ['tp', 'tok_s', 'ok']), (1, ['2', '10', '']), (2, ['4', '', 'true'])]
    """
    records = [(line, dict(_values(record))) for line, record in _records(text) if isinstance(record, Mapping)]
    names = list(dict.fromkeys(name for _, record in records for name in record))
    last = [name.rpartition(".")[2] for name in names]
    header = [short if last.count(short) == 1 else name for name, short in zip(names, last, strict=True)]
    return [(0, header), *((line, [record.get(name, "") for name in names]) for line, record in records)]


def _records(text: str) -> Iterator[tuple[int, Any]]:
    """Records with their lines; lines that are no JSON are left out. Raises ValueError for a damaged list."""
    if text.lstrip().startswith("["):
        yield from enumerate(json.loads(text), 1)
        return
    for line, one in enumerate(text.split("\n"), 1):
        if one.strip():
            try:
                yield line, json.loads(one)
            except ValueError:
                continue


def _values(record: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, str]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _values(value, f"{section}{name}.")
        elif isinstance(value, str):
            yield f"{section}{name}", value.strip()
        elif value is not None and not isinstance(value, list):
            yield f"{section}{name}", json.dumps(value)
