"""Read a batch of discovered files into facts. No later step touches bytes."""

from __future__ import annotations

import csv
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from sweepscope.pipeline.errors import InputError, UnreadableError
from sweepscope.pipeline.ingest.accumulator import BatchAccumulator
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.ingest.read_log import read_log
from sweepscope.pipeline.ingest.read_sidecar import (
    folder_names,
    read_dump,
    read_history,
    read_memory,
    read_sidecar,
    read_table,
)
from sweepscope.pipeline.ingest.resume import ResumeState
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine.detect import rank_dialects
from sweepscope.pipeline.logs.engine.extract import Extract
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.logs.runs.assemble import SIDECAR_SETTINGS, SOURCES
from sweepscope.pipeline.store.checkpoints import Records

_LOG = logging.getLogger(__name__)

_SLOW_S = 30.0
"""A file that takes longer is logged without -vv."""


@dataclass(frozen=True)
class Batch:
    """The facts of one batch. `files` has the ledger columns that reading decides.

    `other` has rows of further tables by name (NCCL output, memory snapshots), as their schemas want them.
    """

    sources: pl.DataFrame
    facts: Facts
    spans: pl.DataFrame
    sidecars: pl.DataFrame
    tables: list[pl.DataFrame]
    files: pl.DataFrame
    rejects: pl.DataFrame
    other: dict[str, pl.DataFrame] = field(default_factory=dict)


def read_batch(
    found: pl.DataFrame,
    *,
    dialects: Sequence[Dialect] = DIALECTS,
    records: Records | None = None,
    on_file: Callable[[str, int], None] = lambda _path, _size: None,
) -> Batch:
    """Read every file of `found` (discover.FOUND rows; whole units).

    A file that cannot be read is recorded with its error and does not stop the batch.

    Args:
        found: discover.FOUND rows; `known_bytes` and `known_digest` too where the ledger knows a file's content.
        dialects: those to read with.
        records: where facts of growing logs are kept, so that only new lines are read; None: read all files whole.
        on_file: called with each path and its size, for a progress display.
    """
    newest = dict(found.group_by("unit").agg(pl.col("mtime").max()).iter_rows())
    batch = BatchAccumulator(dialects, ResumeState(records, dialects, newest))
    for source, row in enumerate(found.iter_rows(named=True)):
        begin = time.perf_counter()
        note = _read_file(source, row, batch)
        _log_file(row, note, time.perf_counter() - begin)
        batch.files.append({"path": row["path"], **note})
        on_file(row["path"], row["bytes"])
    extracted = batch.merged()
    _log_dialects(found, extracted)
    names = pl.DataFrame(
        {"source": list(extracted.dialect_of), "dialect": list(extracted.dialect_of.values())},
        schema={"source": pl.Int64, "dialect": pl.String},
    )
    sources = (
        found.with_row_index("source")
        .with_columns(
            pl.col("source").cast(pl.Int64), modified_at=pl.from_epoch((pl.col("mtime") * 1e6).cast(pl.Int64), "us")
        )
        .join(names, on="source", how="left", maintain_order="left")
    )
    files = batch.nccl.with_kinds(_file_notes(sources, batch.files, dialects), extracted)
    batch.sidecars += folder_names(sources)
    return Batch(
        sources=files.with_columns(dialect=pl.coalesce("dialect", "parser")).select(SOURCES.names()).cast(SOURCES),
        facts=_with_histories(extracted.facts, batch.histories),
        spans=extracted.spans,
        sidecars=pl.DataFrame(batch.sidecars, schema=SIDECAR_SETTINGS),
        tables=batch.tables,
        files=files,
        rejects=pl.DataFrame(batch.rejects, schema=_REJECTS),
        other={name: pl.concat(frames) for name, frames in batch.other.items()}
        | batch.nccl.tables(files, extracted.facts),
    )


def _log_file(row: dict[str, object], note: dict[str, object], seconds: float) -> None:
    """Log what became of a file; one that was skipped or rejected, with the reason."""
    is_slow = seconds >= _SLOW_S
    name, level = ("slow_file", logging.INFO) if is_slow else (f"file_{note['status']}", logging.DEBUG)
    facts = {"path": row["path"], "kind": note.get("kind", row["kind"]), "parser": note.get("parser")}
    event(_LOG, level, name, **facts, bytes=note.get("read_bytes"), seconds=seconds, reason=note.get("error"))


