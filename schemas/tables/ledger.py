"""What was read: files, and lines and rows that were rejected; and the store itself."""

from __future__ import annotations

from sweepscope.schemas import vocab
from sweepscope.schemas.columns.shared import columns
from sweepscope.schemas.core.column import flag, integer, number, text, time
from sweepscope.schemas.core.table import Table

FILES = Table(
    name="files",
    description="The ledger: every file seen, what was done with it and why.",
    grain="one row per file",
    primary_key=("path",),
    replaced_by="path",
    redefines=("kind", "status"),
    columns=columns(
        text("path", "absolute path, URL, or path of the bundled table"),
        text("unit", "run directory or file that is ingested, and replaced, as a whole"),
        text("kind", "what the file is", vocab.FILE_KIND),
        integer("bytes", "bytes", "size of the file"),
        number("mtime", "s", "modification time, seconds since 1970 (0 for bundled tables)"),
        text("sha256", "SHA-256 of the file; NULL for a log read in parts, until it is at rest and is read whole"),
        integer("read_bytes", "bytes", "bytes that the last ingest read of it: less than its size for a log that grew"),
        integer("offset_bytes", "bytes", "end of the last whole line, where reading goes on; NULL: it starts anew"),
        "parser parser_version",
        text("status", "what was done with the file", vocab.FILE_STATUS),
        text("error", "why the file was skipped or rejected"),
        integer("rows_parsed", "count", "rows that came from this file, over all tables"),
        integer("lines_rejected", "count", "lines and rows of this file in `rejects`"),
        integer(
            "secrets_hidden",
            "count",
            "texts of its rows in which a token, a key or a password was hidden: the file itself still has them",
        ),
        text("batch_id", "ingest batch that read the file last"),
        text("linked_path", "the file's own name where `path` is a link to it; NULL where `path` is that name"),
        integer("content_bytes", "bytes", "size of what was read, unpacked where the file is compressed"),
        text("content_digest", "SHA-256 of the first and last 64 KiB of what was read; the same in a copy of any name"),
        text("content_head", "8 hex digits for each of the first 64, 128, ... 65,536 bytes of what was read"),
        flag(
            "is_continued", "while a batch is read: the file began with what the ledger knew of it; NULL in the store"
        ),
        text("id_path", "path that run ids are made from, where it is not `path`: the file moved, or is another one"),
        text("part_of", "log that the file is a part of, where the log was rotated"),
        text("stated", "what was stated of its runs when it was read, as JSON: column, value, overrides, file"),
        text("former_path", "name that the file had when it was read first, or before other content took its name"),
    ),
)

REJECTS = Table(
    name="rejects",
    description="Lines that look like records but did not parse, and rows that broke a schema. "
    "Nothing is dropped silently.",
    grain="one row per rejected line or row and reason",
    primary_key=("file", "line_no", "table", "column", "reason"),
    replaced_by="file",
    nullable_key=("line_no", "table", "column"),
    columns=columns(
        text("file", "file the line or row comes from"),
        "line_no",
        text("table", "table the row was meant for"),
        text("column", "column that failed, when one can be named"),
        text("reason", "why it was rejected"),
        text("raw", "the raw line or row, trimmed to 2,000 characters"),
    ),
)

STORE_INFO = Table(
    name="store_info",
    description="What this store is: its version, the release of the lake behind it, and what published it.",
    grain="one row",
    primary_key=("version",),
    layer="store",
    columns=columns(
        integer("version", "id", "number of the published store, one higher each time", minimum=1),
        integer("release", "id", "release of the lake that it was built from", minimum=1),
        time("published_at", "when it was published (UTC)"),
        text("package_version", "version of sweepscope that published it"),
        text("fingerprint", "hash of the table and view definitions; another one means publishing anew"),
        integer("row_count", "count", "rows over all tables"),
    ),
)

RECONCILED_RUNS = Table(
    name="reconciled_runs",
    description="Runs that the store shows otherwise than their own logs: a scheduler's table, or a log of the same "
    "training as a file of steps, has changed them.",
    grain="one row per run",
    primary_key=("run_id",),
    layer="store",
    columns=columns(
        "run_id",
        text("content", "hash of the run's rows that differ; a store with the same one need not exchange them"),
    ),
)
