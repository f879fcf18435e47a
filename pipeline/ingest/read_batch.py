"""Read a batch of discovered files into facts. No later step touches bytes."""

from __future__ import annotations

import csv
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

import polars as pl

from sweepscope.pipeline.errors import InputError, UnreadableError
from sweepscope.pipeline.ingest.accumulator import BatchAccumulator
from sweepscope.pipeline.ingest.infer_logs import Candidate, Open, read_inferred
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.ingest.read_log import read_log
from sweepscope.pipeline.ingest.read_sidecar import (
    folder_names,
    read_dump,
    read_history,
    read_memory,
    read_sidecar,
    read_table,
    reading_whole,
    stated_constants,
)
from sweepscope.pipeline.ingest.resume import ResumeState
from sweepscope.pipeline.ingest.unread_logs import judge_unread
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.rotated import RotatedReader
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine.detect import rank_dialects
from sweepscope.pipeline.logs.engine.extract import SPANS, Extract, stamps_of
from sweepscope.pipeline.logs.facts import STEP_FACTS, Facts, conform, in_order
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.logs.runs.assemble import SIDECAR_SETTINGS, SOURCES
from sweepscope.pipeline.store.checkpoints import Records
from sweepscope.schemas.tables.inference import INFERRED_COLUMNS, INFERRED_DIALECTS

_LOG = logging.getLogger(__name__)

_SLOW_S = 30.0
"""A file that takes longer is logged without -vv."""


_SPARSE = 4
"""A dialect's steps are few where so many lines come on each of them."""

PARTS = pl.Schema({"log": pl.String, "first_line": pl.Int64, "part": pl.String})
"""A row per part of a rotated log: its path, and the number in the log of its first line."""


@dataclass(frozen=True)
class Batch:
    """The facts of one batch. `files` has the ledger columns that reading decides.

    `other` has rows of further tables by name (NCCL output, memory snapshots), as their schemas want them. `parts` are
    PARTS rows of rotated logs; facts and sources have such a log under its own path, with lines numbered throughout.
    """

    sources: pl.DataFrame
    facts: Facts
    spans: pl.DataFrame
    sidecars: pl.DataFrame
    tables: list[pl.DataFrame]
    files: pl.DataFrame
    rejects: pl.DataFrame
    other: dict[str, pl.DataFrame] = field(default_factory=dict)
    parts: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PARTS))


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
    # What reads unknown logs only is not looked for in others.
    confirmed = [dialect for dialect in dialects if dialect.fit]
    by_signature = [
        replace(dialect, literals_by_function=dict.fromkeys(dialect.literals_by_function, ()))
        if dialect.fit
        else dialect
        for dialect in dialects
    ]
    batch = BatchAccumulator(by_signature, ResumeState(records, dialects, newest))
    rotated = _Rotated(found)
    for source, row in enumerate(found.iter_rows(named=True)):
        begin = time.perf_counter()
        note = rotated.read(row, batch) if row.get("part_of") else _read_file(source, row, batch)
        _log_file(row, note, time.perf_counter() - begin)
        batch.files.append({"path": row["path"], **note})
        on_file(row["path"], row["bytes"])
    extracted = batch.merged()
    _log_dialects(found, extracted)
    inferred = read_inferred(_unknown_logs(found, batch, rotated, extracted), extracted.facts, confirmed)
    facts = Facts.concat([extracted.facts.without_steps(inferred.with_steps), inferred.facts]).map(in_order)
    dialect_of = {**extracted.dialect_of, **inferred.readers}
    names = pl.DataFrame(
        {"source": list(dialect_of), "dialect": list(dialect_of.values())},
        schema={"source": pl.Int64, "dialect": pl.String},
    )
    sources = (
        found.with_row_index("source")
        .with_columns(
            pl.col("source").cast(pl.Int64), modified_at=pl.from_epoch((pl.col("mtime") * 1e6).cast(pl.Int64), "us")
        )
        .join(names, on="source", how="left", maintain_order="left")
    )
    batch.other.setdefault(INFERRED_COLUMNS.name, []).append(inferred.columns)
    batch.other.setdefault(INFERRED_DIALECTS.name, []).append(inferred.dialects)
    files = batch.nccl.with_kinds(_file_notes(sources, batch.files, dialects), extracted)
    files, facts = judge_unread(files, facts, inferred.unread, batch.nccl.sources())
    batch.sidecars += [*folder_names(sources), *stated_constants(sources, dialects)]
    return Batch(
        sources=rotated.under_their_logs(files.with_columns(dialect=pl.coalesce("dialect", "parser"))),
        facts=_with_histories(facts, batch.histories),
        spans=pl.concat([extracted.spans, stamps_of(inferred.facts)]).sort(SPANS.names()),
        sidecars=pl.DataFrame(batch.sidecars, schema=SIDECAR_SETTINGS),
        tables=batch.tables,
        files=files,
        rejects=pl.DataFrame(batch.rejects, schema=_REJECTS),
        other={name: pl.concat(frames) for name, frames in batch.other.items()} | batch.nccl.tables(files, facts),
        parts=pl.DataFrame(rotated.parts, schema=PARTS, orient="row"),
    )


