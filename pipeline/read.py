"""Read a batch of discovered files into facts: bytes are touched here and nowhere later."""

from __future__ import annotations

import csv
import fnmatch
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from pipeline import read_scheduler
from pipeline.errors import InputError, UnreadableError
from pipeline.growing import Growing, can_grow, facts_of
from pipeline.landing import Reader
from pipeline.memory.gpu_samples import is_samples
from pipeline.memory.sources import read_memory_file
from pipeline.parse import engine, lines
from pipeline.parse.assemble import SIDECAR_SETTINGS, SOURCES
from pipeline.parse.folder_name import read_folder_name
from pipeline.parse.protocol import Dialect, Facts
from pipeline.parse.registry import DIALECTS, TABLES, current_versions
from pipeline.parse.scheduler import SchedulerTable
from pipeline.parse.sift import Sifted, sift
from pipeline.read_nccl import NcclReader
from pipeline.run_id import run_id
from pipeline.sniff import SNIFF_BYTES, text_chunks
from pipeline.store.records import Record, Records
from schemas.scheduler import SCHEDULER_JOBS

BLOCK_BYTES = 8 << 20
"""Lines of many small files are sifted together up to this size; a larger file comes in several blocks."""

_READ_BYTES = 8 << 20
"""What is left of several blocks is read together from this size on."""

_TABLE_LIMIT_BYTES = 256 << 20


@dataclass(frozen=True)
class Batch:
    """What the files of one batch say. `files` holds the ledger columns that reading decides.

    `other` holds rows of further tables by name, as their schemas want them: what stands in files beside the training
    log itself (NCCL output, memory snapshots).
    """

    sources: pl.DataFrame
    facts: Facts
    spans: pl.DataFrame
    sidecars: pl.DataFrame
    tables: list[pl.DataFrame]
    files: pl.DataFrame
    rejects: pl.DataFrame
    other: dict[str, pl.DataFrame] = field(default_factory=dict)


@dataclass
class _State:
    """Accumulates while a batch is read."""

    dialects: Sequence[Dialect]
    growing: Growing
    pending: list[tuple[int, bytes, int]] = field(default_factory=list)
    pending_bytes: int = 0
    sifted: list[Sifted] = field(default_factory=list)
    extracts: list[engine.Extract] = field(default_factory=list)
    unfinished: list[tuple[int, bytes, int]] = field(default_factory=list)
    unfinished_nccl: list[tuple[int, bytes, int]] = field(default_factory=list)
    partial: set[int] = field(default_factory=set)
    settled: dict[int, str] = field(default_factory=dict)
    unread: set[int] = field(default_factory=set)
    sidecars: list[dict[str, str]] = field(default_factory=list)
    tables: list[pl.DataFrame] = field(default_factory=list)
    files: list[dict[str, object]] = field(default_factory=list)
    rejects: list[dict[str, object]] = field(default_factory=list)
    other: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    nccl: NcclReader = field(default_factory=NcclReader)

    def add(self, source: int, data: bytes, first_line: int, *, only_nccl: bool = False) -> None:
        self.nccl.add(source, data, first_line)
        if only_nccl:
            return
        self.pending.append((source, data, first_line))
        self.pending_bytes += len(data)
        if self.pending_bytes >= BLOCK_BYTES:
            self.partial.add(source)  # whether it ends here is not known yet
            self.flush()

    def restore(self, source: int, record: Record) -> None:
        """Take over what the lines before said."""
        said = facts_of(record, source, self.dialects)
        self.extracts.append(said)
        self.settled |= said.settled
        self.nccl.restore(source, record.nccl)

    def add_unfinished(self, source: int, data: bytes, line: int, *, only_nccl: bool) -> None:
        """The last line of a log of which the others are kept for the next ingest, without this one."""
        self.unfinished_nccl.append((source, data, line))
        if not only_nccl:
            self.unfinished.append((source, data, line))

    def flush(self) -> None:
        """Sift the lines that are there, and read what is left of them once that is worth a reading."""
        if self.pending:
            block = lines.split_many(self.pending)
            self.pending, self.pending_bytes = [], 0
            self.sifted.append(sift(block, self.dialects, partial=self.partial, known=self.settled))
            if unsettled := self.partial - set(self.settled):
                settled = engine.settled_by([*self.extracts, *self.sifted], self.dialects)
                self.settled |= {source: name for source, name in settled.items() if source in unsettled}
            if sum(part.text_bytes for part in self.sifted) >= _READ_BYTES:
                self.read_sifted()
            else:
                self.sifted[-1] = self.sifted[-1].owned()

    def read_sifted(self) -> None:
        """Turn what was sifted so far into facts."""
        if self.sifted:
            self.extracts.append(engine.read(self.sifted, self.dialects))
            self.sifted = []

    def discard(self, source: int) -> None:
        """Forget a file that turned out to be unreadable after some of its lines had been read."""
        self.pending = [part for part in self.pending if part[0] != source]
        self.nccl.discard(source)
        self.unread.add(source)

    def merged(self) -> engine.Extract:
        self.flush()
        self.read_sifted()
        whole, self.extracts = engine.merge(self.extracts, self.dialects), []
        self.growing.hand_on(whole, self.nccl.frames)
        for last_line in self.unfinished_nccl:
            self.nccl.add(*last_line)
        if self.unfinished:
            block = lines.split_many(self.unfinished)
            last_lines = engine.extract(block, self.dialects, partial=self.partial, known=self.settled)
            whole = engine.merge([whole, last_lines], self.dialects)
        return whole.without(self.unread) if self.unread else whole


