"""What a batch of files says about the network, gathered beside the training logs: the shell around `pipeline.nccl`."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import polars as pl

from pipeline.discover import discover
from pipeline.errors import InputError
from pipeline.landing import Reader, canonical, list_files
from pipeline.nccl.compact import compact
from pipeline.nccl.facts import Facts
from pipeline.nccl.flight import MAX_BYTES, records
from pipeline.nccl.names import dump_rank
from pipeline.nccl.scan import scan
from pipeline.nccl.tables import TABLES, has_content, nccl_tables
from pipeline.parse import engine, lines
from pipeline.parse.protocol import Facts as RunFacts
from pipeline.sniff import text_chunks

_MERGE_AT = 64
"""Blocks of a file whose facts are held one by one; then they are put together, so that memory stays bounded."""


class NcclReader:
    """Collects the facts of every file of a batch, block by block."""

    def __init__(self) -> None:
        self._facts: dict[int, list[Facts]] = defaultdict(list)
        self._dumps: dict[int, pl.DataFrame] = {}

    def add(self, source: int, data: bytes, first_line: int) -> None:
        """A block of whole lines of a file."""
        self.add_facts(source, scan(data, first_line))

    def add_facts(self, source: int, facts: Facts) -> None:
        """The facts of a block."""
        if facts:
            blocks = self._facts[source]
            blocks.append(facts)
            if len(blocks) >= _MERGE_AT:
                self._facts[source] = [compact(Facts.merge(blocks))]

    def add_dump(self, source: int, path: str, data: bytes) -> int:
        """A dump of the flight recorder; returns how many of its records are none. Raises ValueError for no dump."""
        self._dumps[source], broken = records(data, rank=dump_rank(path))
        return broken

    def frames(self, source: int) -> dict[str, pl.DataFrame]:
        """What a file has said so far, by kind, for whoever reads on in it later."""
        return dict(compact(Facts.merge(self._facts.get(source, []))).frames)

    def restore(self, source: int, frames: Mapping[str, pl.DataFrame]) -> None:
        """Take over what the lines before said."""
        if frames:
            self._facts[source].append(Facts(frames))

    def discard(self, source: int) -> None:
        """Forget a file that turned out to be unreadable."""
        self._facts.pop(source, None)
        self._dumps.pop(source, None)

    def with_kinds(self, sources: pl.DataFrame, said: engine.Extract) -> pl.DataFrame:
        """`sources` in which logs that hold NCCL output and no training run are of kind `nccl`.

        Such are files that no dialect recognises and that give no setting and no step, but hold nccl-tests tables, or
        consist of NCCL lines for the greater part. A line of PyTorch's watchdog is the end of a training run.
        """
        ends = dict(said.ends.group_by("source").agg(pl.col("last_line").max()).iter_rows())
        telling = {*said.dialect_of, *said.facts.steps["source"], *said.facts.settings["source"]}
        only = [
            source
            for source, blocks in self._facts.items()
            if source not in telling and _is_only_nccl(Facts.merge(blocks), ends.get(source, 0))
        ]
        is_only = pl.col("source").is_in(only) & (pl.col("kind") == "log")
        return sources.with_columns(kind=pl.when(is_only).then(pl.lit("nccl")).otherwise("kind"))

    def tables(self, sources: pl.DataFrame, said: RunFacts, *, bench_op: str | None = None) -> dict[str, pl.DataFrame]:
        """Rows of every NCCL table.

        Args:
            said: the settings among them may tell the number of ranks.
            bench_op: operation of benchmarks that do not print theirs.
        """
        sizes = said.settings.filter(pl.col("name") == "num_gpus").select(
            "source", pl.col("value").cast(pl.Int64, strict=False)
        )
        facts = {source: Facts.merge(blocks) for source, blocks in self._facts.items()}
        return nccl_tables(
            sources, facts, num_ranks=dict(sizes.drop_nulls().iter_rows()), dumps=self._dumps, bench_op=bench_op
        )


def _is_only_nccl(facts: Facts, last_line: int) -> bool:
    if not has_content(facts) or not _of_kinds(facts, ("timeout", "status", "dump", "stuck")).is_empty():
        return False
    lines = facts["tally"].filter(pl.col("name").is_in(["lines", "summed"]))["lines"].sum()
    return not facts["bench_row"].is_empty() or not facts["bench_mark"].is_empty() or 2 * lines >= last_line


def _of_kinds(facts: Facts, kinds: Iterable[str]) -> pl.DataFrame:
    return facts["watchdog"].filter(pl.col("kind").is_in(list(kinds)))


KINDS = ("log", "nccl", "flight_record")
OnFile = Callable[[str, int], None]


def read_network(
    paths: Sequence[str],
    *,
    workers: int = 1,
    bench_op: str | None = None,
    on_plan: OnFile = lambda _what, _size: None,
    on_file: OnFile = lambda _path, _size: None,
) -> tuple[dict[str, pl.DataFrame], list[str]]:
    """Every NCCL table of the files under `paths`, empty ones included, and what could not be read.

    Args:
        workers: threads that scan the blocks of a log; what they spend their time in runs beside other threads.
        bench_op: operation of benchmarks that do not print theirs.
        on_plan: told ("bytes", size). on_file: told each file and its size.

    Raises:
        UsageError: a path does not exist. InputError: it cannot be listed.
    """
    entries = {entry.path: entry for path in paths for entry in list_files(path)}
    found = discover(entries.values(), is_simulated=lambda _place: False, named={canonical(path) for path in paths})
    found = found.filter(pl.col("kind").is_in(KINDS)).with_row_index("source").cast({"source": pl.Int64})
    on_plan("bytes", int(found["bytes"].sum() or 0))
    reader, errors = NcclReader(), []
    for row in found.iter_rows(named=True):
        try:
            _read_one(row, reader, workers)
        except (InputError, ValueError, RecursionError) as error:
            reader.discard(row["source"])
            reason = str(error) if isinstance(error, InputError) else f"{row['path']} is no dump: {error}"
            errors.append(reason.split("\n", 1)[0])
        on_file(row["path"], row["bytes"])
    tables = reader.tables(found, RunFacts.empty(), bench_op=bench_op)
    return {name: tables.get(name, table.empty()) for name, table in TABLES.items()}, errors


def _read_one(row: dict[str, Any], reader: NcclReader, workers: int) -> None:
    source, path, chunks = row["source"], row["path"], Reader(row["path"], is_hashed=False).chunks()
    if row["kind"] == "flight_record":
        reader.add_dump(source, path, limited(chunks, path, MAX_BYTES))
        return
    blocks = ((data, first) for data, first, _ in lines.blocks(text_chunks(path, chunks)))
    if workers == 1:
        for data, first_line in blocks:
            reader.add(source, data, first_line)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Facts]] = deque()
        for data, first_line in blocks:
            waiting.append(pool.submit(scan, data, first_line))
            if len(waiting) > workers:
                reader.add_facts(source, waiting.popleft().result())
        for future in waiting:
            reader.add_facts(source, future.result())


def limited(chunks: Iterable[bytes], path: str, most: int) -> bytes:
    """All bytes of a file that must be read whole. Raises InputError for a larger one."""
    parts, size = [], 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise InputError(f"{path} is larger than {most >> 20} MiB, too large for a dump.")
        parts.append(chunk)
    return b"".join(parts)