def _unknown_logs(
    found: pl.DataFrame, batch: BatchAccumulator, rotated: _Rotated, extracted: Extract
) -> dict[int, Candidate]:
    """Logs to be inferred, by source: those that no dialect knows, and some that one does.

    Of the latter: those in which it finds no steps, or few for their length, and those with steps and no settings. What
    a user's dialect file reads is left as it is.
    """
    steps = extracted.facts.steps.drop_nulls("step")
    lines_of = steps.group_by("source").agg("line_no")
    step_lines = {int(source): line_nos for source, line_nos in lines_of.iter_rows()}
    configured = set(extracted.facts.settings["source"].unique())
    declared = {dialect.name for dialect in extracted.dialects if dialect.is_declared}
    last_lines = dict(extracted.last_lines.group_by("source").agg(pl.col("last_line").max()).iter_rows())
    ranks = rank_dialects(extracted.signature_hits, extracted.dialects)
    best = ranks.unique("source", keep="first", maintain_order=True)
    doubtful = set(best.filter(pl.col("distinct") == 1)["source"])
    logs = {}
    for source, (row, note) in enumerate(zip(found.iter_rows(named=True), batch.files, strict=True)):
        if note["status"] != "parsed" or note.get("kind") != "log" or extracted.dialect_of.get(source) in declared:
            continue
        mine = step_lines.get(source, [])
        is_sparse = len(mine) * _SPARSE < last_lines.get(source, 0) - min(mine, default=0)
        is_wanted = source not in extracted.dialect_of or is_sparse or (mine and source not in configured)
        if is_wanted and (opener := rotated.opener(source, row)):
            is_known = source in extracted.dialect_of
            has_settings = source in configured or (is_known and not mine)
            logs[source] = Candidate(
                *opener,
                frozenset(mine),
                is_known=is_known,
                is_doubtful=source in doubtful,
                has_settings=has_settings,
            )
    return logs


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


_LOG_KINDS = ("log", "nccl", "scheduler")


def _read_file(source: int, row: dict[str, object], batch: BatchAccumulator) -> dict[str, object]:
    kind, path = row["kind"], str(row["path"])
    if kind == "other":
        return {"status": "skipped", "error": "not a log or configuration that a parser reads"}
    reader = _log_reader(row) if kind in _LOG_KINDS else Reader(path)
    is_continued = _is_continued(row, reader)
    note = _noted(source, row, reader, batch)
    read = {"sha256": reader.sha256, "read_bytes": reader.bytes_read, **_content(reader)}
    return {**read, **note, "is_continued": is_continued}


def _log_reader(row: Mapping[str, object]) -> Reader:
    size = row["bytes"]
    return Reader(str(row["path"]), size=size if isinstance(size, int) and size else None, is_lenient=True)


def _is_continued(row: Mapping[str, object], reader: Reader) -> bool | None:
    """Whether a file begins with what the ledger knows of it; None where it knows nothing."""
    size, digest = row.get("known_bytes"), row.get("known_digest")
    return reader.begins_with(size, digest) if isinstance(size, int) and isinstance(digest, str) else None


