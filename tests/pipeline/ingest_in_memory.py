"""Files that exist only in memory, through discovery, reading and the fold, at any chunk and block size."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime
from unittest.mock import patch

import fsspec
import polars as pl

from sweepscope.pipeline.ingest import accumulator, plan
from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.ingest.read_batch import Batch, read_batch
from sweepscope.pipeline.io import stream
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.logs.runs.assemble import assemble

LATER = datetime(2035, 1, 1)
"""A moment at which every file is stale."""

Tables = dict[str, pl.DataFrame]
_ROOTS = itertools.count()


def batches_of(
    files: Mapping[str, bytes | str], *, units: int, chunk_bytes: int = 8 << 20, block_bytes: int = 32 << 20
) -> list[Batch]:
    """`files` (path below the sweep -> content), found together and read in batches of `units`."""
    root = f"/in-memory-{next(_ROOTS)}"
    store = fsspec.filesystem("memory")
    for name, content in files.items():
        store.pipe(f"{root}/sweep/{name}", content.encode() if isinstance(content, str) else content)
    try:
        found = discover(list_files(f"memory:/{root}"), is_simulated=lambda _place: False)
        with (
            patch.object(stream, "CHUNK_BYTES", chunk_bytes),
            patch.multiple(
                accumulator,
                BLOCK_BYTES=block_bytes,
                MANY_BYTES=block_bytes,
                READ_BYTES=2 * block_bytes,
                UNDECIDED_BYTES=3 * block_bytes,
            ),
        ):
            return [read_batch(part) for part in plan.batches(found, units=units)]
    finally:
        store.rm(root, recursive=True)


def batch_of(files: Mapping[str, bytes | str], **sizes: int) -> Batch:
    """`files`, read as one batch."""
    (batch,) = batches_of(files, units=len(files), **sizes)
    return batch


def tables_of(files: Mapping[str, bytes | str], *, now: datetime = LATER, **sizes: int) -> Tables:
    """Every table that `files` yield before normalising, and `files` itself. Paths are relative to the sweep."""
    return assembled(batch_of(files, **sizes), now=now)


def assembled(batch: Batch, *, now: datetime = LATER) -> Tables:
    """Every table of one batch."""
    arguments = (batch.arguments, batch.documents)
    tables = assemble(batch.sources, batch.facts, batch.spans, batch.sidecars, now=now, arguments=arguments)
    rejects = pl.concat([tables["rejects"], tables["rejects"].clear().vstack(batch.rejects)])
    return {name: _relative(frame) for name, frame in {**tables, "rejects": rejects, "files": batch.files}.items()}


def run_of(text: str, *, now: datetime = LATER) -> dict[str, object]:
    """The one run of a lone log, without its NULLs."""
    runs = tables_of({"train.log": text}, now=now)["runs"]
    assert runs.height == 1, runs
    return {name: value for name, value in runs.row(0, named=True).items() if value is not None}


def runs_of(texts: Sequence[str], *, now: datetime = LATER) -> list[dict[str, object]]:
    """The one run of each log, without its NULLs; all logs are read as one batch."""
    files = {f"{place:03d}/train.log": text for place, text in enumerate(texts)}
    runs = tables_of(files, now=now)["runs"].sort("source_path")
    assert runs["source_path"].to_list() == list(files)
    return [{name: value for name, value in row.items() if value is not None} for row in runs.iter_rows(named=True)]


def _relative(frame: pl.DataFrame) -> pl.DataFrame:
    """Paths without the root, and no ids, so that two readings of the same files can be compared."""
    places = [name for name in ("path", "unit", "source_path", "file", "run_dir") if name in frame.columns]
    return frame.with_columns(pl.col(places).str.replace(r"^memory:/+in-memory-\d+/sweep/?", ""))
