"""Bundled rows from the cache are those that computing gives, and a bad cache costs time only."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.ingest import prepared
from sweepscope.pipeline.ingest.batch import Tables
from sweepscope.pipeline.ingest.bundled import hardware_tables
from sweepscope.pipeline.io.user_cache import KEPT
from sweepscope.pipeline.reference.accelerators import load_published_bandwidths
from sweepscope.schemas.registry import TABLES


def few_tables() -> Tables:
    """Small bundled tables, which validate in a moment."""
    return {
        **hardware_tables(),
        "published_bandwidths": load_published_bandwidths(),
        "files": TABLES["files"].empty(),
    }


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(prepared, "bundled_tables", few_tables)
    return tmp_path / "sweepscope"


def equal(one: Tables, other: Tables) -> bool:
    return one.keys() == other.keys() and all(one[name].equals(other[name]) for name in one)


def test_rows_from_the_cache_are_those_that_were_computed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = prepared.prepared_tables()
    monkeypatch.delattr(prepared, "bundled_tables")  # computing again would fail
    kept = prepared.prepared_tables()
    assert computed["accelerators"].height > 10
    assert equal(kept, computed)
    assert {name: frame.schema for name, frame in kept.items()} == {
        name: frame.schema for name, frame in computed.items()
    }
    assert [path.name for path in cache.iterdir()] == [f"bundled-{prepared.digest()}"]


def test_a_damaged_cache_is_computed_again(cache: Path) -> None:
    computed = prepared.prepared_tables()
    (file,) = cache.glob("*/accelerators.arrow")
    file.write_bytes(b"half")
    assert equal(prepared.prepared_tables(), computed)
    assert pl.read_ipc(file).equals(computed["accelerators"])


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared, "bundled_tables", few_tables)
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert prepared.prepared_tables()["accelerators"].height > 10


def test_other_data_or_code_is_another_digest_and_old_ones_go(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    monkeypatch.setattr(prepared, "_SOURCES", (source,))
    seen = set()
    for content in ("one", "two", "three"):
        (source / "table.csv").write_text(content)
        seen.add(prepared.digest())
        prepared.prepared_tables()
    assert len(seen) == 3
    assert len(list(cache.iterdir())) == KEPT
    assert (cache / f"bundled-{prepared.digest()}").is_dir()
