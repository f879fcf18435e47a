"""The rows of each table as a published store shows them: the lake's, reconciled with the schedulers' tables.

Publishing and verifying both take them from here, so that a store can be compared with the lake behind it.
"""

from __future__ import annotations

from typing import Any

import duckdb
import polars as pl

from sweepscope.pipeline.scheduler.reconcile import changes, reconcile
from sweepscope.pipeline.store import lake_sql
from sweepscope.pipeline.store.lake import Lake, Release
from sweepscope.schemas.core.ddl import quote
from sweepscope.schemas.registry import TABLES

Changes = dict[str, tuple[pl.DataFrame, pl.DataFrame]]


def changed(lake: Lake, release: Release) -> Changes:
    """By table: keys of rows of the lake that are left out, and rows that replace or join them."""
    jobs = lake.read("scheduler_jobs", release=release)
    if jobs.is_empty():
        return {}
    runs = lake.read("runs", predicate=pl.col("origin") != "published", release=release)
    assumed = lake.read("settings", predicate=pl.col("setting_source") == "assumed", release=release)
    return {name: parts for name, parts in changes(reconcile(runs, jobs, assumed)).items() if parts[0].height}


def select(
    connection: duckdb.DuckDBPyConnection, name: str, lake: Lake, release: Release, different: Changes
) -> tuple[str, dict[str, Any]]:
    """A SELECT of a table's rows, and its parameters. `connection` must be allowed to read files."""
    table = TABLES[name]
    query, parameters = lake_sql.select(connection, table, lake.files(name, release))
    if name not in different:
        return query, parameters
    gone, new = different[name]
    connection.register(f"gone_{name}", gone.to_arrow())
    connection.register(f"new_{name}", new.to_arrow())
    same = " AND ".join(f"kept.{quote(key)} IS NOT DISTINCT FROM gone.{quote(key)}" for key in table.primary_key)
    stay = f"SELECT * FROM ({query}) AS kept WHERE NOT EXISTS (FROM {quote(f'gone_{name}')} AS gone WHERE {same})"
    columns = ", ".join(map(quote, table.column_names))
    return f"{stay} UNION ALL SELECT {columns} FROM {quote(f'new_{name}')}", parameters
