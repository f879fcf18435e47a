"""Reading the store: found by its link, opened read-only, unable to reach anything else."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import connect, current, store_info, version_of, versions


@pytest.fixture(scope="module")
def store(shown: Home) -> Path:
    """For tests that only read it."""
    return current(shown.path)


def test_says_what_to_run_when_there_is_no_store(home: Home, tmp_path: Path) -> None:
    for place in (home.path, tmp_path / "nowhere"):
        with pytest.raises(StoreError, match=f"no store in {place} yet. Run `sweepscope ingest PATH --home {place}`"):
            current(place)
        assert versions(place) == []


def test_says_when_the_file_behind_the_link_is_gone(published: Home) -> None:
    current(published.path).unlink()
    with pytest.raises(StoreError, match=r"results-1\.duckdb is gone\. Run `sweepscope ingest` again"):
        current(published.path)


def test_finds_the_version_behind_the_link(shown: Home) -> None:
    store = shown.store / "results-1.duckdb"
    assert current(shown.path) == current(str(shown.path)) == store
    assert version_of(store) == 1
    (only,) = versions(shown.path)
    assert (only.version, only.path, only.bytes, only.is_current) == (1, store, store.stat().st_size, True)


@pytest.mark.parametrize("name", ["results.duckdb", "results-x.duckdb", ".results-1.duckdb", "other.db"])
def test_a_file_of_another_name_has_no_version(name: str) -> None:
    with pytest.raises(StoreError, match="is not a published store"):
        version_of(Path(name))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_csv('/etc/passwd')",
        "COPY runs TO '/tmp/runs.csv'",
        "ATTACH '/tmp/other.duckdb'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET threads = 1",
        "DELETE FROM runs",
        "CREATE TABLE more (n INT)",
    ],
)
def test_a_connection_can_only_read_the_store(store: Path, statement: str) -> None:
    with connect(store) as connection, pytest.raises(duckdb.Error):
        connection.execute(statement)


def test_several_connections_share_a_file(store: Path) -> None:
    with connect(store) as one, connect(str(store)) as other:
        assert (
            one.execute("SELECT count(*) FROM runs").fetchone() == other.execute("SELECT count(*) FROM runs").fetchone()
        )


@pytest.mark.parametrize("text", ["", "not a database at all"])
def test_says_when_it_is_no_database(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results-1.duckdb"
    path.write_text(text)
    with (
        pytest.raises(StoreError),
        connect(path) as connection,
    ):  # an empty file opens, and is then found to be no store
        store_info(connection)


def test_says_when_it_is_missing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"Cannot open the store .*results-9\.duckdb"):
        connect(tmp_path / "results-9.duckdb")


def test_another_database_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "mine.duckdb"
    duckdb.connect(str(path)).close()
    with connect(path) as connection, pytest.raises(StoreError, match="Not a published store"):
        store_info(connection)
