"""The DuckDB file of a store: built from a release of the lake, or renewed from the file of an earlier release.

Renewing copies that file and exchanges the rows of the lake's files that have come or gone since. It costs what is new,
where building costs what there is; a compaction of the lake, which replaces all files of a table, has its table filled
anew, in order.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.io.fault_points import reach
from sweepscope.pipeline.io.malloc import give_back
from sweepscope.pipeline.store import lake_sql, published_contents, renewed_views, stored_views
from sweepscope.pipeline.store.empty_store import write_empty_store
from sweepscope.pipeline.store.exchange import NOTHING, Exchange, changed_keys, exchanges, runs_of
from sweepscope.pipeline.store.key_ranges import KeyRange, key_ranges
from sweepscope.pipeline.store.lake import Lake, Release
from sweepscope.pipeline.store.published import StoreInfo
from sweepscope.pipeline.store.published_contents import DIFFERENT, Contents
from sweepscope.pipeline.store.store_connection import MEMORY_LIMIT, attached, transaction
from sweepscope.schemas.core import ddl
from sweepscope.schemas.core.table import Table
from sweepscope.schemas.registry import TABLES, VIEWS
from sweepscope.schemas.tables.ledger import RECONCILED_RUNS, STORE_INFO

_SORTING: tuple[tuple[str | None, int | None], ...] = (
    ("48MB", 1),
    ("64MB", 1),
    ("128MB", 1),
    (MEMORY_LIMIT, None),
    (None, None),
)
"""Limit and threads with which it sorts the rows of a table: the next ones where it cannot. Without a limit it takes
150 bytes per row at once. Each thread holds blocks of its own, so that two do not sort ten million narrow rows within
the second limit, in which one sorts fourteen million, and in the first one three; 100,000 wide ones do not fit in the
third one."""
_VALUES_AT_ONCE = 32_000_000
"""Of rows that are sorted at once: the more they are, the more memory sorting takes, although it uses the disk."""
_FEW_VALUES = 1_000_000
"""That are sorted within any limit, in a few MB: setting limits takes longer."""


class StaleFileError(StoreError):
    """A file does not hold what its release says, so that it cannot be renewed."""


def build(path: Path, lake: Lake, release: Release, views: Mapping[str, str], info: StoreInfo) -> dict[str, int]:
    """Number of rows by table of a whole store, which is written to `path`.

    Args:
        views: statements by view, after those of the macros.
        info: of the store, but for its rows.

    Raises:
        duckdb.Error: a view is wrong, or the disk is full.
        StoreError: the lake is damaged.
    """
    contents = published_contents.contents(lake, release)
    give_back()  # what reading has freed: DuckDB has an allocator of its own
    write_empty_store(path, views)
    with attached(path) as connection:
        for table in TABLES.values():
            _insert(connection, table, *contents.select(connection, table.name))
        reach("store.filled")
        with transaction(connection):
            for name, text in views.items():
                if name in VIEWS and VIEWS[name].is_stored:
                    connection.execute(stored_views.as_rows(name, text))
            rows = counts(connection)
            _describe(connection, contents, replace(info, row_count=sum(rows.values())))
    return rows


def renew(
    path: Path,
    base: Path,
    lake: Lake,
    releases: tuple[Release, Release],
    info: StoreInfo,
    *,
    views: Mapping[str, str],
) -> dict[str, int]:
    """Number of rows by table of a store that is written to `path` from that of an earlier release in `base`.

    Args:
        releases: of the base, and the one to show; both still kept by the lake.
        info: of the store, but for its rows.
        views: statements by view, of which the base has been built: they are those of the new store.

    Raises:
        StaleFileError: the base does not hold the rows of its release.
        duckdb.Error: the base is damaged, or the disk is full.
        StoreError: the lake is damaged.
    """
    before, release = releases
    shutil.copyfile(base, path)
    reach("store.copied")
    contents = published_contents.contents(lake, release)
    exchanged = exchanges(lake, before, release)
    with attached(path) as connection:
        renewed_views.remember_runs(connection)
        for name, exchange in exchanged.items():
            _exchange(connection, TABLES[name], exchange, contents)
        reconciled = _reconcile(connection, contents, exchanged)
        changed = {*exchanged, *(DIFFERENT if len(reconciled) else ())}
        keys = changed_keys(connection, exchanged, reconciled, of=renewed_views.tables_read(views))
        renewed_views.compute_again(connection, views, changed, keys)
        reach("store.filled")
        rows = counts(connection)
        _check(connection, contents, rows)
        with transaction(connection):
            connection.execute(f"DELETE FROM {STORE_INFO.name}; DELETE FROM {RECONCILED_RUNS.name}")
            _describe(connection, contents, replace(info, row_count=sum(rows.values())))
    return rows


def counts(connection: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """Rows by table."""
    each = (f"SELECT {ddl.literal(name)}, count(*) FROM {ddl.quote(name)}" for name in TABLES)
    return {name: int(rows) for name, rows in connection.execute(" UNION ALL ".join(each)).fetchall()}


def _insert(connection: duckdb.DuckDBPyConnection, table: Table, query: str, parameters: Mapping[str, object]) -> None:
    # In key order: equal content gives equal tables, and the rows of a run lie together, as queries want them.
    order = ", ".join(map(ddl.quote, table.primary_key))
    ((rows,),) = connection.execute(f"SELECT count(*) FROM ({query}) AS kept", parameters).fetchall()
    if not rows:
        return
    if rows * len(table.columns) <= _FEW_VALUES:
        connection.execute(f"INSERT INTO {ddl.quote(table.name)} FROM ({query}) AS kept ORDER BY {order}", parameters)
        return
    rows_at_most = _VALUES_AT_ONCE // len(table.columns)
    ranges = [KeyRange()]
    if rows > rows_at_most:
        ranges = key_ranges(connection, table, query, parameters, rows_at_most=rows_at_most)
    for part in ranges:
        chosen = f"SELECT * FROM ({query}) AS kept WHERE {part.condition} ORDER BY {order}"
        _insert_sorted(connection, f"INSERT INTO {ddl.quote(table.name)} {chosen}", {**parameters, **part.parameters})
    connection.execute("RESET threads")
    connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")


def _insert_sorted(connection: duckdb.DuckDBPyConnection, statement: str, parameters: Mapping[str, object]) -> None:
    for limit, threads in _SORTING:
        try:
            connection.execute(f"SET threads = {threads}" if threads else "RESET threads")
            connection.execute(f"SET memory_limit = '{limit}'" if limit else "RESET memory_limit")
            with transaction(connection):
                connection.execute(statement, parameters)
        except duckdb.OutOfMemoryException:  # not all of its work can go to the disk
            if limit is None:
                raise
        else:
            return


def _exchange(connection: duckdb.DuckDBPyConnection, table: Table, exchange: Exchange, contents: Contents) -> None:
    name = ddl.quote(table.name)
    if exchange.is_whole:
        connection.execute(f"DELETE FROM {name}")
        _insert(connection, table, *contents.select(connection, table.name))
        return
    if exchange.gone:
        query, parameters = lake_sql.select(connection, table, exchange.gone)
        same = " AND ".join(
            f"{name}.{key} IS NOT DISTINCT FROM gone.{key}" for key in map(ddl.quote, table.primary_key)
        )
        connection.execute(f"DELETE FROM {name} USING ({query}) AS gone WHERE {same}", parameters)
    if exchange.new:
        _insert(connection, table, *lake_sql.select(connection, table, exchange.new))


def _reconcile(
    connection: duckdb.DuckDBPyConnection, contents: Contents, exchanged: Mapping[str, Exchange]
) -> pl.Series:
    """Put the rows of runs that the store before showed otherwise than the lake, or this one does, in their place.

    Returns the ids of these runs; rows of the tables `DIFFERENT` are theirs.

    Runs whose rows differ as they did before are left alone, unless files with rows of theirs were exchanged.
    """
    now = contents.reconciled_runs
    before = connection.sql(f"SELECT run_id, content FROM {RECONCILED_RUNS.name}").pl()
    both = now.join(before, on="run_id", how="full", coalesce=True, suffix="_before")
    is_other = pl.col("content").ne_missing(pl.col("content_before"))
    moved = runs_of(connection, [path for name in DIFFERENT for path in exchanged.get(name, NOTHING).paths])
    runs = both.filter(is_other | pl.col("run_id").is_in(moved.implode())).select("run_id")
    if runs.is_empty():
        return runs["run_id"]
    connection.register("reconciled", runs.to_arrow())
    is_one = "WHERE run_id IN (SELECT run_id FROM reconciled)"
    for name in DIFFERENT:
        if not exchanged.get(name, NOTHING).is_whole:
            connection.execute(f"DELETE FROM {ddl.quote(name)} {is_one}")
            query, parameters = contents.select(connection, name)
            # Kept for a moment: planning and reading this twice, to count and to insert, takes longer.
            shown = f"CREATE OR REPLACE TEMP TABLE shown AS SELECT * FROM ({query}) AS shown {is_one}"
            connection.execute(shown, parameters)
            _insert(connection, TABLES[name], "FROM shown", {})
    return runs["run_id"]


def _check(connection: duckdb.DuckDBPyConnection, contents: Contents, rows: Mapping[str, int]) -> None:
    """Compare the number of rows of each table with that of the lake's files, which their footers state."""
    table_of = {
        str(path): name
        for name in rows.keys() - contents.different.keys()
        for path in contents.lake.files(name, contents.release)
    }
    wanted: Counter[str] = Counter()
    query = "SELECT file_name, num_rows::BIGINT FROM parquet_file_metadata($files)"
    for path, count_of_file in connection.execute(query, {"files": list(table_of)}).fetchall() if table_of else ():
        wanted[table_of[path]] += count_of_file
    for name, count_in_lake in wanted.items():
        if rows[name] != count_in_lake:
            raise StaleFileError(f"{name} has {rows[name]} rows where the lake has {count_in_lake}")


def _describe(connection: duckdb.DuckDBPyConnection, contents: Contents, info: StoreInfo) -> None:
    """Fill the tables that are the store's own."""
    columns = ", ".join(f"${name} AS {name}" for name in vars(info))
    connection.execute(f"INSERT INTO {STORE_INFO.name} BY NAME SELECT {columns}", vars(info))
    connection.register("reconciled_now", contents.reconciled_runs.to_arrow())
    connection.execute(f"INSERT INTO {RECONCILED_RUNS.name} BY NAME SELECT run_id, content FROM reconciled_now")
