"""What a Dask worker does: see whether it can read a shard as the machine that asks would, and read it.

A shard is not read in the worker itself: limits of time and memory need the main thread of a process (`io.meter`), and
Dask runs tasks in others; a file that kills its reader would kill the worker, with all that it has to do; and nothing
that reads has to be safe for threads.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, replace
from pathlib import Path

from sweepscope.pipeline.errors import InputError, WorkerError
from sweepscope.pipeline.ingest.isolated_reader import read_isolated
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.ingest.shard import Shard
from sweepscope.pipeline.io.files import exists
from sweepscope.pipeline.io.packed_frames import PackedFrames
from sweepscope.pipeline.io.remote import is_url


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


def read_task(task: Task) -> PackedFrames:
    """Rows of every table of a shard. Files that kill their reader are rejected in `files`, as `read_isolated` does.

    Raises:
        InputError: the files are not to be seen from here.
        WorkerError: this machine has other parsers, or cannot start a process. SweepscopeError: as reading does.
    """
    _check(task)
    shard = task.shard if Path(task.seen).exists() else replace(task.shard, folder=None)
    return read_isolated(shard, beside=task.beside)


def _check(task: Task) -> None:
    here = socket.gethostname()
    if current_versions()[""] != task.version:
        raise WorkerError(
            f"The Dask worker on {here} reads with another version of sweepscope. Install the same on all machines, "
            "and start the workers again."
        )
    local = [path for path in task.shard.found["path"] if not is_url(path)]
    if local and not any(map(exists, local)):
        raise InputError(
            f"The Dask worker on {here} does not see {local[0]}. Put the run directories on a disk that all machines "
            "share, or behind a URL such as s3://bucket/runs."
        )
