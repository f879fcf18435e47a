"""verify finds what is wrong with a home; compact and tidy keep it small without changing a row."""

from __future__ import annotations

import duckdb
import pytest

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store import maintenance
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from sweepscope.schemas.registry import TABLES
from tests.pipeline.store.lake_rows import accelerators, together, unit


def alter(home: Home, statement: str) -> None:
    with duckdb.connect(str(home.link.resolve())) as connection:
        connection.execute(statement)


def test_a_sound_home_has_no_problems(published: Home) -> None:
    report = maintenance.verify(published)
    assert report.problems == ()
    assert [name for name, _, _ in report.tables] == list(TABLES)
    assert report.as_dict()["tables"][1] == {"table": "runs", "rows": 2, "digest": report.tables[1][2]}


def test_a_lost_row_is_found(published: Home) -> None:
    alter(published, "DELETE FROM steps WHERE step = 1")
    assert maintenance.verify(published).problems == ("steps: the store has 4 rows, the lake 6",)


def test_a_changed_value_is_found(published: Home) -> None:
    alter(published, "UPDATE runs SET mfu = 0.9 WHERE run_id = 'a'")
    assert maintenance.verify(published).problems == ("runs: the store's rows differ from the lake's",)


def test_a_store_that_is_behind_is_compared_with_its_own_release(published: Home) -> None:
    Lake(published).commit(unit("c"))
    report = maintenance.verify(published)
    assert (report.version, report.release, report.problems) == (1, 1, ())


def test_a_store_whose_release_is_gone_is_compared_with_the_newest(published: Home) -> None:
    for _ in range(4):
        Lake(published).commit(unit("a"))
    maintenance.compact(published)
    assert maintenance.verify(published).problems == ()
    Lake(published).commit(unit("c"))
    maintenance.compact(published)
    report = maintenance.verify(published)
    assert report.problems == ()
    assert "release 8 has other rows" in report.notes[0]


def test_a_lost_lake_file_is_found(published: Home) -> None:
    next(published.table("runs").glob("*.parquet")).unlink()
    with pytest.raises(StoreError, match=r"Cannot read .*\.parquet"):
        maintenance.verify(published)


def test_a_store_of_an_older_version_is_not_called_damaged(published: Home) -> None:
    with duckdb.connect(str(published.link.resolve())) as connection:
        views = connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        for (view,) in views:
            connection.execute(f'DROP VIEW IF EXISTS "{view}" CASCADE')
        connection.execute("ALTER TABLE nccl_files DROP COLUMN num_channels")
    with pytest.raises(StoreError, match=r"an older one published it\. Run `sweepscope ingest PATH` on any path"):
        maintenance.verify(published)


def test_of_a_damaged_lake_everything_goes(published: Home) -> None:
    """A table that is moved away alone leaves a release that names it, which nothing can read."""
    next((published.table("runs") / "_delta_log").glob("*.json")).write_text("{\n")
    with pytest.raises(StoreError) as raised:
        maintenance.verify(published)
    said = str(raised.value)
    assert said.endswith(f"Damaged? Put a copy back, or move all of {published.lake} away and ingest everything again.")
    assert "unknown" not in said
    published.lake.rename(published.path / "damaged")
    Lake(published).commit(together([unit("a"), accelerators("H100")]))
    publish(published)
    assert maintenance.verify(published).problems == ()


def test_a_home_without_a_store_cannot_be_verified(home: Home) -> None:
    with pytest.raises(StoreError, match="There is no store"):
        maintenance.verify(home)


def test_compact_says_what_it_did(published: Home) -> None:
    for _ in range(4):
        Lake(published).commit(unit("a"))
    done = maintenance.compact(published)
    assert (done.release, done.is_compacted, done.releases_removed) == (6, True, 3)
    assert done.files_removed > 0
    assert done.bytes_removed > 0


def test_there_is_nothing_to_compact_at_first(home: Home) -> None:
    with pytest.raises(StoreError, match="There is no lake"):
        maintenance.compact(home)
    assert maintenance.tidy(home) == maintenance.Tidied()


def test_tidy_waits_until_there_are_many_files(published: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(published)
    lake.commit(unit("c"))
    assert not maintenance.tidy(published).is_compacted
    monkeypatch.setattr(maintenance, "_MANY_FILES", 2)
    assert maintenance.tidy(published).is_compacted
    release = lake.release()
    assert release is not None
    assert len(lake.files("runs", release)) == 1
    assert not maintenance.tidy(published).is_compacted


def test_a_log_that_grows_for_ever_leaves_no_more_behind_than_a_few_releases(
    published: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit replaces a run's rows, so that no table ever has many files; those that are replaced add up."""
    sizes = []
    monkeypatch.setattr(maintenance, "_MANY_RELEASES", 4)
    for steps in range(16):
        Lake(published).commit(unit("a", steps=3, loss=2.0 + steps))
        maintenance.tidy(published)
        sizes.append(len(list(published.lake.glob("*/*.parquet"))))
    assert max(sizes[10:]) <= max(sizes[:10])
    assert len(list(published.releases.glob("*.json"))) <= 3 + 4
    assert maintenance.verify(published).problems == ()
