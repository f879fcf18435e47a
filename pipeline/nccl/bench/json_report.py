"""Files of `-J FILE` of nccl-tests (src/util.cu, since 2.17): one JSON document with the run and its table.

Figures have more digits than the printed table, and the environment is included. Rows are numbered from 1, for want of
lines. A job that was killed leaves a document without its end, of which the whole rows are read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from sweepscope.pipeline.nccl.bench.printed_table import OPS
from sweepscope.pipeline.nccl.facts import Facts, Notes

_HEAD = re.compile(r'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"start_time"\s*:\s*"[^"]*"\s*,\s*"args"\s*:\s*\[')
_PROGRAM = re.compile(rf"(?:^|/)({'|'.join(OPS)})_perf")
_SETTING = re.compile(r"([NR]CCL_\w+)=(.*)", re.DOTALL)
_NO_NUMBER = re.compile(r":(-?(?:inf|nan))(?=[,}\]])")
_HEADER = "size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
_RESULTS = '"results":['
_RANK_CHARS, _MOST_RANKS = 80, 1 << 16
_MOST_VALUE_CHARS, _MOST = 200, 1 << 62

Document = Mapping[str, Any]


def is_bench(head: str) -> bool:
    """Whether a text begins such a document."""
    return _HEAD.match(head) is not None


def read_bench(text: str, source: int) -> Facts:
    """The facts of a document. Raises ValueError for another text and a damaged one."""
    document = _loaded(text)
    notes = Notes(source)
    _mark_run(document, notes)
    rows = _dicts(document.get("results"))
    for number, row in enumerate(rows, start=1):
        _add_row(row, number, notes)
    average = _dict(document.get("average_bus_bandwidth")).get("bandwidth")
    if _number(average) is not None:
        notes.add("bench_mark", len(rows) + 1, "average", str(average))
    return notes.facts()


def _loaded(text: str) -> Document:
    text = _NO_NUMBER.sub(":null", text)
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        head, begin, rows = text.partition(_RESULTS)
        found = json.loads(head + begin + "]}") | {"results": _whole(rows)} if begin else None
    if not isinstance(found, dict):
        raise ValueError("not a document of nccl-tests")
    return found


def _whole(text: str) -> list[Any]:
    """The values of a JSON list, up to one that was cut."""
    decoder, at = json.JSONDecoder(), 0
    found: list[Any] = []
    while True:
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            return found
        found.append(value)
        at = end + 1  # after the comma


def _mark_run(document: Document, notes: Notes) -> None:
    """Add the marks that precede a printed table."""
    command = next(iter(_words(document.get("args"))), "")
    if program := _PROGRAM.search(command):
        notes.add("bench_mark", 0, "program", program[1])
    if _number(version := document.get("nccl_version")):
        notes.add("bench_mark", 0, "library", str(version))
    for variable in _words(document.get("env")):
        if setting := _SETTING.match(variable):
            notes.count("env", 0, setting[1], setting[2][:_MOST_VALUE_CHARS])
    config = _dict(document.get("config"))
    # Of each process the first device is listed.
    of_each = int(max(_number(config.get("nthreads")) or 1, 1) * max(_number(config.get("ngpus")) or 1, 1))
    for device in _dicts(config.get("devices")):
        first = _number(device.get("rank"))
        if first is not None and of_each <= _MOST_RANKS:
            for rank in range(int(first), int(first) + of_each):
                name = f"{device.get('hostname')} {str(device.get('device_info') or '')[:_RANK_CHARS]}"
                notes.add("bench_mark", 0, "rank", f"{rank} {name}")
    notes.add("bench_mark", 0, "header", _HEADER)


def _add_row(row: Document, number: int, notes: Notes) -> None:
    size, count = _number(row.get("size")), _number(row.get("count"))
    if size is None or count is None:
        return
    halves = [_half(_dict(row.get(name))) for name in ("out_of_place", "in_place")]
    figures = " ".join((str(row.get("root") or "-1").strip(), *halves))
    is_torn = False
    notes.add("bench_row", number, int(size), int(count), str(row.get("type")), str(row.get("redop")), figures, is_torn)


def _half(half: Document) -> str:
    figures = (half.get("time", half.get("cpu_time")), half.get("alg_bw"), half.get("bus_bw"), half.get("nwrong"))
    return " ".join("-" if _number(figure) is None else str(figure) for figure in figures)


def _number(value: object) -> float | int | None:
    """A number that a column can hold; `ingest.validate` judges its bounds."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value if -_MOST < value < _MOST else None


def _dict(value: object) -> Document:
    return value if isinstance(value, dict) else {}


def _dicts(value: object) -> list[Document]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _words(value: object) -> Iterable[str]:
    return (word for word in value if isinstance(word, str)) if isinstance(value, list) else ()
