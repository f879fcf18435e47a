"""Files of `-x FILE` of rccl-tests: one record per size and placement, as CSV (`-Z csv`) or JSON (`-Z json`).

Format: rccl-tests src/common.cu Reporter. JSON records come one per line, in newer versions as a list and with the
cycle's number. With MPI a record has nodes, ranks and GPUs per rank, without it the GPUs; the header of the CSV names
no nodes although its rows hold them. There are no counts of elements and no roots. A job that was killed leaves whole
records and a cut one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping

from sweepscope.pipeline.nccl.bench.printed_table import OPS
from sweepscope.pipeline.nccl.facts import Facts, Notes

_JSON = re.compile(
    r'\s*(?:\[\s*)?\{\s*"(?:numCycle"\s*:\s*\d+\s*,\s*")?name"\s*:\s*"\w+"\s*,\s*"(?:nodes|ranks|gpus|size)"'
)
_CSV = re.compile(
    r"\s*(?:numCycle\s*,\s*)?(?:collective|name)\s*,[\w\s,]*\bsize\s*,\s*type\s*,\s*redop\s*,\s*inplace\s*,", re.I
)
_BETWEEN = re.compile(r"[\s,\[\]]*")
_PROGRAMS = {op.lower(): program for program, op in reversed(OPS.items())}
_NAMES = {"collective": "name", "#wrong": "wrong"}
_HEADER = "size count type redop time algbw busbw #wrong time algbw busbw #wrong"
_FIGURES = ("time", "algbw", "busbw", "wrong")
_TABLE, _ROW = ("name", "nodes", "ranks", "gpus"), ("numcycle", "size", "type", "redop")
Record = Mapping[str, str]


def is_bench(head: str) -> bool:
    """Whether a text begins with such records."""
    return _JSON.match(head) is not None or _CSV.match(head) is not None


def read_bench(text: str, source: int) -> Facts:
    """The facts of such records: a row per size, with both placements, numbered from 1; cut records are left out."""
    notes = Notes(source)
    halves: dict[str, str] = {}
    table: tuple[str | None, ...] = ()
    last: tuple[str | None, ...] = ()
    number = 0
    for record in _csv(text) if _CSV.match(text) else _json(text):
        placement, name = record.get("inplace", ""), record.get("name", "").lower()
        if placement not in ("0", "1") or name not in _PROGRAMS or not _is_size(record.get("size")):
            continue
        this = tuple(record.get(key) for key in (*_TABLE, *_ROW))
        if this != last or placement in halves:
            number += _add_row(last, halves, number + 1, notes)
            halves, last = {}, this
        if this[: len(_TABLE)] != table:
            table = this[: len(_TABLE)]
            _mark_table(record, _PROGRAMS[name], number + 1, notes)
        halves[placement] = " ".join(_figure(record.get(key)) for key in _FIGURES)
    _add_row(last, halves, number + 1, notes)
    return notes.facts()


def _mark_table(record: Record, program: str, number: int, notes: Notes) -> None:
    """Add the marks that precede a printed table whose first row has this `number`."""
    notes.add("bench_mark", number, "program", program)
    ranks, nodes = record.get("ranks", record.get("gpus")), record.get("nodes", "1" if "gpus" in record else None)
    if _whole(ranks):
        notes.add("bench_mark", number, "ranks", f"{ranks} {nodes if _whole(nodes) else ''}".strip())
    notes.add("bench_mark", number, "header", _HEADER)


def _add_row(key: tuple[str | None, ...], halves: Mapping[str, str], number: int, notes: Notes) -> int:
    """How many rows were added: one, or none where nothing was measured."""
    if not halves:
        return 0
    _, size, datatype, reduction = key[len(_TABLE) :]
    figures = " ".join(halves.get(placement, "- - - -") for placement in ("0", "1"))
    notes.add("bench_row", number, int(size or 0), None, datatype, reduction, figures, False)
    return 1


def _json(text: str) -> Iterator[Record]:
    decoder, at = json.JSONDecoder(), 0
    while True:
        at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too
        try:
            record, at = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            return
        if not isinstance(record, dict):
            return
        yield {key.lower(): str(value) for key, value in record.items()}


def _csv(text: str) -> Iterator[Record]:
    lines = text.strip().splitlines()
    names = [_NAMES.get(name, name) for name in _cells(lines[0].lower())]
    if "ranks" in names and "nodes" not in names:
        names.insert(names.index("ranks"), "nodes")
    for line in lines[1:]:
        cells = _cells(line)
        if len(cells) == len(names):
            yield dict(zip(names, cells, strict=True))


def _cells(line: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(",")]


def _whole(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"\d{1,18}", text) is not None


def _is_size(text: str | None) -> bool:
    """Whether a record has a size, also an impossible one, which `ingest.validate` rejects."""
    return text is not None and re.fullmatch(r"-?\d{1,18}", text) is not None


def _figure(text: str | None) -> str:
    """A number as printed; `-` for `N/A` and what was cut. `ingest.validate` judges its bounds."""
    try:
        return text if text is not None and math.isfinite(float(text)) else "-"
    except ValueError:
        return "-"