def read_batch(
    found: pl.DataFrame,
    *,
    dialects: Sequence[Dialect] = DIALECTS,
    records: Records | None = None,
    on_file: Callable[[str, int], None] = lambda _path, _size: None,
) -> Batch:
    """Read every file of `found` (discover.FOUND rows; whole units).

    A file that cannot be read is recorded with its error and does not stop the batch. With `records`, logs that were
    read before and have only grown are read on from there, and what growing logs say is kept for the next time.
    `on_file` is told each path and its size, for a progress display.
    """
    newest = dict(found.group_by("unit").agg(pl.col("mtime").max()).iter_rows())
    state = _State(dialects, Growing(records, dialects, newest))
    for source, row in enumerate(found.iter_rows(named=True)):
        note = _read_file(source, row, state)
        state.files.append({"path": row["path"], **note})
        on_file(row["path"], row["bytes"])
    said = state.merged()
    names = pl.DataFrame(
        {"source": list(said.dialect_of), "dialect": list(said.dialect_of.values())},
        schema={"source": pl.Int64, "dialect": pl.String},
    )
    sources = (
        found.with_row_index("source")
        .with_columns(
            pl.col("source").cast(pl.Int64), modified_at=pl.from_epoch((pl.col("mtime") * 1e6).cast(pl.Int64), "us")
        )
        .join(names, on="source", how="left", maintain_order="left")
    )
    files = state.nccl.with_kinds(_file_notes(sources, state.files, dialects), said)
    state.sidecars += _folder_names(sources)
    return Batch(
        sources=files.with_columns(dialect=pl.coalesce("dialect", "parser")).select(SOURCES.names()).cast(SOURCES),
        facts=said.facts,
        spans=said.spans,
        sidecars=pl.DataFrame(state.sidecars, schema=SIDECAR_SETTINGS),
        tables=state.tables,
        files=files,
        rejects=pl.DataFrame(state.rejects, schema=_REJECTS),
        other={name: pl.concat(frames) for name, frames in state.other.items()} | state.nccl.tables(files, said.facts),
    )


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


def _read_file(source: int, row: dict[str, object], state: _State) -> dict[str, object]:
    kind, path = row["kind"], str(row["path"])
    if kind == "other":
        return {"status": "skipped", "error": "not a log or configuration that a parser reads"}
    size = row["bytes"] if kind in ("log", "nccl", "scheduler") else None
    reader = Reader(path, size=size if isinstance(size, int) and size else None)
    try:
        note = _read_kind(source, row, reader, state)
    except InputError as error:
        state.discard(source)
        note = {"status": "rejected", "error": str(error), "was_opened": not isinstance(error, UnreadableError)}
    except (ValueError, RecursionError, csv.Error, pl.exceptions.PolarsError) as error:
        # RecursionError: JSON that nests thousands deep. The last two: a table that its reader cannot make sense of.
        reason = str(error).split("\n", 1)[0]
        note = {"status": "rejected", "error": f"{path} is not what its name says: {reason}"}
    return {"sha256": reader.sha256, "read_bytes": reader.bytes_read, "status": "parsed", **note}


def _read_kind(source: int, row: dict[str, object], reader: Reader, state: _State) -> dict[str, object]:
    """Ledger columns that differ from a file that was parsed. Raises for a file that cannot be read."""
    path = reader.path
    if row["kind"] in ("log", "nccl", "scheduler"):
        return _read_log(source, row, reader, state)
    if row["kind"] == "bench_csv":
        return _read_table(row, reader, state)
    if row["kind"] == "memory":
        return _read_memory(row, reader, reader.chunks(), state)
    if row["kind"] == "flight_record":
        return _read_dump(source, reader, state)
    text = b"".join(_limited(reader.chunks(), path)).decode("utf-8-sig", "replace")
    parser, settings = _read_sidecar(path, text, state.dialects)
    state.sidecars += [
        {"unit": str(row["unit"]), "path": path, "name": name, "value": value, "setting_source": "config_file"}
        for name, value in settings.items()
    ]
    return {"parser": parser}


