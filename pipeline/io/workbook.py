"""Cells of an Excel workbook (`.xlsx`, ECMA-376: XML files in a ZIP archive)."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

import fastexcel
import polars as pl

from sweepscope.pipeline.errors import LimitError
from sweepscope.schemas import limits


def is_workbook(data: bytes) -> bool:
    """Whether bytes begin like a ZIP archive, as a workbook does."""
    return data.startswith(b"PK\x03\x04")


def sheets_of(data: bytes) -> Iterator[list[list[str]]]:
    """The rows of each sheet, from its first filled cell on; each cell as text, "" for an empty one.

    Raises LimitError for a workbook that unpacks to more than limits.WHOLE_BYTES, ValueError for one that is damaged.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except zipfile.BadZipFile as error:
        raise ValueError(f"it is no workbook: {error}") from error
    if size > limits.WHOLE_BYTES:
        raise LimitError(f"it unpacks to more than {limits.WHOLE_BYTES / limits.MIB:,.4g} MiB. Split it.")
    try:
        sheets = pl.read_excel(
            io.BytesIO(data),
            sheet_id=0,
            has_header=False,
            infer_schema_length=0,  # all cells as text
            drop_empty_rows=False,
            drop_empty_cols=False,
            raise_if_empty=False,
        )
    except fastexcel.FastExcelError as error:
        raise ValueError("it is no workbook: " + str(error).split("\n", 1)[0]) from error
    for sheet in sheets.values():
        yield [["" if cell is None else str(cell).strip() for cell in row] for row in sheet.iter_rows()]
