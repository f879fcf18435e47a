"""Steps and kernels in a report of Nsight Systems that `nsys export --type sqlite` has written.

Format: the "SQLite Schema Reference" of NVIDIA's user guide of Nsight Systems. `CUPTI_ACTIVITY_KIND_KERNEL` (`_MEMCPY`,
`_MEMSET`) have `start` and `end` in nanoseconds, `shortName` in `StringIds`, and since 2021 `globalPid`; `NVTX_EVENTS`
has ranges with `text`, or `textId` in `StringIds`, and `globalTid`. Both numbers hold the process id in bits 24 to 47
("Serialized process and thread identifiers"). Tables are only there where something was recorded. One report may hold
all processes that a launcher started. A range that was open when recording stopped is exported with the end of the
recording as its own, which nothing tells apart; `nsys stats` counts it alike.

A range is a step when its whole name is a word for one and a number (`ProfilerStep#7`, `iteration 7`, `train_step: 7`):
frameworks have no name in common. Ranges of other names are left alone.
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from sweepscope.pipeline.memory.profiler.traced_work import Span, TracedWork

PARSER = "nsys"

_KERNELS, _RANGES, _STRINGS = "CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS", "StringIds"
_COPIES = ("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET")
_STEP = re.compile(
    r"(?i)(?:profiler|train(?:ing)?|global|optimizer)?[ _]?(?:step|iter(?:ation)?)\s*[#:=_ ]?\s*(\d{1,12})"
)
_US_PER_NS = 1e-3

Tables = Mapping[str, Collection[str]]
"""Columns by table."""


def is_export(tables: Tables) -> bool:
    """Whether a database with these tables is a report with anything of kernels or ranges."""
    has_times = any({"start", "end"} <= set(tables.get(name, ())) for name in (_KERNELS, _RANGES))
    return has_times and {"id", "value"} <= set(tables.get(_STRINGS, ()))


def read_export(connection: sqlite3.Connection, tables: Tables) -> dict[str, list[dict[str, Any]]]:
    """Rows of `trace_steps` and `trace_collectives` by process, without what names the file.

    Collectives have their kernels also where no range is a step; `traced_steps` is NULL then. Raises ValueError where
    kernels have no names, or the database fails.
    """
    processes: dict[int | None, TracedWork] = defaultdict(TracedWork)
    try:
        _add_kernels(connection, tables, processes)
        for pid, number, span in _steps(connection, tables):
            processes[pid].cpu_steps[number] = span
    except sqlite3.Error as error:
        raise ValueError(f"it is no export of Nsight Systems that can be read: {error}") from error
    found: dict[str, list[dict[str, Any]]] = {"trace_steps": [], "trace_collectives": []}
    for pid, work in sorted(processes.items(), key=lambda item: (item[0] is None, item[0])):
        for table, rows in work.rows(needs_steps=False).items():
            found[table] += [{"pid": pid, **row} for row in rows]
    return found


def _add_kernels(connection: sqlite3.Connection, tables: Tables, processes: Mapping[int | None, TracedWork]) -> None:
    columns = set(tables.get(_KERNELS, ()))
    if columns:
        if "shortName" not in columns:
            raise ValueError(f"{_KERNELS} has no column shortName: export it with Nsight Systems 2019.3 or newer")
        sql = f"""SELECT {_process("globalPid", columns)}, "start", "end", value
FROM {_KERNELS} LEFT JOIN {_STRINGS} ON {_STRINGS}.id = shortName"""
        for pid, begin, end, name in connection.execute(sql):
            processes[pid].add_kernel(str(name or ""), _span(begin, end))
    for table in _COPIES:
        columns = set(tables.get(table, ()))
        if {"start", "end"} <= columns:
            for pid, begin, end in connection.execute(
                f"""SELECT {_process("globalPid", columns)}, "start", "end" FROM {table}"""
            ):
                processes[pid].add_copy(_span(begin, end))


def _steps(connection: sqlite3.Connection, tables: Tables) -> Iterator[tuple[int | None, int, Span]]:
    """Process, number and span of the ranges that are steps, the outermost of each number."""
    columns = set(tables.get(_RANGES, ()))
    names = [name for name, needed in (("text", "text"), ("value", "textId")) if needed in columns]
    if not names or not {"start", "end"} <= columns:
        return
    name = f"coalesce({', '.join(names)}, NULL)"
    join = f"LEFT JOIN {_STRINGS} ON {_STRINGS}.id = textId" if "textId" in columns else ""
    sql = f"""SELECT {_process("globalTid", columns)}, "start", "end", {name} AS name
FROM {_RANGES} {join} WHERE "end" IS NOT NULL AND name IS NOT NULL ORDER BY "end" - "start" """
    for pid, begin, end, text in connection.execute(sql):
        if step := _STEP.fullmatch(str(text).strip()):
            yield pid, int(step[1]), _span(begin, end)


def _process(column: str, columns: Collection[str]) -> str:
    """SQL of the process id in a serialized identifier; NULL in exports that have none."""
    return f"({column} >> 24) & 16777215" if column in columns else "NULL"


def _span(begin: int, end: int) -> Span:
    return begin * _US_PER_NS, end * _US_PER_NS
