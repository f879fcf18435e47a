"""A Parquet file of COLL calls, written block by block while a log is read, so that any log fits into memory."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

import polars as pl
import pyarrow.parquet as pq

from sweepscope.pipeline.errors import InputError, UsageError
from sweepscope.pipeline.nccl.lines.raw_calls import CALLS


class CallsFile:
    """A context manager: the file exists once the `with` block has ended without an error, and not otherwise.

    Raises UsageError for a name that does not end in .parquet, InputError where it cannot be written.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        if self._path.suffix != ".parquet":
            raise UsageError(f"{path} does not end in .parquet, the one format in which calls are written.")
        self._unfinished = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        self._writer: pq.ParquetWriter | None = None
        self.rows = 0

    def __enter__(self) -> CallsFile:
        try:
            self._writer = pq.ParquetWriter(self._unfinished, CALLS.to_frame().to_arrow().schema, compression="zstd")
        except OSError as error:
            raise InputError(f"Cannot write {self._path}: {error.strerror or error}.") from error
        return self

    def write(self, calls: pl.DataFrame) -> None:
        """Add the calls of one block."""
        if self._writer is None:
            raise ValueError("the file is not open")
        try:
            if not calls.is_empty():
                self._writer.write_table(calls.to_arrow())
        except OSError as error:
            raise InputError(f"Cannot write {self._path}: {error.strerror or error}.") from error
        self.rows += calls.height

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is None:
            return
        try:
            self._writer.close()
            if error is None:
                self._unfinished.replace(self._path)
        except OSError as reason:
            raise InputError(f"Cannot write {self._path}: {reason.strerror or reason}.") from reason
        finally:
            self._unfinished.unlink(missing_ok=True)
