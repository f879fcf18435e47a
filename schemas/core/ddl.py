"""DuckDB statements from table definitions: CREATE TABLE, COMMENT ON, CREATE MACRO. Pure text, no connection."""

from __future__ import annotations

import polars as pl

from sweepscope.schemas.core.column import Column
from sweepscope.schemas.core.table import Table

_TYPES: dict[pl.DataType, str] = {
    pl.String(): "VARCHAR",
    pl.Int64(): "BIGINT",
    pl.Float64(): "DOUBLE",
    pl.Boolean(): "BOOLEAN",
    pl.Datetime("us"): "TIMESTAMP",
}


def quote(identifier: str) -> str:
    """An SQL identifier in double quotes.

    >>> quote('table')
    '"table"'
    """
    return '"' + identifier.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL string literal.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def sql_type(column: Column) -> str:
    """DuckDB type of a column. Raises KeyError for a dtype that no table uses yet."""
    dtype = column.dtype if isinstance(column.dtype, pl.DataType) else column.dtype()
    return _TYPES[dtype]


def comment(column: Column) -> str:
    """Description, unit and vocabulary of a column in one line."""
    unit = f" [{column.unit}]" if column.unit else ""
    words = f" One of: {', '.join(column.words)}." if column.words else ""
    return f"{column.description}{unit}.{words}"


def create_table(table: Table) -> str:
    """CREATE TABLE with types, NOT NULL on the key's non-nullable columns left to validation."""
    body = ",\n".join(f"  {quote(column.name)} {sql_type(column)}" for column in table.columns)
    return f"CREATE TABLE {quote(table.name)} (\n{body}\n)"


def comments(table: Table) -> list[str]:
    """COMMENT ON statements for the table or view and each of its columns."""
    kind = "VIEW" if table.layer == "view" and not table.is_stored else "TABLE"
    head = f"COMMENT ON {kind} {quote(table.name)} IS {literal(f'{table.description} Grain: {table.grain}.')}"
    of_columns = (
        f"COMMENT ON COLUMN {quote(table.name)}.{quote(column.name)} IS {literal(comment(column))}"
        for column in table.columns
    )
    return [head, *of_columns]


def constant_macro(name: str, value: float, meaning: str) -> list[str]:
    """CREATE MACRO of a constant without arguments, and its meaning as a comment."""
    return [
        f"CREATE MACRO {quote(name)}() AS {value!r}::DOUBLE",
        f"COMMENT ON MACRO {quote(name)} IS {literal(meaning)}",
    ]