def _noted(source: int, row: dict[str, object], reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns that depend on what is in a file. Reads it."""
    path = reader.path
    is_log = row["kind"] in _LOG_KINDS  # read in blocks of several files, which no limit of one may stop
    try:
        with nullcontext() if is_log else reading_whole(reader):
            return {"status": "parsed", **_read_kind(source, row, reader, batch)}
    except InputError as error:
        batch.discard(source)
        return {"status": "rejected", "error": str(error), "was_opened": not isinstance(error, UnreadableError)}
    except RecursionError:
        reason = f"its values nest too deep, over {sys.getrecursionlimit():,} levels"
        return {"status": "rejected", "error": f"Cannot read {path}: {reason}. Leave it out."}
    except (ValueError, csv.Error, pl.exceptions.PolarsError) as error:
        # The last two: a table that its reader cannot make sense of.
        reason = str(error).split("\n", 1)[0]
        return {"status": "rejected", "error": f"{path} is not what its name says: {reason}"}


def _content(reader: Reader) -> dict[str, object]:
    """Ledger columns of what a file holds."""
    content = reader.content
    return {
        "content_bytes": content.size if content else None,
        "content_digest": content.digest if content else None,
        "content_head": content.head if content else None,
    }


class _Rotated:
    """Rotated logs of a batch: all parts are read, in order, as the last one of the files that `found` has of a log."""

    def __init__(self, found: pl.DataFrame) -> None:
        self.parts: list[tuple[str, int, str]] = []
        self._files: dict[str, list[tuple[int, dict[str, object]]]] = {}
        self._notes: dict[str, dict[str, object]] = {}
        if "part_of" in found.columns:
            members = found.with_row_index("source").filter(pl.col("part_of").is_not_null()).sort("part")
            for row in members.iter_rows(named=True):
                self._files.setdefault(row["part_of"], []).append((row.pop("source"), row))

    def read(self, row: dict[str, object], batch: BatchAccumulator) -> dict[str, object]:
        """Ledger columns of one part; reads all parts of the log when the first of them comes."""
        if row["path"] not in self._notes:
            self._read_log(str(row["part_of"]), batch)
        return self._notes[str(row["path"])]

    def _read_log(self, log: str, batch: BatchAccumulator) -> None:
        files = self._files[log]
        readers = [_log_reader(row) for _, row in files]
        reader = RotatedReader(log, is_lenient=True, parts=readers)
        is_continued = [_is_continued(row, part) for (_, row), part in zip(files, readers, strict=True)]
        source, last = files[-1]
        # Without a size there is no record to read on from: what was read of the log lies in other parts by now.
        note = _noted(source, {**last, "path": log, "bytes": 0}, reader, batch)
        for (_, row), part, continued in zip(files, readers, is_continued, strict=True):
            own = {"sha256": part.sha256, "read_bytes": part.bytes_read, **_content(part), "is_continued": continued}
            self._notes[str(row["path"])] = {**note, **own, "offset_bytes": None}
        paths = [str(row["path"]) for _, row in files]
        self.parts += [(log, line, path) for line, path in zip(reader.first_lines, paths, strict=False)]

    def opener(self, source: int, row: Mapping[str, object]) -> tuple[str, Open] | None:
        """Path of a log and what opens it anew; None for a part of one that is read under another source."""
        if not row.get("part_of"):
            return str(row["path"]), lambda: _log_reader(row)
        log = str(row["part_of"])
        members = self._files[log]
        if source != members[-1][0]:
            return None
        return log, lambda: RotatedReader(log, is_lenient=True, parts=[_log_reader(part) for _, part in members])

    def under_their_logs(self, files: pl.DataFrame) -> pl.DataFrame:
        """SOURCES rows: the source that has the facts of a rotated log under the log's path, and no other as a log."""
        readers = {members[-1][0]: log for log, members in self._files.items()}
        others = [source for members in self._files.values() for source, _ in members[:-1]]
        if readers:
            path = pl.col("source").replace_strict(readers, default=None, return_dtype=pl.String)
            kind = pl.when(pl.col("source").is_in(others)).then(pl.lit("other")).otherwise("kind")
            files = files.with_columns(path=pl.coalesce(path, "path"), kind=kind)
        return files.select(SOURCES.names()).cast(SOURCES)


def _read_kind(source: int, row: dict[str, object], reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    """Ledger columns that differ from a file that was parsed. Raises for a file that cannot be read."""
    if row["kind"] in _LOG_KINDS:
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
