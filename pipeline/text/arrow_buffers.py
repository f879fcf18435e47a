"""Bytes and offsets as columns of polars, without a copy."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa


def column_of(raw: pa.Array) -> pl.Series:
    """`raw` as a column of polars, by way of a batch: for a lone array polars imports all of pyarrow.compute."""
    return pl.DataFrame(pa.record_batch([raw], names=["text"])).to_series()


def texts_of(data: bytes | np.ndarray, offsets: np.ndarray) -> pl.Series:
    """Texts that begin at each offset but the last and end at the next. The bytes must be UTF-8."""
    return _parts(pa.large_string(), data, offsets)


def binaries_of(data: bytes | np.ndarray, offsets: np.ndarray) -> pl.Series:
    """Like `texts_of`, for bytes that need not be UTF-8."""
    return _parts(pa.large_binary(), data, offsets)


def buffers_of(text: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """The concatenated bytes of texts (none NULL), and their int64 offsets, one more than there are texts."""
    array = text.to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
    return np.frombuffer(data, dtype=np.uint8), bounds


def _parts(kind: pa.DataType, data: bytes | np.ndarray, offsets: np.ndarray) -> pl.Series:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return column_of(pa.Array.from_buffers(kind, len(offsets) - 1, buffers))


def owned(frame: pl.DataFrame) -> pl.DataFrame:
    """A copy of the rows: a few that a filter has cut out of a block may be a slice of it, and keep all of it alive."""
    rows = frame[np.arange(frame.height)]
    texts = rows.select(pl.col(pl.String)).to_arrow(compat_level=pl.CompatLevel.oldest())
    return rows.with_columns(pl.DataFrame(texts))
