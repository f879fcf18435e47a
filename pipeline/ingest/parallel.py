"""One batch read by several processes: each parses shards of it, whole run directories, and the rows are merged.

The processes are this machine's, or those of a cluster (`Cluster`; `dask_cluster` has one), and the rows the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import ceil
from pathlib import Path
from typing import Protocol

import polars as pl

from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import Tables, merge_tables, parse_batch
from sweepscope.pipeline.ingest.dialect_files import Declared
from sweepscope.pipeline.ingest.isolate import isolated
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.process_pool import ProcessPool
from sweepscope.pipeline.io.spill import spilled, spilling_to
from sweepscope.pipeline.store.checkpoints import Records
from sweepscope.pipeline.store.home import Home

_LOG = logging.getLogger(__name__)

WORTH_S = 5.0
"""Reading less takes less time than starting processes and merging shards."""

# Rough speed of one process, to estimate whether starting others pays.
_BYTES_PER_S = 60e6
_UNITS_PER_S = 500
_PACKED = 5

_SHARDS_PER_WORKER = 8
"""Small shards, so that all processes end at about the same time."""

_MIN_SHARD_S = 1.5
"""Every shard costs about a quarter of a second, however small it is."""


@dataclass(frozen=True)
class Shard:
    """Part of a batch (discover.FOUND rows), as it is sent to a process.

    `folder`: the home, for records of growing logs and for what does not fit in memory; None where it cannot be seen.
    """

    found: pl.DataFrame
    now: datetime
    folder: str | None
    declared: Declared


class Cluster(Protocol):
    """Processes on this machine or others that read shards."""

    @property
    def number(self) -> int:
        """How many shards they read at the same time."""

    def read(self, shards: Sequence[Shard]) -> Iterator[Tables]:
        """The rows of each shard, in their order. Raises WorkerError, and SweepscopeError as reading does."""


def parse_shard(shard: Shard) -> Tables:
    """Rows of every table. Raises as `parse_batch` does."""
    return _parse(shard, lambda _path, _size: None)


def parse_sharded(
    found: pl.DataFrame,
    *,
    now: datetime,
    home: Home,
    declared: Declared,
    workers: int,
    cluster: Cluster | None = None,
    on_file: Callable[[str, int], None] = lambda _path, _size: None,
) -> Tables:
    """Rows of every table, read by up to `workers` processes; the same rows whatever their number and place.

    Args:
        found: discover.FOUND rows of a batch; whole units.
        now: UTC without a zone.
        home: its records are used.
        declared: the home's dialects.
        workers: processes, this one included.
        cluster: reads everything in their place.
        on_file: called with each path and its size, when its shard is done.

    Raises:
        WorkerError: another process failed. SweepscopeError: as reading does.
    """
    count = cluster.number if cluster else workers
    shards = [Shard(part, now, str(home.path), declared) for part in shards_of(found, count)]
    event(_LOG, logging.INFO, "reading", files=found.height, shards=len(shards), processes=min(count, len(shards)))
    if found.is_empty() or (len(shards) == 1 and not cluster):
        return _parse(shards[0], on_file)
    parts: list[Tables] = []
    for shard, tables in zip(shards, cluster.read(shards) if cluster else _read_here(shards, count), strict=True):
        with spilling_to(home.path):
            parts.append({name: spilled(frame) for name, frame in tables.items()})
        for path, size in shard.found.select("path", "bytes").iter_rows():
            on_file(path, size)
    return merge_tables(*parts)


def _read_here(shards: Sequence[Shard], workers: int) -> Iterator[Tables]:
    with ProcessPool(parse_shard, min(workers, len(shards)), ahead=2) as pool:
        yield from pool.map(shards)


def shards_of(found: pl.DataFrame, workers: int) -> list[pl.DataFrame]:
    """FOUND rows, cut into shards of whole units; one shard where several do not pay."""
    units, size = found["unit"].n_unique(), _text_bytes(found)
    seconds = size / _BYTES_PER_S + units / _UNITS_PER_S
    if workers == 1 or seconds < WORTH_S:
        return [found]
    count = min(workers * _SHARDS_PER_WORKER, ceil(seconds / _MIN_SHARD_S))
    # Weigh files by what they unpack to, so that shards take about the same time.
    weighed = found.with_columns(_bytes_on_disk="bytes", bytes=_weight())
    cut = plan.batches(weighed, units=ceil(units / count), size=ceil(size / count))
    return [part.with_columns(bytes="_bytes_on_disk").drop("_bytes_on_disk") for part in cut]


def _weight() -> pl.Expr:
    is_packed = pl.col("path").str.contains(r"\.(gz|zst)$")
    return pl.when(is_packed).then(pl.col("bytes") * _PACKED).otherwise("bytes")


def _text_bytes(found: pl.DataFrame) -> int:
    return int(found.select(_weight().sum()).item())


def _parse(shard: Shard, on_file: Callable[[str, int], None]) -> Tables:
    folder, dialects = (Path(shard.folder) if shard.folder else None), shard.declared.dialects
    records = Records(Home(folder).records, shard.now) if folder else None
    parse = partial(parse_batch, now=shard.now, dialects=dialects, records=records, on_file=on_file)
    with spilling_to(folder) if folder else nullcontext():
        return isolated(shard.found, parse, dialects=dialects)
