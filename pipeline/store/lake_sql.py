"""SQL over the pinned Parquet files of a lake table, in the types and column order of the registry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from sweepscope.schemas.core.ddl import quote, sql_type
from sweepscope.schemas.core.table import Table


def select(
    connection: duckdb.DuckDBPyConnection, table: Table, files: Sequence[Path]
) -> tuple[str, dict[str, list[str]]]:
    """A SELECT of all rows in `files`, and its parameters.

    A column that no file has yet (they are older than it) is NULL; one that the registry has dropped is left out.
    `connection` must be allowed to read files. DuckDB's own Delta extension would have to be downloaded.
    """
    if not files:
        return f"SELECT {_columns(table, frozenset())} WHERE false", {}
    parameters: dict[str, Any] = {"files": [str(path) for path in files]}
    source = "read_parquet($files, union_by_name = true)"
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}", parameters).fetchall()
    return f"SELECT {_columns(table, frozenset(row[0] for row in described))} FROM {source}", parameters


def _columns(table: Table, present: frozenset[str]) -> str:
    return ", ".join(
        f"{quote(column.name) if column.name in present else 'NULL'}::{sql_type(column)} AS {quote(column.name)}"
        for column in table.columns
    )
