"""What was read of a table of runs, and several of them as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

REJECTS = pl.Schema({"line_no": pl.Int64, "reason": pl.String, "raw": pl.String})
CELLS = pl.Schema({"line_no": pl.Int64, "name": pl.String, "value": pl.String})
"""A row per run and cell that names or configures it, as it is printed."""


@dataclass(frozen=True)
class RunTable:
    """A table's contents.

    Attributes:
        runs: rows named as columns of `runs`, with `line_no`.
        rejects: REJECTS rows that could not be read.
        columns: INFERRED_COLUMNS rows without `source_path`: what each column was taken for.
        cells: CELLS rows of what configures each run.
    """

    runs: pl.DataFrame
    rejects: pl.DataFrame
    columns: pl.DataFrame
    cells: pl.DataFrame


def together(tables: Iterable[RunTable | None]) -> RunTable | None:
    """Several tables of one file as one; None where there is none."""
    found = [table for table in tables if table]
    if not found:
        return None
    columns = pl.concat(table.columns for table in found)
    return RunTable(
        pl.concat([table.runs for table in found], how="diagonal"),
        pl.concat(table.rejects for table in found),
        columns.unique(["column_name", "field"], keep="first", maintain_order=True),
        pl.concat(table.cells for table in found),
    )
