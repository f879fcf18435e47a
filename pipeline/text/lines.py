"""Lines of logs from their bytes, as columns over many files at a time.

Encoding, NUL bytes and lines of megabytes are dealt with here; launcher prefixes in `pipeline.logs.engine.cleaning`.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import polars as pl

from sweepscope.pipeline.text.arrow_buffers import binaries_of, texts_of
from sweepscope.pipeline.text.line_templates import template_hashes
from sweepscope.schemas.limits import BLOCK_LINES

MAX_LINE_CHARS = 16_384
"""A longer line is cut before any pattern sees it: the longest real metric lines are below 2,000 characters."""

MAX_LINE_BYTES = 16 << 20
"""Of a longer line only the beginning is held in memory, and the other bytes are counted."""

_WINDOW_BYTES = 256 << 10
_FEW_LINES = 256
_NOWHERE = np.empty(0, dtype=np.int64)


def split(source: int, data: bytes, first_line: int = 1) -> pl.DataFrame:
    """Lines of one block of one file; see `split_many`."""
    return split_many([(source, data, first_line)])


def split_many(parts: Iterable[tuple[int, bytes, int]]) -> pl.DataFrame:
    """Lines of blocks of many files; see `split_parts`."""
    return split_parts(parts)[0]


def split_parts(parts: Iterable[tuple[int, bytes, int]]) -> tuple[pl.DataFrame, np.ndarray]:
    """Lines of blocks of many files, split at line feeds, and the number of lines of each block.

    Args:
        parts: (id of the file within the batch, whole lines, line number of the first). A last line without its line
            feed is a line too.

    Returns:
        One row per line: `source`, `line_no`, `text` (undecodable bytes replaced; NULs and a byte order mark at the
        beginning of a file removed), `template` (the same hash for lines that differ in digits only, see
        `pipeline.text.line_templates`). Line ends are kept; `cleaning` removes them from the few lines that matter.
    """
    kept = [(source, _whole_lines(data, first_line), first_line) for source, data, first_line in parts]
    data = kept[0][1] if len(kept) == 1 else b"".join(part for _, part, _ in kept)
    ends = _line_ends(data)
    offsets = np.concatenate(([0], ends + 1)).astype(np.int64)
    text = _lines_of(data, offsets)
    stops = np.searchsorted(ends, np.cumsum([len(part) for _, part, _ in kept], dtype=np.int64))
    begin = np.concatenate(([0], stops[:-1]))
    counts = stops - begin
    first = np.array([first_line for _, _, first_line in kept], dtype=np.int64)
    rows = pl.DataFrame(
        {
            "source": np.repeat(np.array([source for source, _, _ in kept], dtype=np.int64), counts),
            "line_no": np.arange(len(text), dtype=np.int64) + np.repeat(first - begin, counts),
            "text": text,
            "template": template_hashes(np.frombuffer(data, dtype=np.uint8), offsets),
        }
    )
    return rows, counts


def count(data: bytes) -> int:
    """Number of lines that end in a block."""
    if len(data) < _WINDOW_BYTES:
        return data.count(b"\n")
    # polars releases the interpreter's lock and uses vector instructions.
    return int((pl.Series(np.frombuffer(data, dtype=np.uint8)) == ord("\n")).sum())


def _line_ends(data: bytes) -> np.ndarray:
    """Indices of the line feeds."""
    windows = enumerate(_line_end_masks(data))
    return np.concatenate([_NOWHERE, *(np.flatnonzero(found) + number * _WINDOW_BYTES for number, found in windows)])


def _line_end_masks(data: bytes) -> Iterator[np.ndarray]:
    """Masks of the bytes that are line feeds, in windows that stay in the processor's cache."""
    every = np.frombuffer(data, dtype=np.uint8)
    return (every[begin : begin + _WINDOW_BYTES] == ord("\n") for begin in range(0, len(data), _WINDOW_BYTES))


