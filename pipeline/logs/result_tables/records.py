"""The rows of a table that is written as JSON: a line a run, one list of all runs, runs by name, or a single run."""

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
    >>> rows_of('{\\n"a": {"tp": 2},\\n"b": {"tp": 4}}'), rows_of('{\\n"config": {"tp": 2}, "tok_s": 10}')
    ([(0, ['name', 'tp']), (1, ['a', '2']), (2, ['b', '4'])], [(0, ['tp', 'tok_s']), (1, ['2', '10'])])
    """
    records = [(line, dict(_values(record))) for line, record in _records(text) if isinstance(record, Mapping)]
    names = list(dict.fromkeys(name for _, record in records for name in record))
    last = [name.rpartition(".")[2] for name in names]
    header = [short if last.count(short) == 1 else name for name, short in zip(names, last, strict=True)]
    return [(0, header), *((line, [record.get(name, "") for name in names]) for line, record in records)]


def is_open_object(start: str) -> bool:
    """Whether a text begins like one object of several lines, which shows at its end only what it is."""
    first = start.lstrip().split("\n", 1)[0].strip()
    return first.startswith("{") and not first.endswith("}")


def _records(text: str) -> Iterator[tuple[int, Any]]:
    """Records with their lines, or places; lines that are no JSON are left out. Raises ValueError for damaged JSON."""
    if text.lstrip().startswith("["):
        yield from enumerate(json.loads(text), 1)
    elif is_open_object(text):
        yield from enumerate(_of_object(json.loads(text)), 1)
    else:
        for line, one in enumerate(text.split("\n"), 1):
            if one.strip():
                try:
                    yield line, json.loads(one)
                except ValueError:
                    continue


def _of_object(whole: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Runs by name, which have the same values each; else the object is one run, whatever sections it has."""
    parts = list(whole.values())
    are_runs = len(parts) > 1 and all(isinstance(one, Mapping) and one.keys() == parts[0].keys() for one in parts)
    return [{"name": name, **one} for name, one in whole.items()] if are_runs else [whole]


def _values(record: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, str]]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _values(value, f"{section}{name}.")
        elif isinstance(value, str):
            yield f"{section}{name}", value.strip()
        elif value is not None and not isinstance(value, list):
            yield f"{section}{name}", json.dumps(value)
