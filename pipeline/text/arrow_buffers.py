"""Bytes and offsets as columns of polars, which share them: nothing is copied."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa


def column_of(raw: pa.Array) -> pl.Series:
    """The same column for polars, which would import all of pyarrow.compute for a lone array."""
    return pl.DataFrame(pa.record_batch([raw], names=["text"])).to_series()


def texts_of(data: bytes | np.ndarray, offsets: np.ndarray) -> pl.Series:
    """Texts that begin at each offset but the last and end at the next; whoever calls knows that they are UTF-8."""
    return _parts(pa.large_string(), data, offsets)


def binaries_of(data: bytes | np.ndarray, offsets: np.ndarray) -> pl.Series:
    """The same of bytes that need not be UTF-8."""
    return _parts(pa.large_binary(), data, offsets)


def buffers_of(text: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of texts (none NULL), put in a row, and their offsets: int64, one more than there are texts."""
    held = text.to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = held.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[held.offset : held.offset + len(held) + 1]
    return np.frombuffer(data, dtype=np.uint8), bounds


def _parts(kind: pa.DataType, data: bytes | np.ndarray, offsets: np.ndarray) -> pl.Series:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return column_of(pa.Array.from_buffers(kind, len(offsets) - 1, buffers))
