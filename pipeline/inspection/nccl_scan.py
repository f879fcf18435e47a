"""NCCL tables of logs and dumps without a store, read by one process or several: the reading of `sweepscope nccl`."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import polars as pl

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.ingest.nccl_collector import NcclCollector
from sweepscope.pipeline.inspection.calls_parquet import CallsFile
from sweepscope.pipeline.inspection.file_regions import Region, regions_of, scan_any
from sweepscope.pipeline.io.bounded import bounded, text_of
from sweepscope.pipeline.io.file_names import printable
from sweepscope.pipeline.io.files import canonical, list_files
from sweepscope.pipeline.io.meter import metered
from sweepscope.pipeline.io.process_pool import ProcessPool
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.text_encoding import SNIFF_BYTES, text_chunks
from sweepscope.pipeline.logs.facts import Facts as RunFacts
from sweepscope.pipeline.nccl.bench import formats
from sweepscope.pipeline.nccl.facts import Facts
from sweepscope.pipeline.nccl.lines.block import Part
from sweepscope.pipeline.nccl.lines.scan import Scan, Scanned
from sweepscope.pipeline.nccl.tables.nccl_tables import TABLES
from sweepscope.pipeline.text import lines

KINDS = ("log", "nccl", "flight_record")
OnFile = Callable[[str, int], None]


def read_network(
    paths: Sequence[str],
    *,
    scanners: ProcessPool[Scan | Region, Scanned] | None = None,
    bench_op: str | None = None,
    calls: CallsFile | None = None,
    on_plan: OnFile = lambda _what, _size: None,
    on_file: OnFile = lambda _path, _size: None,
) -> tuple[dict[str, pl.DataFrame], list[str]]:
    """Every NCCL table of the files under `paths`, empty ones included, and messages on files that cannot be read.

    Args:
        scanners: processes that share the work of `scan_any`, this one included; by default this one alone.
        bench_op: operation of benchmarks that do not print theirs.
        calls: file for a row per COLL line.
        on_plan: called with ("bytes", size). on_file: called with each path and its size.

    Raises:
        UsageError: a path does not exist. InputError: it cannot be listed.
    """
    entries = {entry.path: entry for path in paths for entry in list_files(path)}
    found = discover(
        entries.values(), is_simulated=lambda _path: False, named={printable(canonical(path)) for path in paths}
    )
    found = found.filter(pl.col("kind").is_in(KINDS)).with_row_index("source").cast({"source": pl.Int64})
    on_plan("bytes", int(found["bytes"].sum() or 0))
    names = dict(found.select("source", "path").iter_rows())
    errors = []
    shared = _Scanners(scanners or ProcessPool(scan_any, 1), names, calls)
    reader = NcclCollector(shared)
    for row in found.iter_rows(named=True):
        try:
            _read_one(row, reader, shared)
        except (InputError, ValueError, RecursionError) as error:
            reader.discard(row["source"])
            wrong = f"{row['path']} does not hold what its name promises: {error}"
            reason = str(error) if isinstance(error, InputError) else wrong
            errors.append(reason.split("\n", 1)[0])
        on_file(row["path"], row["bytes"])
    tables = reader.tables(found, RunFacts.empty(), bench_op=bench_op)
    return {name: tables.get(name, table.empty()) for name, table in TABLES.items()}, errors


def _read_one(row: dict[str, Any], reader: NcclCollector, scanners: _Scanners) -> None:
    source, path, file = row["source"], row["path"], Reader(row["path"], is_hashed=False)
    if row["kind"] == "flight_record":
        with metered(path, lambda: file.unpacked_bytes):
            reader.add_dump(source, path, b"".join(bounded(file.chunks())))
        return
    if regions := scanners.regions(source):
        for facts in scanners.read(regions):
            reader.add_facts(facts)
        return
    texts = text_chunks(path, file.chunks())
    head = next(texts, b"")
    whole = itertools.chain([head], texts)
    if read := formats.reader_of(head[:SNIFF_BYTES].decode("utf-8-sig", "replace")):
        with metered(path, lambda: file.unpacked_bytes):
            reader.add_facts(read(text_of(whole), source))
        return
    for data, first_line, _ in lines.blocks(whole):
        reader.add(source, data, first_line)


class _Scanners:
    """Scans blocks in a pool of processes, and writes the calls found in them, in order."""

    def __init__(
        self, pool: ProcessPool[Scan | Region, Scanned], paths: dict[int, str], calls: CallsFile | None
    ) -> None:
        self._pool, self._paths, self._calls = pool, paths, calls
        self._lines: dict[int, int] = defaultdict(int)

    def regions(self, source: int) -> list[Region]:
        """Regions of a file for several processes; none where one reads it."""
        is_shared = self._pool.number > 1
        return regions_of(source, self._paths[source], with_calls=self._calls is not None) if is_shared else []

    def read(self, regions: Iterable[Region]) -> Iterator[Facts]:
        for region in regions:
            yield from self._facts(self._pool.submit(region))

    def submit(self, parts: Sequence[Part]) -> Iterable[Facts]:
        wanted = {part.source: self._paths[part.source] for part in parts} if self._calls else {}
        return self._facts(self._pool.submit(Scan(parts, wanted)))

    def drain(self) -> Iterable[Facts]:
        return self._facts(self._pool.drain())

    def _facts(self, scanned: Iterable[Scanned]) -> Iterator[Facts]:
        for result in scanned:
            numbered = result
            if result.source is not None:
                numbered = result.shifted(self._lines[result.source])
                self._lines[result.source] += result.lines
            if self._calls is not None and numbered.calls is not None:
                self._calls.write(numbered.calls)
            yield numbered.facts
