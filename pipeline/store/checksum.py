"""A digest of a table's content that depends on neither row order nor how the rows are stored.

Two stores, or a store and the lake behind it, hold the same rows exactly when their digests agree. It is made of MD5,
not of DuckDB's own hash(), so that it stays the same from one DuckDB to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from sweepscope.schemas.core.ddl import quote
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.registry import TABLES


@dataclass(frozen=True)
class Digest:
    """Number of rows, and the sum of their hashes as 32 hexadecimal digits."""

    rows: int
    content: str


def digest(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    source: str | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Digest:
    """Digest of a table of the opened store, or of the rows of the query `source` with the same columns."""
    # Control characters keep NULL apart from "", and ("a", "bc") from ("ab", "c").
    texts = ", ".join(f"coalesce({quote(column.name)}::VARCHAR, chr(30))" for column in table.columns)
    # A sum, not an XOR, in which a row that occurs twice would cancel itself out.
    query = (
        f"SELECT count(*), coalesce(sum(md5_number_lower(concat_ws(chr(31), {texts}))), 0) "
        f"FROM ({source or f'FROM {quote(table.name)}'})"
    )
    ((rows, total),) = connection.execute(query, dict(parameters or {})).fetchall()
    return Digest(rows, f"{total:032x}")


def digests(connection: duckdb.DuckDBPyConnection) -> dict[str, Digest]:
    """Digest of every table of the opened store. `store_info` is no content."""
    return {name: digest(connection, table) for name, table in TABLES.items()}
