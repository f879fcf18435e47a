"""The DuckDB file of a store without rows: 0.3 s of statements, so a process runs them once and copies the file."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import duckdb

from sweepscope.pipeline.store.publish import VIEW_FOLDER, load_views
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import TABLES
from sweepscope.schemas.tables.ledger import STORE_INFO


@cache
def empty_store() -> bytes:
    """A store file with every table, empty, and the real views over them."""
    tables = (*TABLES.values(), STORE_INFO)
    return store_file([*map(ddl.create_table, tables), *load_views(VIEW_FOLDER).values()])


def store_file(statements: Sequence[str]) -> bytes:
    """The DuckDB file that `statements` make."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "empty.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute("BEGIN")
            for statement in statements:
                connection.execute(statement)
            connection.execute("COMMIT")
        return path.read_bytes()
