"""A store without rows from the cache is the one that is created, and a bad cache costs time only."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sweepscope.pipeline.store import empty_store
from sweepscope.pipeline.store.publish import VIEW_FOLDER, load_views
from sweepscope.schemas.registry import TABLES, VIEWS

VIEWS_OF_STORE = load_views(VIEW_FOLDER)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "sweepscope"


def catalog(path: Path) -> list[tuple[object, ...]]:
    """Every column of every table and view, with its type and comment."""
    query = "SELECT table_name, column_index, column_name, data_type, comment FROM duckdb_columns() ORDER BY ALL"
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(query).fetchall()


def test_a_copy_has_the_catalog_of_one_that_is_created(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty_store.write_empty_store(tmp_path / "created", VIEWS_OF_STORE)
    monkeypatch.delattr(empty_store, "attached")  # creating another one would fail
    empty_store.write_empty_store(tmp_path / "copied", VIEWS_OF_STORE)
    created = catalog(tmp_path / "created")
    assert catalog(tmp_path / "copied") == created
    assert {row[0] for row in created} >= {*TABLES, *VIEWS}
    assert all(comment for name, *_, comment in created if name in TABLES)


def test_a_damaged_copy_is_created_again(cache: Path, tmp_path: Path) -> None:
    empty_store.write_empty_store(tmp_path / "first", VIEWS_OF_STORE)
    (kept,) = cache.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    empty_store.write_empty_store(tmp_path / "second", VIEWS_OF_STORE)
    assert catalog(tmp_path / "second") == catalog(tmp_path / "first")
    assert len(kept.read_bytes()) == len(whole)


def test_a_wrong_view_is_an_error_and_not_kept(cache: Path, tmp_path: Path) -> None:
    name = list(VIEWS_OF_STORE)[-1]
    with pytest.raises(duckdb.Error):
        empty_store.write_empty_store(
            tmp_path / "store", VIEWS_OF_STORE | {name: f"CREATE VIEW {name} AS SELECT no_such_column FROM runs"}
        )
    assert not cache.exists()


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    empty_store.write_empty_store(tmp_path / "store", VIEWS_OF_STORE)
    assert catalog(tmp_path / "store")
