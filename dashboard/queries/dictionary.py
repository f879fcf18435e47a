"""The data dictionary of the store: names, types and comments of its tables and views."""

from __future__ import annotations

from sweepscope.dashboard.queries.query import Query


def relations() -> Query:
    """Tables and views with their comment (purpose and grain), tables first."""
    sql = """SELECT table_name, comment, false AS is_view
FROM duckdb_tables()
WHERE NOT internal
UNION ALL
SELECT view_name, comment, true
FROM duckdb_views()
WHERE NOT internal
ORDER BY is_view, table_name"""
    return Query(sql)


def columns() -> Query:
    """Columns with type and comment, in the order of each table."""
    sql = """SELECT table_name, column_name, lower(data_type) AS data_type, comment
FROM duckdb_columns()
WHERE NOT internal
ORDER BY table_name, column_index"""
    return Query(sql)
