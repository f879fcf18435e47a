"""Large frames on disk: columns that are mapped from a file without a name, so that memory holds only what is in use.

A frame stays the same for those who use it. Its pages come from the disk when they are read, and `release` gives them
back. The file is never seen in a folder and goes with the frame, or with the process, however that ends.
"""

from __future__ import annotations

import logging
import mmap
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from weakref import WeakSet

import numpy as np
import polars as pl
import pyarrow as pa

from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.malloc import give_back
from sweepscope.schemas.limits import SPILL_BYTES

_LOG = logging.getLogger(__name__)

SLICE_ROWS = 1 << 17
"""Rows of a large frame that are worked on at once."""

_ALIGNED = 64
"""Where a column may begin in the file: Arrow wants its buffers so."""

_VIEW_BYTES = 16
_INLINE_BYTES = 12
"""Of a text, Arrow's view holds its length and so many bytes. A longer one lies in a buffer, whose number it holds."""

_TYPES: dict[pl.DataType, pa.DataType] = {
    pl.Int64(): pa.int64(),
    pl.UInt8(): pa.uint8(),
    pl.UInt16(): pa.uint16(),
    pl.UInt32(): pa.uint32(),
    pl.Float64(): pa.float64(),
    pl.Datetime("us"): pa.timestamp("us"),
    pl.String(): pa.string_view(),
}
"""Columns of other types stay in memory. Of an Enum, the numbers of its words are written."""

_folder: ContextVar[Path | None] = ContextVar("spill_folder", default=None)
_maps: WeakSet[mmap.mmap] = WeakSet()
_keepers: list[Thread] = []

_EVERY_S = 0.02
"""Between two times at which pages are given back: some 50 MB are read meanwhile."""


@contextmanager
def spilling_to(folder: Path) -> Iterator[None]:
    """Keep large frames on the disk of `folder`; else they are where temporary files are."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def release() -> None:
    """Give back what stages with large frames have freed."""
    if _maps:
        _give_pages_back()
        give_back()


def _give_pages_back() -> bool:
    """Whether there were any: pages that are used again come from the disk, or its cache in the system's memory."""
    maps = list(_maps)
    for mapped in maps:
        mapped.madvise(mmap.MADV_DONTNEED)
    return bool(maps)


def _keep_small() -> None:
    """Give pages back time and again, as long as there is a large frame: a query reads whole columns in one go."""
    while _give_pages_back():
        time.sleep(_EVERY_S)


def _start_keeper() -> None:
    if not any(keeper.is_alive() for keeper in _keepers):
        _keepers[:] = [Thread(target=_keep_small, name="spill", daemon=True)]
        _keepers[0].start()


def is_large(frame: pl.DataFrame) -> bool:
    """Whether it pays to spill a frame, judged by its first slice: the size of all texts takes reading them."""
    some = frame.height > SLICE_ROWS and frame[:SLICE_ROWS].estimated_size()
    return some * frame.height > SPILL_BYTES * SLICE_ROWS


def spilled(frame: pl.DataFrame) -> pl.DataFrame:
    """The same rows, on disk if they are many, and then each column in one piece."""
    return on_disk(frame) if is_large(frame) else frame


def on_disk(frame: pl.DataFrame) -> pl.DataFrame:
    """The same rows on disk, each column in one piece."""
    if frame.is_empty():
        return frame
    return gathered(lambda: frame.iter_slices(SLICE_ROWS), frame.schema, frame.height)


