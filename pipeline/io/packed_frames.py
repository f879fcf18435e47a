"""Frames as compressed bytes, slice by slice, to travel between machines: neither end holds a large one twice."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO

import polars as pl

from sweepscope.pipeline.io.spill import SLICE_ROWS, gathered

PackedFrames = dict[str, tuple[bytes, ...]]
"""Frames by name, each as Arrow IPC files of so many rows."""


def packed(frames: Mapping[str, pl.DataFrame]) -> PackedFrames:
    """The frames as bytes. They travel between versions of polars as well."""
    return {name: tuple(map(_packed, _slices(frame))) for name, frame in frames.items()}


def unpacked(frames: PackedFrames) -> dict[str, pl.DataFrame]:
    """The frames that were packed; large ones on disk (`spill`)."""
    return {name: _unpacked(parts) for name, parts in frames.items()}


def _slices(frame: pl.DataFrame) -> list[pl.DataFrame]:
    return list(frame.iter_slices(SLICE_ROWS)) if frame.height else [frame]


def _packed(frame: pl.DataFrame) -> bytes:
    buffer = BytesIO()
    frame.write_ipc(buffer, compression="zstd")
    return buffer.getvalue()


def _unpacked(parts: tuple[bytes, ...]) -> pl.DataFrame:
    if len(parts) == 1:
        return pl.read_ipc(parts[0])
    first = pl.read_ipc(parts[0])
    return gathered(lambda: map(pl.read_ipc, parts), first.schema, len(parts) * SLICE_ROWS)
