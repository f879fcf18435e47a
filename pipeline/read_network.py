"""What `sweepscope nccl` reads: logs and dumps straight to the NCCL tables, in one process or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline.calls_file import CallsFile
from pipeline.discover import discover
from pipeline.errors import InputError
from pipeline.landing import Reader, canonical, list_files
from pipeline.nccl.block import Part
from pipeline.nccl.facts import Facts
from pipeline.nccl.flight import MAX_BYTES
from pipeline.nccl.scan import Scan, scan_task
from pipeline.nccl.tables import TABLES
from pipeline.parse import lines
from pipeline.parse.protocol import Facts as RunFacts
from pipeline.read_nccl import NcclReader, limited
from pipeline.sniff import text_chunks
from pipeline.workers import Workers

KINDS = ("log", "nccl", "flight_record")
OnFile = Callable[[str, int], None]

_SHARED_BYTES = 32 << 20
"""Less is read sooner than another process has begun."""

_PACKED = 5
"""Bytes of a log per byte of its compressed file, roughly."""


def read_network(
    paths: Sequence[str],
    *,
    workers: int = 1,
    bench_op: str | None = None,
    calls: CallsFile | None = None,
    on_plan: OnFile = lambda _what, _size: None,
    on_file: OnFile = lambda _path, _size: None,
) -> tuple[dict[str, pl.DataFrame], list[str]]:
    """Every NCCL table of the files under `paths`, empty ones included, and what could not be read.

    Args:
        workers: processes that scan the blocks of logs, this one included. Little is read by this one alone.
        bench_op: operation of benchmarks that do not print theirs.
        calls: where every COLL line is to be written beside.
        on_plan: told ("bytes", size). on_file: told each file and its size.

    Raises:
        UsageError: a path does not exist. InputError: it cannot be listed. WorkerError: another process failed.
    """
    entries = {entry.path: entry for path in paths for entry in list_files(path)}
    found = discover(entries.values(), is_simulated=lambda _place: False, named={canonical(path) for path in paths})
    found = found.filter(pl.col("kind").is_in(KINDS)).with_row_index("source").cast({"source": pl.Int64})
    on_plan("bytes", int(found["bytes"].sum() or 0))
    names = dict(found.select("source", "path").iter_rows())
    errors = []
    with Workers(scan_task, workers if _size(found) >= _SHARED_BYTES else 1) as pool:
        reader = NcclReader(_Shared(pool, names, calls))
        for row in found.iter_rows(named=True):
            try:
                _read_one(row, reader)
            except (InputError, ValueError, RecursionError) as error:
                reader.discard(row["source"])
                reason = str(error) if isinstance(error, InputError) else f"{row['path']} is no dump: {error}"
                errors.append(reason.split("\n", 1)[0])
            on_file(row["path"], row["bytes"])
        tables = reader.tables(found, RunFacts.empty(), bench_op=bench_op)
    return {name: tables.get(name, table.empty()) for name, table in TABLES.items()}, errors


def _size(found: pl.DataFrame) -> int:
    """Bytes of text, roughly."""
    is_packed = pl.col("path").str.contains(r"\.(gz|zst)$")
    told = found.select(pl.when(is_packed).then(pl.col("bytes") * _PACKED).otherwise("bytes").sum()).item()
    return int(told)


def _read_one(row: dict[str, Any], reader: NcclReader) -> None:
    source, path, chunks = row["source"], row["path"], Reader(row["path"], is_hashed=False).chunks()
    if row["kind"] == "flight_record":
        reader.add_dump(source, path, limited(chunks, path, MAX_BYTES))
        return
    for data, first_line, _ in lines.blocks(text_chunks(path, chunks)):
        reader.add(source, data, first_line)


@dataclass(frozen=True)
class _Shared:
    """Has blocks scanned by several processes; writes the calls that they found, in order."""

    pool: Workers[Scan, tuple[Facts, pl.DataFrame | None]]
    names: dict[int, str]
    calls: CallsFile | None

    def give(self, parts: Sequence[Part]) -> Iterable[Facts]:
        wanted = {part.source: self.names[part.source] for part in parts} if self.calls else {}
        return self._told(self.pool.give(Scan(parts, wanted)))

    def rest(self) -> Iterable[Facts]:
        return self._told(self.pool.rest())

    def _told(self, results: Iterable[tuple[Facts, pl.DataFrame | None]]) -> Iterator[Facts]:
        for facts, rows in results:
            if self.calls is not None and rows is not None:
                self.calls.write(rows)
            yield facts
