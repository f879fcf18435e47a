"""One batch read by several processes: each parses shards of it, whole run directories, and the rows are merged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from math import ceil

import polars as pl

from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import Tables, merge_tables, parse_batch
from sweepscope.pipeline.ingest.dialect_files import in_force
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
    """Part of a batch (discover.FOUND rows), as it is sent to a process. `dialect_files`: path to content hash."""

    found: pl.DataFrame
    now: datetime
    home: str
    dialect_files: tuple[tuple[str, str], ...]


def parse_shard(shard: Shard) -> Tables:
    """Rows of every table. Raises as `parse_batch` and `in_force` do."""
    return _parse(shard, lambda _path, _size: None)


def parse_sharded(
    found: pl.DataFrame,
    *,
    now: datetime,
    home: Home,
    dialect_files: Mapping[str, str],
    workers: int,
    on_file: Callable[[str, int], None] = lambda _path, _size: None,
) -> Tables:
    """Rows of every table, read by up to `workers` processes; the same rows whatever their number.

    Args:
        found: discover.FOUND rows of a batch; whole units.
        now: UTC without a zone.
        home: its records and dialect files are used.
        dialect_files: path to content hash of those to read with.
        workers: processes, this one included.
        on_file: called with each path and its size, when its shard is done.

    Raises:
        WorkerError: another process failed. SweepscopeError: as reading does.
    """
    files = tuple(sorted(dialect_files.items()))
    shards = [Shard(part, now, str(home.path), files) for part in shards_of(found, workers)]
    count = min(workers, len(shards))
    event(_LOG, logging.INFO, "reading", files=found.height, shards=len(shards), processes=count)
    if len(shards) == 1:
        return _parse(shards[0], on_file)
    parts: list[Tables] = []
    with ProcessPool(parse_shard, count, ahead=2) as pool:
        for shard, tables in zip(shards, pool.map(shards), strict=True):
            with spilling_to(home.path):
                parts.append({name: spilled(frame) for name, frame in tables.items()})
            for path, size in shard.found.select("path", "bytes").iter_rows():
                on_file(path, size)
    return merge_tables(*parts)


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
    home = Home.resolve(shard.home)
    own = in_force(home, dict(shard.dialect_files))
    records = Records(home.records, shard.now)
    parse = partial(parse_batch, now=shard.now, dialects=own.dialects, records=records, on_file=on_file)
    with spilling_to(home.path):
        return isolated(shard.found, parse, dialects=own.dialects)
