"""Lines of a log around one of them, read from where it lies and numbered as the ingest numbers them.

Only content that the ledger knows is shown: a file that was replaced, or a link that leads elsewhere now, is refused.
Credentials are hidden as in everything that is stored.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from sweepscope.pipeline.errors import InputError, LimitError
from sweepscope.pipeline.io.files import size_and_time
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.remote import is_url
from sweepscope.pipeline.io.text_encoding import HOLE, Holes, text_chunks
from sweepscope.pipeline.text import lines
from sweepscope.pipeline.text.secrets import shorten
from sweepscope.schemas import limits

MOST_AROUND = 200
"""Lines before and after that a window may have."""

_LINE_CHARS = 2_000
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class Known:
    """What the ledger knows of a file: size on disk, time of modification, and size and digest of its content."""

    path: str
    bytes: int | None = None
    mtime: float | None = None
    content_bytes: int | None = None
    content_digest: str | None = None


@dataclass(frozen=True)
class Window:
    """Consecutive lines, `first` being the number of the first one. `has_more`: the file goes on after them."""

    first: int
    lines: tuple[str, ...]
    has_more: bool


def read_window(known: Known, line_no: int, *, around: int = 40) -> Window:
    """The lines from `around` before a line to as many after it; fewer at the ends of the file.

    Raises:
        InputError: the file is gone, another one, binary, behind a URL, or has no such line.
        LimitError: the line lies too far in the file.
    """
    path, around = known.path, min(around, MOST_AROUND)
    _check(known)
    first, last = max(1, line_no - around), line_no + around
    kept: deque[str] = deque(maxlen=last - first + 1)
    has_more = False
    for number, text in _numbered(path, first):
        if number > last:
            has_more = True
            break
        kept.append(text)
    if first + len(kept) <= line_no:
        raise InputError(f"{path} has no line {line_no:,}: it ends before it. Ingest it again if it was cut since.")
    return Window(first, tuple(kept), has_more)


def read_lines(known: Known, *, first: int = 1) -> Iterator[tuple[int, str]]:
    """Lines with their numbers from a line on. Raises as `read_window` does, InputError before the first line."""
    _check(known)
    yield from _numbered(known.path, first)


def _check(known: Known) -> None:
    """Raise InputError for a file that is not the one that was read."""
    path = known.path
    if is_url(path):
        raise InputError(f"{path} is behind a URL: the dashboard opens local files only. Fetch it to look at it.")
    try:
        found = size_and_time(path) if os.path.isabs(path) else None
    except OSError as error:
        why = "is gone" if isinstance(error, FileNotFoundError) else f"cannot be opened ({error.strerror})"
        raise InputError(f"{path} {why}: it was moved or deleted since it was read. Put it back to see it.") from error
    if found is None:
        raise InputError(f"{path} is no file of this machine.")
    if known.content_digest is not None and known.content_bytes is not None:
        is_same = Reader(path).begins_with(known.content_bytes, known.content_digest)
    else:
        is_same = found == (known.bytes, known.mtime)
    if not is_same:
        raise InputError(
            f"{path} has changed since it was read: it held {known.bytes or 0:,} bytes then and has "
            f"{found[0]:,} now, and its lines may be others. Ingest it again."
        )


def _numbered(path: str, first: int) -> Iterator[tuple[int, str]]:
    """Lines with their numbers from a line on. Raises LimitError where that lies too far."""
    reader = Reader(path, is_hashed=False, is_lenient=True)
    chunks = text_chunks(path, Holes().filled(reader.chunks()))
    for data, begin, _ in lines.blocks(chunks):
        if reader.unpacked_bytes > limits.LOG_WINDOW_BYTES:
            most = limits.LOG_WINDOW_BYTES >> 30
            raise LimitError(f"the line lies beyond the first {most} GiB. Use `sed -n {first},+80p`.", path)
        if begin + lines.count(data) < first:
            continue
        rows = data.replace(HOLE, b" ").split(b"\n")
        for offset, row in enumerate(rows[:-1] if data.endswith(b"\n") else rows):
            if begin + offset >= first:
                yield begin + offset, _shown(row)


def _shown(row: bytes) -> str:
    """A line as text: without colours and control characters, credentials hidden, cut to a readable length."""
    text = row[: lines.MAX_LINE_CHARS].decode("utf-8-sig", "replace")
    return shorten(_CONTROL.sub("", text), _LINE_CHARS)
