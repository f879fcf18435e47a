"""Bytes of a file to rows of `scheduler_jobs`, if a scheduler's table is in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import polars as pl

from sweepscope.pipeline.io.text_encoding import SNIFF_BYTES
from sweepscope.pipeline.scheduler import registry
from sweepscope.schemas.tables.runs import REJECTS
from sweepscope.schemas.tables.scheduler import SCHEDULER_JOBS


def recognise(head: bytes) -> registry.SchedulerTable | None:
    """The kind of table that a file is, judged by its first bytes."""
    return registry.recognise(head[:SNIFF_BYTES].decode("utf-8-sig", "replace"))


def read_table(
    table: registry.SchedulerTable, chunks: Iterable[bytes], *, path: str, run_dir: str
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All rows of `scheduler_jobs` in a file, and rows of `rejects`."""
    parts = list(table.read(_lines(chunks)))
    rows = pl.concat([SCHEDULER_JOBS.empty(), *(rows for rows, _ in parts)])
    rejects = pl.concat([REJECTS.empty(), *(REJECTS.conform(rejected) for _, rejected in parts)])
    return (
        rows.with_columns(source_path=pl.lit(path), run_dir=pl.lit(run_dir)),
        rejects.with_columns(file=pl.lit(path), table=pl.lit(SCHEDULER_JOBS.name)),
    )


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for chunk in itertools.chain(chunks, [b"\n"]):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").removeprefix("\ufeff").replace("\0", "")