def _lines_of(data: bytes, offsets: np.ndarray) -> pl.Series:
    """One text per line, line feed included; bytes that are not UTF-8 are replaced."""
    if data.isascii():  # tenfold faster than checking UTF-8 line by line
        return texts_of(data, offsets)
    return _decoded(binaries_of(data, offsets))


def _decoded(raw: pl.Series) -> pl.Series:
    """Bytes as text; lines that are not UTF-8 are found by bisection, since few lines of a block are broken."""
    try:
        return raw.cast(pl.String)
    except pl.exceptions.ComputeError:
        if raw.len() <= _FEW_LINES:
            return pl.Series(raw.name, [line.decode("utf-8", errors="replace") for line in raw], pl.String)
        half = raw.len() // 2
        return pl.concat([_decoded(raw[:half]), _decoded(raw[half:])], rechunk=True)


def _whole_lines(data: bytes, first_line: int) -> bytes:
    if first_line == 1:
        data = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in data:
        data = data.replace(b"\0", b"")
    return data if not data or data.endswith(b"\n") else data + b"\n"


def blocks(
    chunks: Iterable[bytes], first_line: int = 1, *, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[bytes, int, int]]:
    """Cut a stream of byte chunks, which begins with line `first_line`, into blocks of whole lines.

    Yields:
        (data, first line number, bytes left out). A line longer than `max_line_bytes` is a separate block, of which
        only the beginning is kept: memory stays bounded whatever the input. Of BLOCK_LINES empty lines the last one
        is kept. No other block leaves anything out. An unfinished last line is a separate block, and the only one that
        does not end with a line feed.
    """
    open_line: list[bytes] = []  # pieces of the line that the last piece left unfinished
    kept, length, line = 0, 0, first_line  # bytes in `open_line`, bytes of that line so far, its number
    for piece in _pieces(chunks, max_line_bytes):
        end = piece.find(b"\n")
        if end < 0:
            length += len(piece)
            if kept < max(max_line_bytes, MAX_LINE_CHARS):
                open_line.append(piece)
                kept += len(piece)
            continue
        start = 0
        if length + end > max_line_bytes:
            yield _head([*open_line, piece[:end]], length + end, line)
            open_line, start, line = [], end + 1, line + 1
        cut = piece.rfind(b"\n") + 1
        if cut > start:
            # A piece of whole lines is passed on as it is: joining a single bytes object does not copy it.
            whole = piece if cut - start == len(piece) else memoryview(piece)[start:cut]
            data = b"".join([*open_line, whole])
            number = count(data)
            if number <= BLOCK_LINES:
                yield data, line, 0
            else:
                yield from _parts(data, line)
            line += number
            del data  # or both blocks would be in memory at once
        open_line = [piece[cut:]] if cut < len(piece) else []
        kept = length = len(piece) - cut
    if length > max_line_bytes:
        data, line, left_out = _head(open_line, length, line)
        yield data.removesuffix(b"\n"), line, left_out
    elif length:
        yield b"".join(open_line), line, 0


def _parts(data: bytes, line: int) -> Iterator[tuple[bytes, int, int]]:
    """Blocks of at most BLOCK_LINES lines; of blocks of empty lines, only the last line."""
    ends = _line_ends(data)
    begin = 0
    for first in range(0, len(ends), BLOCK_LINES):
        last = min(first + BLOCK_LINES, len(ends)) - 1
        end = int(ends[last]) + 1
        if end - begin > last - first + 1:
            yield data[begin:end], line + first, 0
        else:
            yield b"\n", line + last, 0
        begin = end


def _pieces(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Chunks cut to at most `size` bytes, so that only the first line of a piece can be longer than that."""
    for chunk in chunks:
        if len(chunk) <= size:
            yield chunk
        else:
            yield from (chunk[begin : begin + size] for begin in range(0, len(chunk), size))


def _head(open_line: Sequence[bytes], length: int, line: int) -> tuple[bytes, int, int]:
    """The block of an over-long line, cut to MAX_LINE_CHARS."""
    head = b"".join(open_line)[:MAX_LINE_CHARS]
    return head + b"\n", line, length - len(head)
