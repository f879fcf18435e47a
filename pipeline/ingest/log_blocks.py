"""The lines of a whole log, once more: for logs that no dialect knew when they were read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import polars as pl

from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.io.text_encoding import HOLE, Holes, text_chunks
from sweepscope.pipeline.logs.engine import cleaning
from sweepscope.pipeline.text import lines
from sweepscope.pipeline.text.timestamps import timestamp

WHOLE_BYTES = 4 << 20
"""A log of at most this size is held in memory."""
_GROUP_BYTES = 1 << 20
_HEAD_BYTES = 512 << 10
_PIECE_BYTES = 24 << 10
_TAIL_BYTES = 128 << 10
_MOST_PIECES = 48


def blocks(reader: Reader) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole lines and the number of the first; text around a hole in the file is left out."""
    holes = Holes()
    for data, first_line, _left_out in lines.blocks(text_chunks(reader.path, holes.filled(reader.chunks()))):
        yield _without_holes(data) if holes.found and HOLE in data else data, first_line


def _without_holes(data: bytes) -> bytes:
    """The lines, those with a hole empty: their numbers stay."""
    return b"\n".join(b"" if HOLE in row else row for row in data.split(b"\n"))


def sample(parts: Iterable[tuple[bytes, int]]) -> pl.DataFrame:
    """Cleaned lines from the begin, the end and everywhere between: `line_no`, `text`, `rank`, `prefix`, `ts`, `block`.

    Memory does not grow with the log, and how its bytes came in blocks does not matter.
    """
    whole: list[tuple[bytes, int]] = []
    kept: list[tuple[bytes, int]] = []
    tail: tuple[bytes, int] = (b"", 1)
    size, stride = 0, 1
    for number, (data, first_line) in enumerate(_regrouped(parts)):
        size += len(data)
        if size <= WHOLE_BYTES:
            whole.append((data, first_line))
        if number % stride == 0:
            kept.append((_whole(data[: _PIECE_BYTES if number else _HEAD_BYTES]), first_line))
        tail = _last(data, first_line)
        if len(kept) > _MOST_PIECES:
            kept, stride = [kept[0], *kept[2::2]], stride * 2
    if size <= WHOLE_BYTES:
        kept = [(b"".join(data for data, _ in whole), 1)] if _is_gapless(whole) else whole
    elif tail[1] >= kept[-1][1] + kept[-1][0].count(b"\n"):
        kept.append(tail)
    # Cleaned together, under their numbers as sources: a pass over few lines costs as much as one over many.
    rows = cleaning.clean(lines.split_many((block, data, first_line) for block, (data, first_line) in enumerate(kept)))
    stamp = timestamp(pl.concat_str("prefix", "text", ignore_nulls=True))
    return rows.select("line_no", "text", "rank", "prefix", ts=stamp, block="source")


def _regrouped(parts: Iterable[tuple[bytes, int]]) -> Iterator[tuple[bytes, int]]:
    """The same lines in blocks that only the bytes of the log decide: as many whole lines as _GROUP_BYTES hold."""
    held, line = b"", 1
    for data, first_line in parts:
        if first_line != line + held.count(b"\n"):
            yield held, line
            held = b""
        held, line, begin = held + data, line if held else first_line, 0
        while len(held) - begin > _GROUP_BYTES:
            end = held.rfind(b"\n", begin, begin + _GROUP_BYTES) + 1 or held.find(b"\n", begin) + 1 or len(held)
            yield held[begin:end], line
            begin, line = end, line + held.count(b"\n", begin, end)
        held = held[begin:]
    if held:
        yield held, line


def _is_gapless(groups: Sequence[tuple[bytes, int]]) -> bool:
    """Whether each group begins at the line behind the one before."""
    ends = [line + data.count(b"\n") for data, line in groups]
    return all(line == end for end, (_, line) in zip([1, *ends], groups, strict=False))


def _whole(data: bytes) -> bytes:
    """A piece up to the end of its last whole line."""
    return data[: data.rfind(b"\n") + 1] or data


def _last(data: bytes, first_line: int) -> tuple[bytes, int]:
    """The end of a block and the number of its first line."""
    begin = data.find(b"\n", max(len(data) - _TAIL_BYTES, 0)) + 1 if len(data) > _TAIL_BYTES else 0
    return data[begin:], first_line + data.count(b"\n", 0, begin)
