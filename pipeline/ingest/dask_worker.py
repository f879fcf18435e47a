"""What a Dask worker does: hand each shard to a reading process beside it, and isolate the files that kill that one.

A shard is not read in the worker itself, for three reasons: limits of time and memory need the main thread of a process
(`io.meter`), and Dask runs tasks in others; a file that kills its reader would kill the worker, with all that it has to
do; and nothing that reads has to be safe for threads. Reading processes are kept for the next shard.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from sweepscope.pipeline.errors import InputError, WorkerDiedError, WorkerError
from sweepscope.pipeline.ingest.batch import Tables
from sweepscope.pipeline.ingest.isolate import halved
from sweepscope.pipeline.ingest.parallel import Shard, parse_shard
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.io.file_names import on_disk
from sweepscope.pipeline.io.packed_frames import PackedFrames, packed, unpacked
from sweepscope.pipeline.io.remote import is_url
from sweepscope.pipeline.io.worker_process import Worker

_READ = "sweepscope.pipeline.ingest.dask_worker:read_packed"

_idle: list[Worker] = []
"""Reading processes of this worker that have nothing to do; threads take them from here and put them back."""


class ReaderDied(Exception):
    """Process after process ended over the same files: a fault of theirs or of ours, and none of the machines."""


@dataclass(frozen=True)
class Task:
    """A shard, and what a worker needs to know of the machine that asks.

    Attributes:
        version: of the parsers there; a worker's own has to be the same.
        seen: a file in the home, which the worker can use where it sees it.
        beside: reading processes on this worker's machine, between which it divides its cores.
    """

    shard: Shard
    version: int
    seen: str
    beside: int


def read_packed(shard: Shard) -> PackedFrames:
    """Rows of every table. Raises as `parse_shard` does."""
    return packed(parse_shard(shard))


def read_task(task: Task) -> PackedFrames:
    """Rows of every table of a shard. Files that kill their reader are rejected in `files`, as `isolated` does.

    Raises:
        InputError: the files are not to be seen from here.
        WorkerError: this machine has other parsers, or cannot start a process. SweepscopeError: as reading does.
    """
    _check(task)
    shard = task.shard if Path(task.seen).exists() else replace(task.shard, folder=None)

    def read(found: pl.DataFrame) -> PackedFrames:
        return _read(replace(shard, found=found), task.beside)

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


def _check(task: Task) -> None:
    here = socket.gethostname()
    if current_versions()[""] != task.version:
        raise WorkerError(
            f"The Dask worker on {here} reads with another version of sweepscope. Install the same on all machines, "
            "and start the workers again."
        )
    local = [path for path in task.shard.found["path"] if not is_url(path)]
    if local and not any(os.path.exists(on_disk(path)) for path in local):
        raise InputError(
            f"The Dask worker on {here} does not see {local[0]}. Put the run directories on a disk that all machines "
            "share, or behind a URL such as s3://bucket/runs."
        )
