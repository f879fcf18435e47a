"""Logs read as an ingest would, and what a dialect file finds in them: the file access of `dialect test`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import polars as pl

from sweepscope.pipeline.errors import InputError, UsageError
from sweepscope.pipeline.ingest.file_kinds import file_kind
from sweepscope.pipeline.io.file_names import printable
from sweepscope.pipeline.io.files import canonical, list_files
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.remote import is_url
from sweepscope.pipeline.io.text_encoding import text_chunks
from sweepscope.pipeline.logs.declared.compile import compile_document
from sweepscope.pipeline.logs.declared.configuration import read_configuration
from sweepscope.pipeline.logs.declared.explain import Explanation, explain
from sweepscope.pipeline.logs.declared.rules import Document
from sweepscope.pipeline.logs.dialect import Dialect
from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.logs.registry import DIALECTS
from sweepscope.pipeline.text import lines
from sweepscope.pipeline.text.secret_columns import hide_frame

MAX_LOG_BYTES = 64 << 20
"""Bytes of a log that are read."""
MAX_LOGS = 50
_MAX_CHUNKS = 64


@dataclass(frozen=True)
class Tested:
    """One log. `files`: the settings of each configuration file in its folder, or the reason why it has none."""

    path: str
    explanation: Explanation
    files: dict[str, dict[str, str] | str]
    is_whole: bool


def try_dialect(document: Document, paths: Sequence[str]) -> list[Tested]:
    """What the document finds in each log at the paths.

    Raises UsageError for no log or more than MAX_LOGS, and InputError for one that cannot be read.
    """
    dialect = compile_document(document)
    others = [other for other in DIALECTS if other.name != document.name]
    both = [dialect, *others]
    found = {entry.path: entry for path in paths for entry in list_files(path)}
    kinds = {path: file_kind(path.rsplit("/", 1)[-1], both) for path in found}
    named = {printable(canonical(path)) for path in paths}
    logs = [path for path in found if kinds[path] == "log" or path in named]
    if not logs:
        remedy = "Name the file itself, or put its name into `logs` of the dialect file"
        raise UsageError(f"No log at {', '.join(paths)}. {remedy}.")
    if len(logs) > MAX_LOGS:
        raise UsageError(
            f"{len(logs):,} logs at {', '.join(paths)}: at most {MAX_LOGS} are tried at once. Name some of them."
        )
    return [_try(path, document, others) for path in logs]


def _try(path: str, document: Document, others: Sequence[Dialect]) -> Tested:
    rows, is_whole = _lines(path)
    folder = [] if is_url(path) else sorted(str(file) for file in Path(path).parent.iterdir() if file.is_file())
    settings = {file: _settings(file, document) for file in folder if file != path}
    found = {file: result for file, result in settings.items() if result is not None}
    return Tested(path, explain(rows, document, others), found, is_whole)


def _lines(path: str) -> tuple[pl.DataFrame, bool]:
    reader, parts, num_bytes = Reader(path), [lines.split(0, b"")], 0
    for data, first_line, _dropped in lines.blocks(text_chunks(path, reader.chunks())):
        parts.append(lines.split(0, data, first_line))
        num_bytes += len(data)
        if num_bytes > MAX_LOG_BYTES:
            break
    return hide_frame(cleaning.clean(pl.concat(parts))), num_bytes <= MAX_LOG_BYTES


def _settings(path: str, document: Document) -> dict[str, str] | str | None:
    """The settings of a configuration file, the reason why it has none, or None for a file of another name."""
    name, reason = path.rsplit("/", 1)[-1].lower(), None
    for file in document.files:
        if fnmatch(name, file.pattern):
            try:
                text = b"".join(itertools.islice(Reader(path).chunks(), _MAX_CHUNKS)).decode("utf-8-sig", "replace")
                return dict(read_configuration(text, file))
            except (ValueError, InputError) as error:
                reason = str(error)
    return reason
