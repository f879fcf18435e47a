"""A part of a batch, as one process reads it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import polars as pl

from sweepscope.pipeline.ingest.batch import Tables, parse_batch
from sweepscope.pipeline.ingest.dialect_files import Declared
from sweepscope.pipeline.ingest.isolate import isolated
from sweepscope.pipeline.io.spill import spilling_to
from sweepscope.pipeline.store.checkpoints import Records
from sweepscope.pipeline.store.home import Home


@dataclass(frozen=True)
class Shard:
    """Part of a batch (discover.FOUND rows), as it is sent to a process.

    `folder`: the home, for records of growing logs and for what does not fit in memory; None where it cannot be seen.
    """

    found: pl.DataFrame
    now: datetime
    folder: str | None
    declared: Declared


def parse_shard(shard: Shard, on_file: Callable[[str, int], None] = lambda _path, _size: None) -> Tables:
    """Rows of every table. `on_file` is called with each path and its size. Raises as `parse_batch` does."""
    folder, dialects = (Path(shard.folder) if shard.folder else None), shard.declared.dialects
    records = Records(Home(folder).records, shard.now) if folder else None
    parse = partial(parse_batch, now=shard.now, dialects=dialects, records=records, on_file=on_file)
    with spilling_to(folder) if folder else nullcontext():
        return isolated(shard.found, parse, dialects=dialects)
