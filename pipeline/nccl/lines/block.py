"""Blocks of lines of one or many files as columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from sweepscope.pipeline.text.arrow_buffers import binaries_of

_NONE = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Part:
    """Lines of one file, numbered from `first_line` on or by `numbers`."""

    source: int
    data: bytes
    first_line: int
    numbers: np.ndarray | None = None


@dataclass(frozen=True)
class Block:
    """Lines of many parts, in order. `part` is the index of each line's part; `text` keeps its line feed.

    `has_escapes`: some contain escape sequences (colours).
    """

    text: pl.Series
    part: np.ndarray
    source: np.ndarray
    line_no: np.ndarray
    has_escapes: bool

    @property
    def text_bytes(self) -> int:
        """Size of all lines."""
        return int(self.text.str.len_bytes().sum())

    @classmethod
    def joined(cls, blocks: Sequence[Block]) -> Block:
        """One block of several, with their parts kept apart."""
        if len(blocks) == 1:
            return blocks[0]
        parts = np.cumsum([0, *(block.part.max(initial=-1) + 1 for block in blocks)])
        return cls(
            text=pl.concat([pl.Series("text", [], dtype=pl.String), *(block.text for block in blocks)]),
            part=np.concatenate([_NONE, *(block.part + before for block, before in zip(blocks, parts, strict=False))]),
            source=np.concatenate([_NONE, *(block.source for block in blocks)]),
            line_no=np.concatenate([_NONE, *(block.line_no for block in blocks)]),
            has_escapes=any(block.has_escapes for block in blocks),
        )

    def lines(self, chosen: np.ndarray) -> Iterable[tuple[int, int, str]]:
        """Source, number and text of the lines at the chosen indices."""
        return zip(
            self.source[chosen].tolist(), self.line_no[chosen].tolist(), self.text.gather(chosen).to_list(), strict=True
        )


def block_of(parts: Sequence[Part]) -> Block:
    """The lines of some parts. Bytes that are not UTF-8 are replaced. A last line needs no line feed."""
    if not parts:
        return Block.joined([])
    ended = [part.data if part.data.endswith(b"\n") or not part.data else part.data + b"\n" for part in parts]
    data = ended[0] if len(ended) == 1 else b"".join(ended)
    ends = _line_ends(data)
    stops = np.searchsorted(ends, np.cumsum([len(data) for data in ended], dtype=np.int64))
    begin = np.concatenate(([0], stops[:-1])).astype(np.int64)
    counts = stops - begin
    index = np.repeat(np.arange(len(parts)), counts)
    first = np.array([part.first_line for part in parts], dtype=np.int64)
    line_no = np.arange(len(ends), dtype=np.int64) + np.repeat(first - begin, counts)
    for number, part in enumerate(parts):
        if part.numbers is not None:
            line_no[begin[number] : stops[number]] = part.numbers
    source = np.array([part.source for part in parts], dtype=np.int64)[index]
    return Block(_text(data, ends), index, source, line_no, has_escapes=b"\x1b" in data)


def parts_as_texts(parts: Sequence[bytes]) -> pl.Series:
    """One text per part. Bytes that are not UTF-8 are replaced."""
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    try:
        return _views(data, np.cumsum([len(part) for part in parts], dtype=np.int64) - 1)
    except pl.exceptions.ComputeError:  # not UTF-8 somewhere
        return pl.Series([part.decode("utf-8", errors="replace") for part in parts], dtype=pl.String)


def _text(data: bytes, ends: np.ndarray) -> pl.Series:
    try:
        return _views(data, ends)
    except pl.exceptions.ComputeError:  # not UTF-8 somewhere
        data = data.decode("utf-8", errors="replace").encode("utf-8")
        return _views(data, _line_ends(data))


def _views(data: bytes, ends: np.ndarray) -> pl.Series:
    """Lines that share the bytes of `data`. Raises polars' ComputeError for bytes that are not UTF-8."""
    return binaries_of(data, np.concatenate(([0], ends + 1)).astype(np.int64)).cast(pl.String)


def _line_ends(data: bytes) -> np.ndarray:
    return np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
