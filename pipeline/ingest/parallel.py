"""One batch read by several processes: each parses shards of it, whole run directories, and the rows are merged.

The processes are this machine's, or those of a cluster (`Cluster`; `dask_cluster` has one), and the rows the same.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from math import ceil
from typing import Protocol

import polars as pl

from sweepscope.pipeline.errors import WorkerDiedError
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import Tables, merge_tables
from sweepscope.pipeline.ingest.dialect_files import Declared
from sweepscope.pipeline.ingest.isolated_reader import ending_idle_readers, read_isolated
from sweepscope.pipeline.ingest.shard import Shard, parse_shard
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.packed_frames import unpacked
from sweepscope.pipeline.io.process_pool import ProcessPool
from sweepscope.pipeline.io.spill import spilled, spilling_to
from sweepscope.pipeline.store.home import Home

_LOG = logging.getLogger(__name__)

WORTH_S = 5.0
"""Reading less takes less time than starting processes and merging shards."""

# Rough speed of one process, to estimate whether starting others pays: `tests.load --only units` prints today's.
_BYTES_PER_S = 60e6
_UNITS_PER_S = 100
_PACKED = 5

_SHARDS_PER_WORKER = 8
"""At most: small shards, so that all processes end at about the same time."""

_MIN_SHARD_S = 4.0
"""Every shard costs about 0.6 s, however small it is."""


class Cluster(Protocol):
    """Processes on this machine or others that read shards."""

    @property
    def number(self) -> int:
        """How many shards they read at the same time."""

    def read(self, shards: Sequence[Shard]) -> Iterator[Tables]:
        """The rows of each shard, in their order. Raises WorkerError, and SweepscopeError as reading does."""


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
        return parse_shard(shards[0], on_file)
    parts: list[Tables] = []
    for shard, tables in zip(shards, cluster.read(shards) if cluster else _read_here(shards, count), strict=True):
        with spilling_to(home.path):
            parts.append({name: spilled(frame) for name, frame in tables.items()})
        for path, size in shard.found.select("path", "bytes").iter_rows():
            on_file(path, size)
    return merge_tables(*parts)


def _read_here(shards: Sequence[Shard], workers: int) -> Iterator[Tables]:
    """The rows of each shard, in order; once a process of the pool has died, the others are read one at a time.

    It may have been killed by what it read, which this process must not read then.
    """
    done = 0
    try:
        with ProcessPool(parse_shard, min(workers, len(shards)), ahead=2) as pool:
            for tables in pool.map(shards):
                yield tables
                done += 1
    except WorkerDiedError as error:
        event(_LOG, logging.WARNING, "reading_one_at_a_time", shards=len(shards) - done, reason=error)
        with ending_idle_readers():
            for shard in shards[done:]:
                yield unpacked(read_isolated(shard, beside=1))


def shards_of(found: pl.DataFrame, workers: int) -> list[pl.DataFrame]:
    """FOUND rows, cut into shards of whole units; one shard where several do not pay."""
    units, size = found["unit"].n_unique(), _text_bytes(found)
    seconds = size / _BYTES_PER_S + units / _UNITS_PER_S
    if workers == 1 or seconds < WORTH_S:
        return [found]
    # Of equal number for all workers: one shard more than workers takes as long as twice as many.
    count = workers * min(_SHARDS_PER_WORKER, ceil(seconds / workers / _MIN_SHARD_S))
    # Weigh files by what they unpack to, so that shards take about the same time.
    weighed = found.with_columns(_bytes_on_disk="bytes", bytes=_weight())
    # A little more than their share, or else what is left at the end is one more shard, of next to nothing.
    cut = plan.batches(weighed, units=ceil(units / count), size=ceil(1.05 * size / count))
    return [part.with_columns(bytes="_bytes_on_disk").drop("_bytes_on_disk") for part in cut]


def _weight() -> pl.Expr:
    is_packed = pl.col("path").str.contains(r"\.(gz|zst)$")
    return pl.when(is_packed).then(pl.col("bytes") * _PACKED).otherwise("bytes")


def _text_bytes(found: pl.DataFrame) -> int:
    return int(found.select(_weight().sum()).item())
