"""Read a batch of discovered files into facts: bytes are touched here and nowhere later."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import polars as pl

from pipeline.errors import InputError
from pipeline.landing import Reader
from pipeline.parse import engine, lines
from pipeline.parse.assemble import SIDECAR_SETTINGS, SOURCES
from pipeline.parse.folder_name import read_folder_name
from pipeline.parse.protocol import Facts
from pipeline.parse.registry import DIALECTS, TABLES, parser_version

BLOCK_BYTES = 32 << 20
"""Lines of many small files are parsed together up to this size; a larger file comes in several blocks."""

_SNIFF_BYTES = 8192
_BINARY_MAGIC = (
    b"\x7fELF",
    b"\x89PNG",
    b"PK\x03\x04",
    b"%PDF",
    b"\x80\x02",
    b"\x80\x03",
    b"\x80\x04",
    b"\x80\x05",
    b"\x93NUMPY",
    b"SQLite",
)
_TEXT_CONTROLS = frozenset(b"\t\n\r\x0b\x0c\x1b\x08\x07\x00")
_TABLE_LIMIT_BYTES = 256 << 20


@dataclass(frozen=True)
class Batch:
    """What the files of one batch say. `files` holds the ledger columns that reading decides."""

    sources: pl.DataFrame
    facts: Facts
    spans: pl.DataFrame
    sidecars: pl.DataFrame
    tables: list[pl.DataFrame]
    files: pl.DataFrame
    rejects: pl.DataFrame


@dataclass
class _State:
    """Accumulates while a batch is read."""

    pending: list[pl.DataFrame] = field(default_factory=list)
    pending_bytes: int = 0
    extracts: list[engine.Extract] = field(default_factory=list)
    dialect_of: dict[int, str] = field(default_factory=dict)
    sidecars: list[dict[str, str]] = field(default_factory=list)
    tables: list[pl.DataFrame] = field(default_factory=list)
    files: list[dict[str, object]] = field(default_factory=list)
    rejects: list[dict[str, object]] = field(default_factory=list)

    def add(self, frame: pl.DataFrame, size: int) -> None:
        self.pending.append(frame)
        self.pending_bytes += size
        if self.pending_bytes >= BLOCK_BYTES:
            self.flush()

    def flush(self) -> None:
        if self.pending:
            block = engine.extract(pl.concat(self.pending), DIALECTS, dialect_of=self.dialect_of)
            self.dialect_of.update(block.dialect_of)
            self.extracts.append(block)
        self.pending, self.pending_bytes = [], 0


def read_batch(found: pl.DataFrame, *, on_file: Callable[[str, int], None] = lambda _path, _size: None) -> Batch:
    """Read every file of `found` (discover.FOUND rows).

    A file that cannot be read is recorded with its error and does not stop the batch. `on_file` is told each path and
    its size, for a progress display.
    """
    state = _State()
    for source, row in enumerate(found.iter_rows(named=True)):
        note = _read_file(source, row, state)
        state.files.append({"path": row["path"], **note})
        on_file(row["path"], row["bytes"])
    state.flush()
    names = pl.DataFrame(
        {"source": list(state.dialect_of), "dialect": list(state.dialect_of.values())},
        schema={"source": pl.Int64, "dialect": pl.String},
    )
    sources = (
        found.with_row_index("source")
        .with_columns(
            pl.col("source").cast(pl.Int64), modified_at=pl.from_epoch((pl.col("mtime") * 1e6).cast(pl.Int64), "us")
        )
        .join(names, on="source", how="left", maintain_order="left")
        .with_columns(parser_version=_versions(pl.col("dialect")))
    )
    state.sidecars += _folder_names(sources)
    return Batch(
        sources=sources.select(SOURCES.names()).cast(dict(SOURCES)),
        facts=Facts.concat(extract.facts for extract in state.extracts),
        spans=pl.concat([pl.DataFrame(schema=engine.SPANS), *(e.spans for e in state.extracts)]),
        sidecars=pl.DataFrame(state.sidecars, schema=SIDECAR_SETTINGS),
        tables=state.tables,
        files=_file_notes(sources, state.files),
        rejects=pl.DataFrame(state.rejects, schema=_REJECTS),
    )


_FILE_NOTES = pl.Schema(
    {"path": pl.String, "sha256": pl.String, "parser": pl.String, "status": pl.String, "error": pl.String}
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
    reader = Reader(path)
    try:
        if kind == "log":
            _read_log(source, path, reader, state)
            return {"sha256": reader.sha256, "status": "parsed"}
        text = b"".join(_limited(reader)).decode("utf-8", errors="replace")
        if kind == "bench_csv":
            return {"sha256": reader.sha256, **_read_table(path, text, row, state)}
        parser, settings = _read_sidecar(path, text)
    except (InputError, ValueError) as error:
        return {"sha256": reader.sha256, "status": "rejected", "error": str(error)}
    state.sidecars += [
        {"unit": str(row["unit"]), "path": path, "name": name, "value": value, "setting_source": "config_file"}
        for name, value in settings.items()
    ]
    return {"sha256": reader.sha256, "parser": parser, "status": "parsed"}


def _read_log(source: int, path: str, reader: Reader, state: _State) -> None:
    """Raises InputError for a binary file, before any of its lines is parsed."""
    for data, first_line, dropped in lines.blocks(_text_only(reader)):
        if dropped:
            state.rejects.append(
                _reject(path, first_line, "a line of over 16 MiB was cut", f"{dropped:,} bytes not read")
            )
        state.add(lines.split(source, data, first_line), len(data))


def _text_only(reader: Reader) -> Iterator[bytes]:
    first = True
    for chunk in reader.chunks():
        if first and _is_binary(chunk[:_SNIFF_BYTES]):
            raise InputError(f"{reader.path} is a binary file, not a log. Leave it out, or give the text log.")
        first = False
        yield chunk


def _is_binary(head: bytes) -> bool:
    """Known magic, or more than a tenth of control bytes that no log prints. Stray NULs are not enough."""
    if head.startswith(_BINARY_MAGIC):
        return True
    strange = sum(1 for byte in head if byte < 0x20 and byte not in _TEXT_CONTROLS)
    zeros = head.count(0)
    return bool(head) and (strange > len(head) / 10 or zeros > len(head) / 2)


def _limited(reader: Reader) -> Iterator[bytes]:
    total = 0
    for chunk in reader.chunks():
        total += len(chunk)
        if total > _TABLE_LIMIT_BYTES:
            raise InputError(
                f"{reader.path} is larger than 256 MiB, too large for a configuration or a table. Split it."
            )
        yield chunk


def _read_sidecar(path: str, text: str) -> tuple[str, dict[str, str]]:
    """Dialect name and settings of the first sidecar reader that accepts the text.

    Raises ValueError when none does, with the last reader's reason.
    """
    name, reason = path.rsplit("/", 1)[-1].lower(), "no reader for this file"
    for dialect in DIALECTS:
        for sidecar in dialect.sidecars:
            if fnmatch.fnmatch(name, sidecar.pattern):
                try:
                    return dialect.name, dict(sidecar.read(text))
                except ValueError as error:
                    reason = str(error)
    raise ValueError(reason)


def _read_table(path: str, text: str, row: dict[str, object], state: _State) -> dict[str, object]:
    for table in TABLES:
        if table.matches(text[:_SNIFF_BYTES]):
            rows, rejects = table.read(text)
            state.tables.append(
                rows.with_columns(
                    source_path=pl.lit(path), run_dir=pl.lit(row["run_dir"]), sweep=pl.lit(row["sweep"]),
                    origin=pl.lit(row["origin"]), framework=pl.lit(table.framework), parser=pl.lit(table.name),
                    parser_version=pl.lit(table.version, pl.Int64),
                )
            )  # fmt: skip
            state.rejects += [
                _reject(path, r["line_no"], r["reason"], r["raw"], table="runs") for r in rejects.iter_rows(named=True)
            ]
            return {"parser": table.name, "status": "parsed"}
    return {"status": "skipped", "error": "a CSV file that is not a known benchmark table"}


def _reject(path: str, line_no: int, reason: str, raw: str, *, table: str = "steps") -> dict[str, object]:
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


def _versions(dialect: pl.Expr) -> pl.Expr:
    known = {d.name: parser_version(d.name) for d in DIALECTS}
    return dialect.replace_strict(known, default=parser_version(None), return_dtype=pl.Int64)


def _file_notes(sources: pl.DataFrame, notes: list[dict[str, object]]) -> pl.DataFrame:
    """Ledger rows; a readable log without a known dialect is kept as evidence and named as such."""
    frame = pl.DataFrame(notes, schema=_FILE_NOTES)
    rows = sources.join(frame, on="path", how="left", maintain_order="left")
    return rows.with_columns(parser=pl.coalesce("parser", "dialect"))
