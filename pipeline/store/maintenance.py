"""Looking after a home: does the store show what the lake holds, and is the lake in good shape?"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
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
_MANY_RELEASES = 20
"""Releases beyond those that readers may use, from which removing them is worth opening every table."""


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


@dataclass(frozen=True)
class Tidied:
    """What was done to the lake; `release` is its newest one now, None before the first."""

    release: int | None = None
    is_compacted: bool = False
    releases_removed: int = 0
    files_removed: int = 0
    bytes_removed: int = 0
    records_removed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """For JSON output and metadata."""
        return asdict(self)


def compact(home: Home, *, min_files: int = 2) -> Tidied:
    """Merge small files of the lake, delete what the last releases do not need, and records of logs now at rest.

    Raises:
        StoreError: the lake is being written by someone else, or the disk does not take it.
    """
    newest = Lake(home).compact(min_files=min_files)
    if newest is None:
        raise StoreError(f"There is no lake in {home.path} yet. Run `sweepscope ingest PATH` first.")
    return replace(vacuum(home), release=newest.number, is_compacted=True)


def vacuum(home: Home) -> Tidied:
    """Delete releases that no reader needs, their files, and records of logs now at rest. Raises as `compact`."""
    lake = Lake(home)
    releases_removed = _unneeded(home)
    files, size = lake.vacuum()
    records, _ = Records(home.records, datetime.now(UTC).replace(tzinfo=None)).tidy(unused_for=REST_AFTER)
    newest = lake.release()
    return Tidied(newest.number if newest else None, False, releases_removed, files, size, records)


def tidy(home: Home) -> Tidied:
    """Do what the lake needs: merge files where a table has many small ones, remove releases where many have gathered.

    Cheap where it needs nothing. Raises as `compact`.
    """
    if _has_many_files(home):
        return compact(home, min_files=_MANY_FILES // 2)
    if _unneeded(home) >= _MANY_RELEASES:
        return vacuum(home)
    newest = Lake(home).release()
    return Tidied(newest.number if newest else None)


def is_untidy(home: Home) -> bool:
    """Whether `tidy` would do anything. Raises StoreError when the lake is damaged."""
    return _unneeded(home) >= _MANY_RELEASES or _has_many_files(home)


def _has_many_files(home: Home) -> bool:
    lake = Lake(home)
    newest = lake.release()
    return newest is not None and max(len(lake.files(name, newest)) for name in TABLES) >= _MANY_FILES


def _unneeded(home: Home) -> int:
    """Number of releases beyond those that are kept."""
    return len(releases.numbers(home.releases)[: -releases.KEPT])


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
