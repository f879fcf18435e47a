"""Text columns from known spans of many texts.

A column holds Arrow's string views, 16 bytes per text: its length and, up to 12 bytes, the text itself; else its first
4 bytes and the offset of the whole. Why not `str.slice`: docs/performance.md, "Field extraction".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
import pyarrow as pa

from sweepscope.pipeline.text.arrow_buffers import column_of

PAD = 16
"""Bytes before and behind the texts, so that a view may be loaded from anywhere."""

MAX_BYTES = (1 << 31) - 1
"""A view holds its offset in 31 bits."""

_VIEW = np.dtype("V16")
_INLINE = 12
_WINDOW_LINES = 4_096
"""Lines per window, so that their bytes stay in the processor's cache."""


def cut(data: np.ndarray, starts: np.ndarray, spans: np.ndarray, kind_of: np.ndarray) -> Iterator[pl.Series]:
    """A text column per column of `spans`.

    Args:
        data: bytes of all lines, with PAD others before and behind; at most MAX_BYTES.
        starts: where in `data` each line begins.
        spans: (kinds, columns, 2), begin and end of the column's part in a line of that kind; -1 where it has none.
        kind_of: kind of each line.
    """
    begins, lengths = spans[:, :, 0], spans[:, :, 1] - spans[:, :, 0]
    views = _views(data, starts, begins, lengths, kind_of)
    is_there = begins >= 0
    for column, view in enumerate(views):
        valid = is_there[:, column]
        bitmap = None if valid.all() else pa.py_buffer(np.packbits(valid[kind_of], bitorder="little"))
        buffers = [bitmap, pa.py_buffer(view), pa.py_buffer(data)]
        text = pa.Array.from_buffers(pa.string_view(), len(starts), buffers)
        yield column_of(text)


def _views(
    data: np.ndarray, starts: np.ndarray, begins: np.ndarray, lengths: np.ndarray, kind_of: np.ndarray
) -> np.ndarray:
    """Views by column and line."""
    loadable = np.ndarray((len(data) - PAD + 1,), _VIEW, data, strides=(1,))
    kept = _KEPT[np.minimum(lengths, _INLINE + 1)]
    views = np.empty((begins.shape[1], len(starts)), _VIEW)
    for begin in range(0, len(starts), _WINDOW_LINES):
        kinds = kind_of[begin : begin + _WINDOW_LINES]
        first = starts[begin : begin + _WINDOW_LINES, None] + begins[kinds]
        length = lengths[kinds]
        # The four bytes before a part make room for its length.
        loaded = loadable[first - 4].view(np.uint64) & kept[kinds].view(np.uint64)
        words = loaded.view(np.int32).reshape(*first.shape, 4)
        words[..., 0] = length
        is_long = length > _INLINE
        words[is_long, 3] = first[is_long]
        views[:, begin : begin + _WINDOW_LINES] = words.reshape(len(kinds), -1).view(_VIEW).T
    return views


def _kept(length: int) -> bytes:
    """Mask of the bytes of a loaded view that are kept: the part itself, or the first four of a long one."""
    inline = length if length <= _INLINE else 4
    return bytes(4) + b"\xff" * inline + bytes(_INLINE - inline)


_KEPT = np.frombuffer(b"".join(map(_kept, range(_INLINE + 2))), dtype=_VIEW)
