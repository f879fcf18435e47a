"""Looking after a home: does the store show what the lake holds, and is the lake in good shape?"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store import published_contents
from sweepscope.pipeline.store import release as releases
from sweepscope.pipeline.store.checkpoints import REST_AFTER, Records
from sweepscope.pipeline.store.checksum import Digest, digest, digests
from sweepscope.pipeline.store.durable_files import reading
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake, Release, remedy
from sweepscope.pipeline.store.published import connect, current, store_info
from sweepscope.schemas.registry import TABLES

_MANY_FILES = 50


@dataclass(frozen=True)
class Report:
    """Outcome of a verification: (name, rows, content digest) per table, and in words what is wrong or to be known."""

    version: int
    release: int
    tables: tuple[tuple[str, int, str], ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON output."""
        return {
            "version": self.version,
            "release": self.release,
            "tables": [{"table": name, "rows": rows, "digest": content} for name, rows, content in self.tables],
            "problems": list(self.problems),
            "notes": list(self.notes),
        }


def verify(home: Home) -> Report:
    """Read every row of the published store and of the release behind it, and compare.

    Raises:
        StoreError: there is no store, or it cannot be opened.
    """
    path = current(home.path)
    connection = connect(path)
    try:
        info = store_info(connection)
        with reading(path, duckdb.Error):
            published = digests(connection)
    except StoreError as error:
        if isinstance(error.__cause__, (duckdb.BinderException, duckdb.CatalogException)):
            raise StoreError(
                f"The store {path} lacks columns of this version of sweepscope: an older one published it. "
                "Run `sweepscope ingest PATH` on any path: it publishes anew."
            ) from error
        raise
    finally:
        connection.close()
    pinned = _kept_release(home, info.release)
    behind = _lake_digests(home, pinned)
    different = [
        f"{name}: {_difference(published[name], behind[name])}" for name in TABLES if published[name] != behind[name]
    ]
    notes = []
    if different and pinned.number != info.release:
        # Several batches were committed since, or a process was killed before it published: no damage.
        notes = [
            f"The store shows release {info.release}, which the lake no longer keeps, and release {pinned.number} has "
            "other rows. The next `sweepscope ingest` publishes them."
        ]
        different = []
    problems = [*Lake(home).verify(), *different]
    tables = tuple((name, found.rows, found.content) for name, found in published.items())
    return Report(info.version, info.release, tables, tuple(problems), tuple(notes))


def compact(home: Home, *, min_files: int = 2) -> dict[str, int]:
    """Merge small files of the lake, delete what the last releases do not need, and records of logs now at rest.

    Returns:
        `release` (its number now), `files_removed` and `bytes_removed` of the lake, `records_removed`.

    Raises:
        StoreError: the lake is being written by someone else, or the disk does not take it.
    """
    lake = Lake(home)
    newest = lake.compact(min_files=min_files)
    if newest is None:
        raise StoreError(f"There is no lake in {home.path} yet. Run `sweepscope ingest PATH` first.")
    files, size = lake.vacuum()
    records, _ = Records(home.records, datetime.now(UTC).replace(tzinfo=None)).tidy(unused_for=REST_AFTER)
    return {"release": newest.number, "files_removed": files, "bytes_removed": size, "records_removed": records}


def tidy(home: Home) -> bool:
    """Compact when some table has many small files; cheap otherwise. For schedules. Raises as `compact`."""
    lake = Lake(home)
    newest = lake.release()
    if newest is None or max(len(lake.files(name, newest)) for name in TABLES) < _MANY_FILES:
        return False
    compact(home, min_files=_MANY_FILES // 2)
    return True


def _difference(store: Digest, lake: Digest) -> str:
    if store.rows != lake.rows:
        return f"the store has {store.rows} rows, the lake {lake.rows}"
    return "the store's rows differ from the lake's"


def _kept_release(home: Home, number: int) -> Release:
    """Release `number`, or the newest one when that is no longer kept."""
    kept = {release.number: release for release in releases.kept(home.releases)}
    if not kept:
        raise StoreError(f"There is no lake in {home.path} any more. Run `sweepscope ingest PATH` to build it again.")
    return kept.get(number) or kept[max(kept)]


def _lake_digests(home: Home, release: Release) -> dict[str, Digest]:
    """Digests of the tables at a release."""
    lake = Lake(home)
    found = {}
    with duckdb.connect(":memory:") as connection, reading(home.lake, duckdb.Error, remedy=remedy(home.lake)):
        contents = published_contents.contents(lake, release)
        for name, table in TABLES.items():
            found[name] = digest(connection, table, *contents.select(connection, name))
    return found