def in_slices(frame: pl.DataFrame, change: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """`change(frame)`, for a change that treats every row alone and adds none; it may leave some out.

    A large frame is changed slice by slice and the result spilled. Where the disk does not take it, memory has to.

    Args:
        frame: any rows.
        change: gives the same columns whatever the rows, even none.
    """
    if not is_large(frame):
        return change(frame)
    schema = change(frame.clear()).schema
    return gathered(lambda: map(change, frame.iter_slices(SLICE_ROWS)), schema, frame.height)


def gathered(parts: Callable[[], Iterable[pl.DataFrame]], schema: pl.Schema, capacity: int) -> pl.DataFrame:
    """Parts of a large frame as one, on disk. Where that does not take it, memory has to.

    Args:
        parts: makes the parts, one at a time.
        schema: of each.
        capacity: the number of their rows at most.
    """
    try:
        with _SpillWriter(schema, capacity) as writer:
            for part in parts():
                writer.append(part)
                release()
            return writer.finish()
    except OSError as error:
        event(_LOG, logging.WARNING, "not_spilled", rows=capacity, reason=error)
        return pl.concat([pl.DataFrame(schema=schema), *parts()])


def few_of(frame: pl.DataFrame, is_wanted: pl.Expr) -> pl.DataFrame:
    """The rows for which an expression over each row alone holds: few, so that they are in memory.

    A frame in many pieces is searched slice by slice: a query over all of it would copy each column into one piece.
    """
    if not is_large(frame):
        return frame.filter(is_wanted)
    return pl.concat([frame.clear(), *(part.filter(is_wanted) for part in frame.iter_slices(SLICE_ROWS))])


def stretches(column: pl.Series) -> pl.DataFrame:
    """`len` and `value` of neighbours that are equal, as `rle` gives them; a long column is read slice by slice.

    >>> stretches(pl.Series([7, 7, 8])).rows()
    [(2, 7), (1, 8)]
    """
    parts = []
    for begin in range(0, max(column.len(), 1), SLICE_ROWS):
        parts.append(column[begin : begin + SLICE_ROWS].rle().struct.unnest())
        if column.len() > SLICE_ROWS:
            release()
    over_slices = pl.concat(parts).group_by(pl.col("value").rle_id().alias("stretch"), maintain_order=True)
    return over_slices.agg(pl.col("len").sum(), pl.col("value").first()).drop("stretch")


@dataclass(frozen=True)
class _Validity:
    """Which values of a part of a column are known. Mostly all are, or none: that takes no memory.

    Attributes:
        rows, nulls: of the part.
        mixed: whether each is known, where some are.
    """

    rows: int
    nulls: int
    mixed: pl.Series | None

    @classmethod
    def of(cls, column: pl.Series) -> _Validity:
        nulls = column.null_count()
        return cls(column.len(), nulls, column.is_not_null() if 0 < nulls < column.len() else None)

    def is_known(self) -> pl.Series:
        if self.mixed is not None:
            return self.mixed.rename("")
        return pl.Series([not self.nulls]).new_from_index(0, self.rows)


class _SpillWriter:
    """Writes a frame to a file without a name, column by column.

    Args:
        schema: of the frame.
        capacity: rows at most. A column has room for them in the file, where what is not written takes no space.
    """

    def __init__(self, schema: pl.Schema, capacity: int) -> None:
        self._schema = schema
        self._height = 0
        self._size = 0
        self._file = tempfile.TemporaryFile(dir=_folder.get())  # noqa: SIM115 - closed by __exit__
        written = {name: _written(dtype) for name, dtype in schema.items()}
        self._on_disk = {name: _TYPES[dtype] for name, dtype in written.items() if dtype in _TYPES}
        self._values = {name: self._room(capacity * _width(dtype)) for name, dtype in self._on_disk.items()}
        self._validity = {name: self._room(capacity // 8 + 1) for name in self._on_disk}
        self._is_known: dict[str, list[_Validity]] = {name: [] for name in self._on_disk}
        self._texts: dict[str, list[tuple[int, int]]] = {name: [] for name in self._on_disk}
        self._latest: dict[str, dict[tuple[int, int], tuple[pa.Buffer, int]]] = {name: {} for name in self._on_disk}
        self._in_memory: dict[str, list[pl.Series]] = {name: [] for name in schema if name not in self._on_disk}

    def _room(self, size: int) -> int:
        begin = self._size
        self._size += -(-size // _ALIGNED) * _ALIGNED
        return begin

    def __enter__(self) -> _SpillWriter:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()  # its map holds it open

    def append(self, part: pl.DataFrame) -> None:
        """Add rows. Raises OSError where the disk does not take them."""
        for column in part.select(self._schema.names()).iter_columns():
            if column.name in self._in_memory:
                self._in_memory[column.name].append(column)
                continue
            row = self._height
            for piece in column.get_chunks():
                if piece.null_count() < piece.len():
                    self._write(piece, row)
                row += piece.len()
            self._is_known[column.name].append(_Validity.of(column))
        self._height += part.height

    def _write(self, column: pl.Series, row: int) -> None:
        array = column.to_physical().to_arrow(compat_level=pl.CompatLevel.newest())
        width = _width(self._on_disk[column.name])
        values = array.buffers()[1].slice(array.offset * width, len(array) * width)
        if column.dtype == pl.String:
            values = self._renumbered(column.name, array, values)
        self._put(values, self._values[column.name] + row * width)

    def _renumbered(self, name: str, array: pa.Array, views: pa.Buffer) -> bytes:
        """Views with the numbers that their buffers have among all of the column; the buffers are written, too."""
        fields = np.frombuffer(views, dtype=np.int32).reshape(-1, _VIEW_BYTES // 4).copy()
        is_long = fields[:, 0] > _INLINE_BYTES
        if is_long.any():
            numbers = np.array(self._numbers(name, array.buffers()[2:]), dtype=np.int32)
            fields[is_long, 2] = numbers[fields[is_long, 2]]
        return fields.tobytes()

    def _numbers(self, name: str, buffers: Sequence[pa.Buffer]) -> list[int]:
        """Numbers of text buffers; slices of one frame share them. Held meanwhile, so that no other has its address."""
        before, written, numbers = self._latest[name], self._texts[name], []
        self._latest[name] = {}
        for buffer in buffers:
            key = buffer.address, buffer.size
            if key not in before:
                written.append((self._room(buffer.size), buffer.size))
                self._put(buffer, written[-1][0])
            number = before[key][1] if key in before else len(written) - 1
            self._latest[name][key] = buffer, number
            numbers.append(number)
        return numbers

    def _put(self, data: pa.Buffer | bytes, offset: int) -> None:
        rest = memoryview(data)
        while rest:
            written = os.pwrite(self._file.fileno(), rest, offset)
            rest, offset = rest[written:], offset + written

    def finish(self) -> pl.DataFrame:
        """All rows. Raises OSError where the disk does not take them."""
        has_null = {}
        for name, parts in self._is_known.items():
            has_null[name] = any(part.nulls for part in parts)
            if has_null[name] and any(part.nulls < part.rows for part in parts):
                is_known = pl.concat(part.is_known() for part in parts).rechunk()
                self._put(is_known.to_arrow().buffers()[1], self._validity[name])
        os.ftruncate(self._file.fileno(), self._size)
        mapped = mmap.mmap(self._file.fileno(), self._size, prot=mmap.PROT_READ)
        self._file.close()  # a network file system reports here what it could not write
        _maps.add(mapped)
        _start_keeper()
        whole = pa.py_buffer(mapped)
        arrays = {}
        for name, dtype in self._on_disk.items():
            validity = whole.slice(self._validity[name], self._height // 8 + 1) if has_null[name] else None
            values = whole.slice(self._values[name], self._height * _width(dtype))
            texts = [whole.slice(begin, size) for begin, size in self._texts[name]]
            arrays[name] = pa.Array.from_buffers(dtype, self._height, [validity, values, *texts])
        frame = pl.DataFrame(pa.record_batch(list(arrays.values()), names=list(arrays)))
        words = [frame[name].cat.to(dtype) for name, dtype in self._schema.items() if isinstance(dtype, pl.Enum)]
        held = [pl.concat(parts).rechunk() for parts in self._in_memory.values()]
        return frame.with_columns(*words, *held).select(self._schema.names())


def _written(dtype: pl.DataType) -> pl.DataType:
    """The type of what is written of a column."""
    return pl.Series(dtype=dtype).to_physical().dtype if isinstance(dtype, pl.Enum) else dtype


def _width(dtype: pa.DataType) -> int:
    """Bytes that each row takes."""
    return _VIEW_BYTES if dtype == pa.string_view() else dtype.bit_width // 8
