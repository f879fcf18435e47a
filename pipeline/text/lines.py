"""Bytes in, lines out: where every log is cut. `pipeline.logs.engine.cleaning` takes off what was put around them.

Encoding, NUL bytes and lines of megabytes are dealt with here, once. Everything is a whole-column operation over the
lines of many files at a time: a sweep is thousands of small logs, and a call per file costs more than the file.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import polars as pl

from sweepscope.pipeline.text.arrow_buffers import binaries_of, texts_of
from sweepscope.pipeline.text.line_templates import shapes_of

MAX_LINE_CHARS = 16_384
"""A longer line is cut before any pattern sees it: the longest real metric lines are below 2,000 characters."""

MAX_LINE_BYTES = 16 << 20
"""A longer line is not even held: its head is kept and the rest is counted."""

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
    """Lines of blocks of many files, split at line feeds, and how many each block has.

    Args:
        parts: (id of the file within the batch, whole lines, line number of the first). A last line without its line
            feed is a line too.

    Returns:
        One row per line: `source`, `line_no`, `text` (undecodable bytes replaced; NULs and a byte order mark at the
        beginning of a file removed), `shape` (a hash that lines have in common which differ in digits only, see
        `pipeline.text.line_templates`). Line ends stay; `cleaning` takes them off the few lines that matter.
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
            "shape": shapes_of(np.frombuffer(data, dtype=np.uint8), offsets),
        }
    )
    return rows, counts


def count(data: bytes) -> int:
    """How many lines end in a block."""
    if len(data) < _WINDOW_BYTES:
        return data.count(b"\n")
    # In one go, beside other threads.
    return int((pl.Series(np.frombuffer(data, dtype=np.uint8)) == ord("\n")).sum())


def _line_ends(data: bytes) -> np.ndarray:
    """Places of the line feeds."""
    windows = enumerate(_line_end_masks(data))
    return np.concatenate([_NOWHERE, *(np.flatnonzero(found) + number * _WINDOW_BYTES for number, found in windows)])


def _line_end_masks(data: bytes) -> Iterator[np.ndarray]:
    """Which bytes are line feeds, of so many at a time that the answer stays in the processor's cache."""
    every = np.frombuffer(data, dtype=np.uint8)
    return (every[at : at + _WINDOW_BYTES] == ord("\n") for at in range(0, len(data), _WINDOW_BYTES))


def _lines_of(data: bytes, offsets: np.ndarray) -> pl.Series:
    """One text per line, line feed included; bytes that are not UTF-8 are replaced."""
    if data.isascii():  # tenfold faster than to judge line by line whether the bytes are UTF-8
        return texts_of(data, offsets)
    return _decoded(binaries_of(data, offsets))


def _decoded(raw: pl.Series) -> pl.Series:
    """Bytes as text; what is not UTF-8 is sought by halves, for few lines of a block are broken."""
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
        (data, first line number, bytes left out). A line longer than `max_line_bytes` is a block of its own, of which
        only the head is kept: memory stays bounded whatever the input. All other blocks leave nothing out. An
        unfinished last line is a block of its own, and the only one that does not end with a line feed.
    """
    open_line: list[bytes] = []  # pieces of the line that the last piece left unfinished
    held, length, line = 0, 0, first_line  # bytes in `open_line`, bytes of that line so far, its number
    for piece in _pieces(chunks, max_line_bytes):
        end = piece.find(b"\n")
        if end < 0:
            length += len(piece)
            if held < max(max_line_bytes, MAX_LINE_CHARS):
                open_line.append(piece)
                held += len(piece)
            continue
        start = 0
        if length + end > max_line_bytes:
            yield _head([*open_line, piece[:end]], length + end, line)
            open_line, start, line = [], end + 1, line + 1
        cut = piece.rfind(b"\n") + 1
        if cut > start:
            # A piece of whole lines is handed on as it is: bytes joined with nothing else are not copied.
            whole = piece if cut - start == len(piece) else memoryview(piece)[start:cut]
            data = b"".join([*open_line, whole])
            yield data, line, 0
            line += count(data)
            del data  # or it would be held beside the next
        open_line = [piece[cut:]] if cut < len(piece) else []
        held = length = len(piece) - cut
    if length > max_line_bytes:
        data, line, left_out = _head(open_line, length, line)
        yield data.removesuffix(b"\n"), line, left_out
    elif length:
        yield b"".join(open_line), line, 0


def _pieces(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Chunks cut to at most `size` bytes, so that only the first line of a piece can be longer than that."""
    for chunk in chunks:
        if len(chunk) <= size:
            yield chunk
        else:
            yield from (chunk[at : at + size] for at in range(0, len(chunk), size))


def _head(open_line: Sequence[bytes], length: int, line: int) -> tuple[bytes, int, int]:
    """The block of an over-long line: as much of it as any pattern would see."""
    head = b"".join(open_line)[:MAX_LINE_CHARS]
    return head + b"\n", line, length - len(head)
