"""Recordings of GPU memory under any name: texts that are no logs of trainings, printed by a monitor or by PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import polars as pl

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.ingest.accumulator import BatchAccumulator
from sweepscope.pipeline.ingest.read_file import open_log
from sweepscope.pipeline.ingest.read_sidecar import read_memory
from sweepscope.pipeline.io.text_encoding import SNIFF_BYTES, text_chunks
from sweepscope.pipeline.memory.sources import is_recording


def read_recordings(
    files: pl.DataFrame, found: pl.DataFrame, batch: BatchAccumulator, versions: Mapping[str, int]
) -> pl.DataFrame:
    """`files` in which texts that hold a recording are parsed as such; its rows go to `batch`.

    They are read only now that they surely are no logs: a job's output may begin with nvidia-smi's box.

    Args:
        files: ledger columns of all files, after `judge_unread`.
        found: discover.FOUND rows, in the order of `source`.
        versions: of each parser.
    """
    left_out = files.filter((pl.col("kind") == "unknown") & (pl.col("status") == "skipped"))
    parsers = {source: _read(found.row(source, named=True), batch) for source in left_out["source"]}
    parser = pl.col("source").replace_strict(
        {source: name for source, name in parsers.items() if name}, default=None, return_dtype=pl.String
    )
    version = parser.replace_strict(dict(versions), default=None, return_dtype=pl.Int64)
    changed = {"kind": pl.lit("memory"), "status": pl.lit("parsed"), "error": pl.lit(None, pl.String)}
    changed |= {"parser": parser, "parser_version": version}
    return files.with_columns(
        pl.when(parser.is_not_null()).then(value).otherwise(name).alias(name) for name, value in changed.items()
    )


def _read(row: dict[str, object], batch: BatchAccumulator) -> str | None:
    """The parser of a recording; None for another text, one that cannot be read, and a part of a rotated log."""
    if row["kind"] != "log" or row.get("part_of"):
        return None
    reader = open_log(row, is_hashed=False)
    try:
        chunks = text_chunks(reader.path, reader.chunks())
        head = next(chunks, b"")
        if not is_recording(head[:SNIFF_BYTES].decode("utf-8-sig", "replace")):
            return None
        parser = read_memory(row, reader, itertools.chain([head], chunks), batch)["parser"]
    except (InputError, ValueError):
        return None  # it stays skipped, as the text that it was taken for
    return str(parser) if parser else None
