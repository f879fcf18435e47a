"""Hangs by set of flight recorder dumps: those of all ranks of one job, by their names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import polars as pl

from sweepscope.pipeline.nccl.flight_recorder.hangs import flight_hangs
from sweepscope.pipeline.nccl.names import dump_rank, dump_set


def set_hangs(files: pl.DataFrame, dumps: Mapping[int, pl.DataFrame]) -> list[dict[str, Any]]:
    """Rows of `nccl_hangs` by `source` for each set of dumps.

    Args:
        files: `source` and `path` of each file, those that could not be read included.
        dumps: rows of `flight_records` by source.
    """
    if not dumps:
        return []
    sets: dict[str, list[pl.DataFrame]] = defaultdict(list)
    empty: dict[str, set[int]] = defaultdict(set)
    unread: dict[str, set[int]] = defaultdict(set)
    for source, path in files.select("source", "path").iter_rows():
        rank, name = dump_rank(path), dump_set(path)
        if source in dumps:
            sets[name].append(dumps[source].with_columns(source=pl.lit(source, pl.Int64)))
        if rank is not None and source not in dumps:
            unread[name].add(rank)
        elif rank is not None and dumps[source].is_empty():
            empty[name].add(rank)
    return [
        row
        for name, frames in sets.items()
        for row in flight_hangs(pl.concat(frames), empty=empty[name], unread=unread[name])
    ]
