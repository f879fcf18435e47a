"""What `sweepscope nccl` reads: logs and dumps straight to the NCCL tables, with one processor core or several.

Threads share the work: they begin at once, pass nothing on, and what takes the time (reading, decompressing, columns of
polars and numpy) does not hold Python's lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import polars as pl

from pipeline.calls_file import CallsFile
from pipeline.discover import discover
from pipeline.errors import InputError
from pipeline.landing import Reader, canonical, list_files
from pipeline.nccl.block import Part
from pipeline.nccl.facts import Facts
from pipeline.nccl.flight import MAX_BYTES
from pipeline.nccl.scan import Scan, Scanned, scan_task
from pipeline.nccl.tables import TABLES
from pipeline.parse import lines
from pipeline.parse.protocol import Facts as RunFacts
from pipeline.read_nccl import NcclReader, limited
from pipeline.sniff import text_chunks

KINDS = ("log", "nccl", "flight_record")
OnFile = Callable[[str, int], None]

_HELD = 3
"""Blocks that another thread is given: the one it is at, and the next ones, lest it wait while this one scans."""


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
        workers: threads that scan the blocks of logs, this one included, which reads them, too.
        bench_op: operation of benchmarks that do not print theirs.
        calls: where every COLL line is to be written beside.
        on_plan: told ("bytes", size). on_file: told each file and its size.

    Raises:
        UsageError: a path does not exist. InputError: it cannot be listed.
    """
    entries = {entry.path: entry for path in paths for entry in list_files(path)}
    found = discover(entries.values(), is_simulated=lambda _place: False, named={canonical(path) for path in paths})
    found = found.filter(pl.col("kind").is_in(KINDS)).with_row_index("source").cast({"source": pl.Int64})
    on_plan("bytes", int(found["bytes"].sum() or 0))
    names = dict(found.select("source", "path").iter_rows())
    errors = []
    with _Scanners(workers, names, calls) as scanners:
        reader = NcclReader(scanners)
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


def _read_one(row: dict[str, Any], reader: NcclReader) -> None:
    source, path, chunks = row["source"], row["path"], Reader(row["path"], is_hashed=False).chunks()
    if row["kind"] == "flight_record":
        reader.add_dump(source, path, limited(chunks, path, MAX_BYTES))
        return
    for data, first_line, _ in lines.blocks(text_chunks(path, chunks)):
        reader.add(source, data, first_line)


class _Scanners:
    """Threads that scan blocks, this one included; writes the calls that they found, in order."""

    def __init__(self, number: int, names: dict[int, str], calls: CallsFile | None) -> None:
        """`names` are the paths of the files."""
        self._names, self._calls = names, calls
        self._others = number - 1
        self._pool = ThreadPoolExecutor(max(1, self._others))
        self._begun: deque[Future[Scanned]] = deque()

    def __enter__(self) -> _Scanners:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def give(self, parts: Sequence[Part]) -> Iterable[Facts]:
        wanted = {part.source: self._names[part.source] for part in parts} if self._calls else {}
        task = Scan(parts, wanted)
        if sum(not one.done() for one in self._begun) < self._others * _HELD:
            self._begun.append(self._pool.submit(scan_task, task))
        else:
            own: Future[Scanned] = Future()
            own.set_result(scan_task(task))
            self._begun.append(own)
        return self._told(lambda one: one.done())

    def rest(self) -> Iterable[Facts]:
        return self._told(lambda _one: True)

    def _told(self, is_next: Callable[[Future[Scanned]], bool]) -> Iterator[Facts]:
        """Facts in the order of the blocks."""
        while self._begun and is_next(self._begun[0]):
            facts, calls = self._begun.popleft().result()
            if self._calls is not None and calls is not None:
                self._calls.write(calls)
            yield facts