def _read_log(source: int, row: dict[str, object], reader: Reader, state: _State) -> dict[str, object]:
    """A log, or a scheduler's table under the name of one."""
    if before := state.growing.resume(row, reader):
        return _read_lines(source, row, reader, reader.chunks(), state, before=before)
    chunks = text_chunks(reader.path, reader.chunks())
    head = next(chunks, b"")
    whole = itertools.chain([head], chunks)
    if jobs := read_scheduler.recognise(head):
        return _read_jobs(jobs, row, whole, state)
    return _read_lines(source, row, reader, whole, state)


def _read_lines(
    source: int,
    row: dict[str, object],
    reader: Reader,
    chunks: Iterable[bytes],
    state: _State,
    *,
    before: Record | None = None,
) -> dict[str, object]:
    if before:
        state.restore(source, before)
    is_watched = state.growing.is_watched(row, before)
    if is_watched:
        state.partial.add(source)
    cut_lines, line = (list(before.cut_lines), before.next_line) if before else ([], 1)
    last, last_bytes, only_nccl = b"", 0, row["kind"] == "nccl"
    whole, whole_line = b"", line  # the last block that ends with a line feed, and its first line
    for data, first_line, left_out in lines.blocks(chunks, line):
        if not data.endswith(b"\n"):
            last, last_bytes = data, len(data) + left_out
        else:
            state.add(source, data, first_line, only_nccl=only_nccl)
            whole, whole_line = data, first_line
        if left_out:
            cut_lines.append((first_line, left_out))
    line = whole_line + lines.count(whole)
    grows = before.can_grow if before else can_grow(reader)
    offset = reader.position - last_bytes if grows else None
    whole_lines = tuple(cut for cut in cut_lines if cut[0] < line)
    record = _record(reader, offset, line, whole_lines, before) if is_watched else None
    is_kept = record is not None and record.can_grow
    if last and not is_kept:
        state.add(source, last, line, only_nccl=only_nccl)
    state.growing.take(source, reader, record, before)
    if last and is_kept:
        state.add_unfinished(source, last, line, only_nccl=only_nccl)
    state.rejects += [
        _reject(reader.path, number, "a line of over 16 MiB was cut", f"{left_out:,} bytes not read")
        for number, left_out in cut_lines
    ]
    kind = {"kind": "nccl", "parser": "nccl"} if only_nccl else {"kind": "log"}
    return {**kind, "sha256": record.sha256 if record else reader.sha256, "offset_bytes": offset}


def _record(
    reader: Reader, offset: int | None, line: int, cut_lines: tuple[tuple[int, int], ...], before: Record | None
) -> Record | None:
    """How far a log was read; None when its last line is so long that its beginning is not remembered."""
    end = reader.mark(reader.position)
    mark = end if offset is None else reader.mark(offset)
    if mark is None or end is None:
        return None
    is_as_before = before is not None and before.end == end
    sha256 = before.sha256 if before and is_as_before else reader.sha256
    return Record(mark, end, sha256, can_grow=offset is not None, next_line=line, cut_lines=cut_lines)


def _read_dump(source: int, reader: Reader, state: _State) -> dict[str, object]:
    path = reader.path
    if broken := state.nccl.add_dump(source, path, b"".join(_limited(reader.chunks(), path))):
        state.rejects.append(_reject(path, None, "not a record", f"{broken:,} entries", table="flight_records"))
    return {"parser": "nccl"}


def _read_jobs(
    jobs: SchedulerTable, row: dict[str, object], chunks: Iterable[bytes], state: _State
) -> dict[str, object]:
    path = str(row["path"])
    found, rejects = read_scheduler.read_table(jobs, _limited(chunks, path), path=path, run_dir=str(row["run_dir"]))
    state.other.setdefault(SCHEDULER_JOBS.name, []).append(found)
    state.rejects += rejects.to_dicts()
    return {"kind": "scheduler", "parser": "scheduler"}


def _limited(chunks: Iterable[bytes], path: str) -> Iterator[bytes]:
    total = 0
    for chunk in chunks:
        total += len(chunk)
        if total > _TABLE_LIMIT_BYTES:
            raise InputError(f"{path} is larger than 256 MiB, too large for a configuration or a table. Split it.")
        yield chunk


