"""Read tables of results that somebody keeps: as CSV and JSON, in documents and workbooks, and at the end of logs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

import polars as pl

from sweepscope.pipeline.derive.run_id import run_id
from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.ingest import log_blocks
from sweepscope.pipeline.ingest.accumulator import BatchAccumulator
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.ingest.surer_reading import Open
from sweepscope.pipeline.io.bounded import bounded, text_of
from sweepscope.pipeline.io.meter import metered
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.rotated import RotatedReader
from sweepscope.pipeline.io.workbook import is_workbook, sheets_of
from sweepscope.pipeline.logs.engine.extract import Extract
from sweepscope.pipeline.logs.facts import INFERRED
from sweepscope.pipeline.logs.result_tables.read import (
    WANTED,
    may_be_runs,
    read_document,
    read_runs,
    read_sheets,
    read_text,
)
from sweepscope.pipeline.logs.result_tables.run_table import RunTable
from sweepscope.schemas.tables.inference import INFERRED_COLUMNS

Opener = Callable[[int, Mapping[str, object]], tuple[str, Open] | None]

LAST_BYTES = 1 << 20
"""Of a log, in which its tables are looked for: a driver prints them at the end."""


def read_own_table(
    row: dict[str, object], chunks: Iterable[bytes], batch: BatchAccumulator, *, start: str
) -> dict[str, object]:
    """Ledger columns of a table whose columns are those of runs; others are skipped after their `start`."""
    own = read_runs(text_of(chunks)) if may_be_runs(start) else None
    if own is None:
        return {"status": "skipped", "error": f"no table of runs: {WANTED}"}
    return _add_table(row, own, batch)


def read_report(row: dict[str, object], reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns of a document or a workbook, with the runs of its tables; one without any is skipped.

    Lines of a workbook are its rows, counted through all sheets. Raises as `sheets_of` does.
    """
    data = b"".join(bounded(reader.chunks()))
    own = read_sheets(sheets_of(data)) if is_workbook(data) else read_document(data.decode("utf-8-sig", "replace"))
    if own is None:
        return {"kind": "other", "status": "skipped", "error": "a document without a table of runs"}
    return _add_table(row, own, batch)


def read_listing_logs(
    found: pl.DataFrame, batch: BatchAccumulator, extracted: Extract, opener: Opener
) -> frozenset[int]:
    """Sources of logs that list runs in tables and log no step of any, such as those of a sweep's driver.

    Their runs are added, and their notes changed to those of tables.

    Args:
        found: discover.FOUND rows.
        batch: with the notes of all files.
        extracted: what dialects found.
        opener: path of a log, and what opens it anew, by source and row.
    """
    stepped = {*extracted.facts.steps["source"].unique()}
    stepped |= {*extracted.last_lines.filter(pl.col("loss_like") > 0)["source"]}
    stepped |= batch.nccl.without_training(extracted)
    declared = {dialect.name for dialect in extracted.dialects if dialect.is_declared}
    listing = set()
    for source, (row, note) in enumerate(zip(found.iter_rows(named=True), batch.files, strict=True)):
        is_log = note["status"] == "parsed" and note.get("kind") == "log" and not row["part_of"]
        if not is_log or source in stepped or extracted.dialect_of.get(source) in declared:
            continue
        opened = opener(source, row)
        own = _listed(*opened) if opened else None
        if own is not None:
            note |= {"kind": "bench_csv", **_add_table(row, own, batch), "offset_bytes": None}
            listing.add(source)
    return frozenset(listing)


def _listed(path: str, opened: Open) -> RunTable | None:
    """The runs in tables at the end of a log; None for one that cannot be read any more, as its inference reports."""
    reader = opened()
    try:
        with metered(path, lambda: reader.unpacked_bytes):
            return read_text(*_last_text(reader))
    except InputError:
        return None


def _last_text(reader: Reader | RotatedReader) -> tuple[str, int]:
    """The last lines of a log, up to LAST_BYTES, and the number of the first of them."""
    kept: deque[tuple[bytes, int]] = deque()
    size = 0
    for data, first_line in log_blocks.blocks(reader):
        kept.append((data, first_line))
        size += len(data)
        while size - len(kept[0][0]) >= LAST_BYTES:
            size -= len(kept.popleft()[0])
    whole, first_line = b"".join(data for data, _ in kept), kept[0][1] if kept else 1
    cut = whole.find(b"\n", -LAST_BYTES) + 1 if size > LAST_BYTES else 0
    return whole[cut:].decode("utf-8", "replace"), first_line + whole.count(b"\n", 0, cut)


def _add_table(row: Mapping[str, object], own: RunTable, batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns of a file with these runs, which are added."""
    path = str(row["path"])
    placed = pl.lit(path).alias("source_path")
    cells = own.cells.with_columns(placed, setting_source=pl.lit("result_table"))
    ids = [run_id(path, f"line {line_no}") for line_no in cells["line_no"].to_list()]
    batch.table_arguments.append(cells.with_columns(pl.Series("run_id", ids, dtype=pl.String)))
    batch.other.setdefault(INFERRED_COLUMNS.name, []).append(INFERRED_COLUMNS.conform(own.columns.with_columns(placed)))
    framework = pl.coalesce("framework", pl.lit("other")) if "framework" in own.runs.columns else pl.lit("other")
    return add_runs(row, path, own.runs.with_columns(framework=framework), own.rejects, batch, parser=INFERRED)


def add_runs(
    row: Mapping[str, object],
    path: str,
    rows: pl.DataFrame,
    rejects: pl.DataFrame,
    batch: BatchAccumulator,
    *,
    parser: str,
) -> dict[str, object]:
    """Ledger columns of a table with these runs."""
    ids = [run_id(path, f"line {line_no}") for line_no in rows["line_no"].to_list()]
    batch.tables.append(
        rows.with_columns(
            pl.Series("run_id", ids, dtype=pl.String),
            attempt=pl.lit(1, pl.Int64),
            source_path=pl.lit(path),
            run_dir=pl.lit(row["run_dir"]),
            sweep=pl.lit(row["sweep"]),
            origin=pl.lit(row["origin"]),
            parser=pl.lit(parser),
            parser_version=pl.lit(current_versions()[parser], pl.Int64),
        )
    )
    for r in rejects.iter_rows(named=True):
        batch.reject(path, r["line_no"], r["reason"], r["raw"], table="runs")
    return {"parser": parser}
