"""Read one file: choose its reader, and note what became of it.

A note has columns of the ledger (schemas/tables/ledger.py FILES) as far as reading decides them. What the file holds
goes to the batch's accumulator. A new kind of file is one line in `_read_kind`; how a kind is read belongs to
`read_log` and `read_sidecar`.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Mapping
from contextlib import nullcontext

import polars as pl

from sweepscope.pipeline.errors import InputError, UnreadableError
from sweepscope.pipeline.ingest.accumulator import BatchAccumulator
from sweepscope.pipeline.ingest.archived_files import archive_note
from sweepscope.pipeline.ingest.file_kinds import RECORD_SUFFIXES, TABLE_SUFFIXES, is_named_step_table
from sweepscope.pipeline.ingest.read_configuration import read_sidecar
from sweepscope.pipeline.ingest.read_log import read_log
from sweepscope.pipeline.ingest.read_sidecar import (
    read_dump,
    read_history,
    read_memory,
    read_stated,
    read_table,
    reading_whole,
)
from sweepscope.pipeline.ingest.read_tracker import read_tracker
from sweepscope.pipeline.io.log_envelopes import has_losses, is_message_table
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.text_encoding import SNIFF_BYTES, without_utf16
from sweepscope.pipeline.logs.inference.step_tables import are_step_records, is_bare_step_table, is_step_table
from sweepscope.pipeline.memory.names import is_named_memory

_OF_EVALUATION = re.compile(r"(?:^|[^a-z])(?:eval(?:uation)?|valid(?:ation)?|val|test|dev)(?:[^a-z]|$)")
_OF_METHOD = re.compile(
    r"(?:^|[^a-z])(?:sft|dpo|grpo|ppo|instruct|chat|finetun\w*)(?:[^a-z]|$)|(?:^|[^a-z])train(?:ing)?\."
)
"""In names of records that are a training's data, or what it logs. Parts of data have a number behind `train`."""
_RECORDS_BYTES = 1 << 16
"""In which records are recognised: each of Ray Tune's holds the whole configuration of its trial."""
_LOG_KINDS = ("log", "nccl", "scheduler")
_BY_SOURCE = {"bench_csv": read_table, "history": read_history}

_UNREAD = "not a log or configuration that a parser reads"


def read_file(source: int, row: dict[str, object], batch: BatchAccumulator) -> dict[str, object]:
    """The note of one file.

    Args:
        source: its number in the batch.
        row: a row of discover.FOUND.
        batch: gets what the file holds.
    """
    if row["kind"] == "other" and _may_be_of_method(str(row["path"])):
        row = {**row, "kind": "log"}
    if row["kind"] == "other":
        return {"status": "skipped", "error": _UNREAD}
    if row["kind"] == "archive":
        return archive_note(str(row["path"]))
    path = str(row["path"])
    if (row["kind"] == "bench_csv" and _is_log(path)) or (row["kind"] == "history" and _is_bare(path)):
        row = {**row, "kind": "log"}
    is_log = row["kind"] in _LOG_KINDS
    reader = open_log(row) if is_log else Reader(str(row["path"]), is_verbatim=row["kind"] == "tracker")
    is_continued = begins_as_known(row, reader)
    note = read_contents(source, row, reader, batch)
    return {**content_columns(reader), **note, "is_continued": is_continued}


def _may_be_of_method(path: str) -> bool:
    """Whether records with a name of a kind of training, which most often are its data, are its steps."""
    name = path.lower().rpartition("/")[2]
    return name.endswith(RECORD_SUFFIXES) and _OF_METHOD.search(name) is not None and has_losses(_head(path))


def _head(path: str, most: int = SNIFF_BYTES) -> bytes:
    """The first bytes of a file; none of one that cannot be read, which its reader says."""
    try:
        return next(without_utf16(Reader(path, is_hashed=False).chunks()), b"")[:most]
    except InputError:
        return b""


def _is_log(path: str) -> bool:
    """Whether a table is a log: of times and messages, as a collector exports it, or with a row for each step."""
    name = path.lower().rpartition("/")[2].removesuffix(".gz").removesuffix(".zst")
    is_records = name.endswith((".json", *RECORD_SUFFIXES))
    head = _head(path, _RECORDS_BYTES if is_records else SNIFF_BYTES)
    if not (is_records or name.endswith(TABLE_SUFFIXES)) or _OF_EVALUATION.search(name):
        return is_message_table(head)
    text = head.decode("utf-8-sig", "replace")
    return are_step_records(text) if is_records else is_message_table(head) or is_step_table(text) or _is_bare(path)


def _is_bare(path: str) -> bool:
    """Whether a table with the name of one of steps has no header."""
    is_named = is_named_step_table(path.rpartition("/")[2])
    return is_named and is_bare_step_table(_head(path).decode("utf-8-sig", "replace"))


def open_log(row: Mapping[str, object], *, is_hashed: bool = True) -> Reader:
    """A reader of a log, which may grow while it is read: it stops at the size that discovery found."""
    bytes_, path = row["bytes"], str(row["path"])
    size = bytes_ if isinstance(bytes_, int) and bytes_ else None
    return Reader(path, size=size, is_hashed=is_hashed, is_lenient=True)


def begins_as_known(row: Mapping[str, object], reader: Reader) -> bool | None:
    """Whether a file begins with what the ledger knows of it; None where it knows nothing."""
    size, digest = row.get("known_bytes"), row.get("known_digest")
    return reader.begins_with(size, digest) if isinstance(size, int) and isinstance(digest, str) else None


def read_contents(source: int, row: dict[str, object], reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    """The note on what is in a file: its status, and what its reader says. A fault of the file is its status."""
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
        if row["kind"] == "memory" and not is_named_memory(path):  # pickles hold anything
            return {"kind": "other", "status": "skipped", "error": f"a pickle, but no snapshot of GPU memory: {reason}"}
        return {"status": "rejected", "error": f"{path} is not what its name says: {reason}"}


def content_columns(reader: Reader) -> dict[str, object]:
    """Columns by which the bytes that were read are recognised, under any name: hashes and sizes."""
    content = reader.content
    return {
        "sha256": reader.sha256,
        "read_bytes": reader.bytes_read,
        "content_bytes": content.size if content else None,
        "content_digest": content.digest if content else None,
        "content_head": content.head if content else None,
    }


def _read_kind(source: int, row: dict[str, object], reader: Reader, batch: BatchAccumulator) -> dict[str, object]:
    """Columns in which a file differs from one that was parsed. Raises for a file that cannot be read."""
    if row["kind"] in _LOG_KINDS:
        return read_log(source, row, reader, batch)
    if row["kind"] in _BY_SOURCE:
        return _BY_SOURCE[str(row["kind"])](source, row, reader, batch)
    if row["kind"] == "memory":
        return read_memory(row, reader, reader.chunks(), batch)
    if row["kind"] == "tracker":
        return read_tracker(source, row, reader, batch)
    if row["kind"] == "flight_record":
        return read_dump(source, reader, batch)
    return read_stated(reader) if row["kind"] == "statements" else read_sidecar(row, reader, batch)
