"""Read a shard in a process beside this one, which survives files that kill their reader.

Reading processes are kept for the next shard, until they are asked to end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import polars as pl

from sweepscope.pipeline.errors import WorkerDiedError
from sweepscope.pipeline.ingest.batch import Tables
from sweepscope.pipeline.ingest.isolate import halved
from sweepscope.pipeline.ingest.shard import Shard, parse_shard
from sweepscope.pipeline.io.packed_frames import PackedFrames, packed, unpacked
from sweepscope.pipeline.io.worker_process import Worker

_READ = "sweepscope.pipeline.ingest.isolated_reader:read_packed"

_idle: list[Worker] = []
"""Reading processes that have nothing to do; threads take them from here and put them back."""


class ReaderDied(Exception):
    """Process after process ended over the same files: a fault of theirs or of ours, and none of the machines."""


def read_packed(shard: Shard) -> PackedFrames:
    """Rows of every table. Raises as `parse_shard` does."""
    return packed(parse_shard(shard))


def read_isolated(shard: Shard, *, beside: int) -> PackedFrames:
    """Rows of every table of a shard. Files that kill their reader are rejected in `files`, as `isolate.isolated` does.

    Args:
        shard: is read in halves where its reader dies, down to the run directory over which that happens.
        beside: reading processes on this machine, between which it divides its cores.

    Raises:
        WorkerError: a process cannot be started. SweepscopeError: as reading does.
    """

    def read(found: pl.DataFrame) -> PackedFrames:
        return _read(replace(shard, found=found), beside)

    def parse(found: pl.DataFrame) -> Tables:
        return unpacked(read(found))

    try:
        return read(shard.found)
    except ReaderDied as error:
        return packed(halved(shard.found, error, parse, dialects=shard.declared.dialects))


def end_idle_readers() -> None:
    """End the reading processes that have nothing to do."""
    while _idle:
        _idle.pop().stop()


def _read(shard: Shard, beside: int) -> PackedFrames:
    """Rows of a shard. A second process tries where the first one ends: that may not have been the shard's doing."""
    reason = ""
    for _ in range(2):
        try:
            reader = _idle.pop()
        except IndexError:
            reader = Worker.start(_READ, beside)
        try:
            rows: PackedFrames = reader.do(shard)
        except WorkerDiedError as error:
            reader.stop()
            reason = str(error)
        except BaseException:
            _idle.append(reader)
            raise
        else:
            _idle.append(reader)
            return rows
    raise ReaderDied(f"twice, {reason[0].lower()}{reason[1:]}")


@contextmanager
def ending_idle_readers() -> Iterator[None]:
    """End them after the block."""
    try:
        yield
    finally:
        end_idle_readers()
