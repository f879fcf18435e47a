"""Which memory artefact a file is, and its rows as frames of the memory tables.

By name first (`names.is_memory_file`, for discovery), then by content. A new format is one module and one branch here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from pipeline.memory.containers import NO_SNAPSHOT
from pipeline.memory.limited import analyse_limited
from pipeline.memory.names import rank_of
from pipeline.memory.values import RefusedError
from schemas.registry import TABLES


@dataclass(frozen=True)
class MemoryFile:
    """What one file says: the reader's name, rows by table, lines (number,
    reason, raw) that could not be read and the table they were meant for, or why it was left alone."""

    parser: str | None
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    rejects: Sequence[tuple[int, str, str]] = ()
    table: str = "memory_snapshots"
    skipped: str | None = None


def read_memory_file(path: str, chunks: Iterable[bytes], place: Mapping[str, object]) -> MemoryFile:
    """Read one file. `place` has `run_dir` and `sweep` as discovery found them.

    Raises:
        RefusedError: it is not what its name says, is damaged, or goes beyond the limits.
        InputError: `chunks` cannot be read.
    """
    try:
        rows = analyse_limited(chunks)
    except RefusedError as error:
        if str(error) == NO_SNAPSHOT:  # most pages are somebody's report
            return MemoryFile(None, skipped=NO_SNAPSHOT)
        raise
    return MemoryFile("memory_snapshot", _frames(rows, path, place))


def _frames(
    rows: Mapping[str, list[dict[str, Any]]], path: str, place: Mapping[str, object]
) -> dict[str, pl.DataFrame]:
    frames = {}
    for name, told in rows.items():
        if told:
            frame = pl.DataFrame(told, infer_schema_length=None).with_columns(
                source_path=pl.lit(path), run_dir=pl.lit(place["run_dir"], pl.String),
                sweep=pl.lit(place["sweep"], pl.String), rank=pl.lit(rank_of(path), pl.Int64),
            )  # fmt: skip
            frames[name] = TABLES[name].conform(frame)
    return frames