def _read_sidecar(path: str, text: str, dialects: Sequence[Dialect]) -> tuple[str, dict[str, str]]:
    """Dialect name and settings of the first sidecar reader that accepts the text.

    Raises ValueError when none does, with the last reader's reason.
    """
    name, reason = path.rsplit("/", 1)[-1].lower(), "no reader for this file"
    for dialect in dialects:
        for sidecar in dialect.sidecars:
            if fnmatch.fnmatch(name, sidecar.pattern):
                try:
                    return dialect.name, dict(sidecar.read(text))
                except ValueError as error:
                    reason = str(error)
    raise ValueError(reason)


def _read_table(row: dict[str, object], reader: Reader, state: _State) -> dict[str, object]:
    """One run per row; a row's id is its line. Other CSV files are left after their first bytes."""
    path, chunks = reader.path, reader.chunks()
    head = next(chunks, b"")
    table = next((t for t in TABLES if t.matches(head[:SNIFF_BYTES].decode("utf-8-sig", "replace"))), None)
    if jobs := read_scheduler.recognise(head):
        return _read_jobs(jobs, row, itertools.chain([head], chunks), state)
    if table is None:
        if is_samples(head[:SNIFF_BYTES].decode("utf-8-sig", "replace")):
            return _read_memory(row, reader, itertools.chain([head], chunks), state)
        return {"status": "skipped", "error": "a CSV file that is not a known benchmark table"}
    text = b"".join(_limited(itertools.chain([head], chunks), path)).decode("utf-8-sig", "replace")
    rows, rejects = table.read(text)
    ids = [run_id(path, f"line {line_no}") for line_no in rows["line_no"].to_list()]
    state.tables.append(
        rows.with_columns(
            pl.Series("run_id", ids, dtype=pl.String), attempt=pl.lit(1, pl.Int64), source_path=pl.lit(path),
            run_dir=pl.lit(row["run_dir"]), sweep=pl.lit(row["sweep"]), origin=pl.lit(row["origin"]),
            framework=pl.lit(table.framework), parser=pl.lit(table.name),
            parser_version=pl.lit(table.version, pl.Int64),
        )
    )  # fmt: skip
    state.rejects += [
        _reject(path, r["line_no"], r["reason"], r["raw"], table="runs") for r in rejects.iter_rows(named=True)
    ]
    return {"parser": table.name}


def _read_memory(row: dict[str, object], reader: Reader, chunks: Iterable[bytes], state: _State) -> dict[str, object]:
    found = read_memory_file(reader.path, chunks, row)
    for name, frame in found.tables.items():
        state.other.setdefault(name, []).append(frame)
    state.rejects += [_reject(reader.path, line, reason, raw, table=found.table) for line, reason, raw in found.rejects]
    return {"parser": found.parser, **({"status": "skipped", "error": found.skipped} if found.skipped else {})}


def _reject(path: str, line_no: int | None, reason: str, raw: str, *, table: str = "steps") -> dict[str, object]:
    return {"file": path, "line_no": line_no, "table": table, "column": None, "reason": reason, "raw": raw}


def _folder_names(sources: pl.DataFrame) -> list[dict[str, str]]:
    """Settings in the name of the run directory, else of the directory and file of a lone log; one set per unit."""
    found: list[dict[str, str]] = []
    units = sources.filter(pl.col("kind") == "log").unique("unit", keep="first", maintain_order=True)
    for unit, run_dir, path in units.select("unit", "run_dir", "path").iter_rows():
        names = [run_dir] if unit == run_dir else [run_dir, path]
        merged: dict[str, str] = {}
        for name in names:
            merged |= read_folder_name(name.rsplit("/", 1)[-1])
        found += [
            {"unit": unit, "path": run_dir, "name": key, "value": value, "setting_source": "folder_name"}
            for key, value in merged.items()
        ]
    return found


def _file_notes(sources: pl.DataFrame, notes: list[dict[str, object]], dialects: Sequence[Dialect]) -> pl.DataFrame:
    """Ledger rows, with the version of the parser that read each file, be it a log, a sidecar or a table.

    No parser has seen a file that could not be opened; without a version it is new again at the next ingest, because
    making it readable changes neither its size nor its time.
    """
    frame = pl.DataFrame(notes, schema=_FILE_NOTES)
    rows = sources.join(frame, on="path", how="left", maintain_order="left", suffix="_read")
    parser = pl.coalesce("parser", "dialect")
    version = parser.fill_null("").replace_strict(current_versions(dialects), return_dtype=pl.Int64)
    version = pl.when(pl.col("was_opened").fill_null(value=True)).then(version)
    kind = pl.coalesce("kind_read", "kind")
    return rows.with_columns(parser=parser, parser_version=version, kind=kind).drop("was_opened", "kind_read")