def _log_dialects(found: pl.DataFrame, extracted: Extract) -> None:
    """Log the dialect of each log, with the signature hits of the runner-up."""
    if not _LOG.isEnabledFor(logging.DEBUG):
        return
    ranks = rank_dialects(extracted.signature_hits, extracted.dialects)
    for (source,), ranked in ranks.partition_by("source", as_dict=True, maintain_order=True).items():
        best, *others = ranked.iter_rows(named=True)
        runner_up = {"runner_up": others[0]["dialect"], "runner_up_hits": others[0]["total"]} if others else {}
        path = found["path"][int(source)]
        event(_LOG, logging.DEBUG, "dialect", path=path, dialect=best["dialect"], hits=best["total"], **runner_up)


def _with_histories(facts: Facts, histories: Sequence[tuple[str, pl.DataFrame]]) -> Facts:
    """`facts` with the steps that trainers keep in files of their own."""
    if not histories:
        return facts
    return replace(facts, steps=pl.concat([facts.steps, *(conform(steps, STEP_FACTS) for _, steps in histories)]))


_FILE_NOTES = pl.Schema(
    {
        "path": pl.String,
        "kind": pl.String,
        "sha256": pl.String,
        "read_bytes": pl.Int64,
        "offset_bytes": pl.Int64,
        "parser": pl.String,
        "status": pl.String,
        "error": pl.String,
        "was_opened": pl.Boolean,
        "content_bytes": pl.Int64,
        "content_digest": pl.String,
        "content_head": pl.String,
        "is_continued": pl.Boolean,
    }
)
_REJECTS = pl.Schema(
    {
        "file": pl.String,
        "line_no": pl.Int64,
        "table": pl.String,
        "column": pl.String,
        "reason": pl.String,
        "raw": pl.String,
    }
)


def _read_file(source: int, row: dict[str, object], batch: BatchAccumulator) -> dict[str, object]:
    kind, path = row["kind"], str(row["path"])
    if kind == "other":
        return {"status": "skipped", "error": "not a log or configuration that a parser reads"}
    is_log = kind in ("log", "nccl", "scheduler")
    size = row["bytes"] if is_log else None
    reader = Reader(path, size=size if isinstance(size, int) and size else None, is_lenient=is_log)
    known_size, known_digest = row.get("known_bytes"), row.get("known_digest")
    is_continued = None
    if isinstance(known_size, int) and isinstance(known_digest, str):
        is_continued = reader.begins_with(known_size, known_digest)
    try:
        note = _read_kind(source, row, reader, batch)
    except InputError as error:
        batch.discard(source)
        note = {"status": "rejected", "error": str(error), "was_opened": not isinstance(error, UnreadableError)}
    except (ValueError, RecursionError, csv.Error, pl.exceptions.PolarsError) as error:
        # RecursionError: JSON that nests thousands deep. The last two: a table that its reader cannot make sense of.
        reason = str(error).split("\n", 1)[0]
        note = {"status": "rejected", "error": f"{path} is not what its name says: {reason}"}
    content = reader.content
    of_content = {
        "content_bytes": content.size if content else None,
        "content_digest": content.digest if content else None,
        "content_head": content.head if content else None,
        "is_continued": is_continued,
    }
    return {"sha256": reader.sha256, "read_bytes": reader.bytes_read, "status": "parsed", **of_content, **note}


def _read_kind(source: int, row: dict[str, object], reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns that differ from a file that was parsed. Raises for a file that cannot be read."""
    if row["kind"] in ("log", "nccl", "scheduler"):
        return read_log(source, row, reader, batch)
    if row["kind"] == "bench_csv":
        return read_table(source, row, reader, batch)
    if row["kind"] == "memory":
        return read_memory(row, reader, reader.chunks(), batch)
    if row["kind"] == "history":
        return read_history(source, row, reader, batch)
    if row["kind"] == "flight_record":
        return read_dump(source, reader, batch)
    return read_sidecar(row, reader, batch)


def _file_notes(sources: pl.DataFrame, notes: list[dict[str, object]], dialects: Sequence[Dialect]) -> pl.DataFrame:
    """Ledger rows, with the version of the parser that read each file, be it a log, a sidecar or a table.

    A file that could not be opened gets no version, so that the next ingest tries again: making it readable changes
    neither its size nor its time.
    """
    frame = pl.DataFrame(notes, schema=_FILE_NOTES)
    rows = sources.join(frame, on="path", how="left", maintain_order="left", suffix="_read")
    parser = pl.coalesce("parser", "dialect")
    version = parser.fill_null("").replace_strict(current_versions(dialects), return_dtype=pl.Int64)
    version = pl.when(pl.col("was_opened").fill_null(value=True)).then(version)
    kind = pl.coalesce("kind_read", "kind")
    return rows.with_columns(parser=parser, parser_version=version, kind=kind).drop("was_opened", "kind_read")
