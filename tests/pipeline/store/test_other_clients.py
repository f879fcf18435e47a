"""The store opened by DuckDB's own drivers, as Superset (DB-API), Metabase and Grafana (other drivers) open it: docs/sql.md."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import adbc_driver_duckdb  # type: ignore[import-untyped] # DuckDB ships it without types
import adbc_driver_manager.dbapi as adbc
import duckdb
import pytest

from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect, current
from tests.pipeline.store.lake_rows import unit

_RUNS = "SELECT run_id, model, mfu FROM runs ORDER BY run_id"


def by_dbapi(path: Path) -> Any:
    return duckdb.connect(str(path), read_only=True)


def by_adbc(path: Path) -> Any:
    about = {"path": str(path), "access_mode": "READ_ONLY"}
    return adbc.connect(adbc_driver_duckdb.driver_path(), entrypoint="duckdb_adbc_init", db_kwargs=about)


def rows_of(connection: Any, query: str) -> list[tuple[Any, ...]]:
    with closing(connection.cursor()) as cursor:
        cursor.execute(query)
        return [tuple(row) for row in cursor.fetchall()]


CLIENTS = pytest.mark.parametrize("client", [by_dbapi, by_adbc])


@CLIENTS
def test_the_link_opens_with_all_tables_and_views(shown: Home, client: Any) -> None:
    names = "SELECT table_name FROM information_schema.tables WHERE table_catalog <> 'temp' ORDER BY table_name"
    with connect(current(shown.path)) as own:
        wanted, runs = own.execute(names).fetchall(), own.execute(_RUNS).fetchall()
    with closing(client(shown.link)) as other:
        assert rows_of(other, names) == wanted
        assert rows_of(other, _RUNS) == runs
        for (name,) in wanted:
            rows_of(other, f'SELECT * FROM "{name}" LIMIT 1')


@CLIENTS
def test_columns_come_with_their_comments(shown: Home, client: Any) -> None:
    query = "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'runs' AND column_name = 'mfu'"
    with closing(client(shown.link)) as other:
        ((name, comment),) = rows_of(other, query)
    assert name == "mfu"
    assert comment


@CLIENTS
def test_nothing_is_written_through_it(shown: Home, client: Any) -> None:
    with closing(client(shown.link)) as other, pytest.raises(Exception, match=r"(?i)read-only"):
        rows_of(other, "DELETE FROM runs")


@CLIENTS
def test_publishing_goes_on_beside_an_open_client(published: Home, client: Any) -> None:
    """What is open keeps its version; what opens the link afterwards gets the new one."""
    with closing(client(published.link)) as other:
        before = rows_of(other, _RUNS)
        Lake(published).commit(unit("c"))
        publish(published)
        assert rows_of(other, _RUNS) == before
    with closing(client(published.link)) as later:
        assert len(rows_of(later, _RUNS)) > len(before)
