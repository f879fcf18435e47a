"""Publish: write a new DuckDB file for the pinned release beside the old one, then let the link point to it.

Readers open the file behind the link read-only; they keep the version they opened and never wait. Writing into the
file that they read would not work: DuckDB allows one writing process or many reading ones.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version as installed_version
from pathlib import Path

import duckdb

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.fault_points import reach
from sweepscope.pipeline.logs.runs import (
    driver_logs,
    ended_together,
    job_outputs,
    kept_elsewhere,
    listed_runs,
    rank_logs,
    same_runs,
)
from sweepscope.pipeline.scheduler import reconcile
from sweepscope.pipeline.store import release as releases
from sweepscope.pipeline.store import store_file, stored_views
from sweepscope.pipeline.store.durable_files import storing, sync
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake, Release
from sweepscope.pipeline.store.lock import exclusive
from sweepscope.pipeline.store.publications import Publication, record
from sweepscope.pipeline.store.published import StoreInfo, connect, current, store_info, version_of, versions
from sweepscope.pipeline.store.rule_scores_sql import with_rules
from sweepscope.pipeline.store.store_connection import STORAGE_VERSION
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import STORE, TABLES, VIEWS
from sweepscope.schemas.thresholds import THRESHOLDS

_LOG = logging.getLogger(__name__)

VIEW_FOLDER = Path(__file__).parent / "views"
MACRO_FOLDER = Path(__file__).parent / "macros"
KEPT = 3


@dataclass(frozen=True)
class Published:
    """A published version. `rows` counts the rows per table; `is_new` is false when there was nothing to do."""

    version: int
    path: Path
    release: int
    rows: Mapping[str, int]
    seconds: float
    is_new: bool


def publish(home: Home, *, view_folder: Path = VIEW_FOLDER) -> Published:
    """Publish the newest release of the lake, unless the current version shows it already.

    Args:
        home: the home to read from and to publish in.
        view_folder: folder with one `<view>.sql` per view of the registry.

    Raises:
        StoreError: nothing to publish, another process is publishing, a view is missing or wrong, or the disk is full.
            The current version stays.
    """
    begin = time.perf_counter()
    views = load_views(view_folder)
    with exclusive(home.store_lock, "publishing"), storing(home.store, "publish to", duckdb.Error):
        lake = Lake(home)
        lake.refresh()
        release = lake.release()
        if release is None:
            raise StoreError(f"There is nothing to publish in {home.path}. Run `sweepscope ingest PATH` first.")
        done = _current(home)
        is_new = done is None or not _shows(done, release, fingerprint(views))
        if is_new:
            path, rows = _publish(home, release, views, done)
        else:
            path = current(home.path)
            rows = _count(path)
        published = Published(version_of(path), path, release.number, rows, time.perf_counter() - begin, is_new)
        if is_new:
            record(home, Publication(published.version, release.number, datetime.now(UTC), published.seconds))
    name = "published" if is_new else "already_published"
    facts = {"version": published.version, "release": published.release, "seconds": published.seconds, "path": path}
    event(_LOG, logging.INFO, name, **facts, **{f"rows_{table}": count for table, count in rows.items() if count})
    return published


def load_views(folder: Path) -> dict[str, str]:
    """Statements that create every view of the registry, in order, after the macros that they use.

    Raises StoreError when a file is missing.
    """
    views = {"macros": macros()}
    for name in VIEWS:
        path = folder / f"{name}.sql"
        if not path.is_file():
            raise StoreError(f"The view {name} has no definition: {path} is missing. Reinstall sweepscope.")
        views[name] = with_rules(path.read_text(encoding="utf-8"))
    return views


def macros() -> str:
    """Statements that create the thresholds and rules that several views share, one file per subject."""
    thresholds = [statement for t in THRESHOLDS for statement in ddl.constant_macro(t.name, t.value, t.meaning)]
    shared = [path.read_text(encoding="utf-8") for path in sorted(MACRO_FOLDER.glob("*.sql"))]
    return "\n".join([*(f"{statement};" for statement in thresholds), *shared])


def fingerprint(views: Mapping[str, str]) -> str:
    """Hash of everything besides the rows that decides what a store looks like."""
    tables = [
        text
        for table in (*TABLES.values(), *STORE.values())
        for text in (ddl.create_table(table), *ddl.comments(table))
    ]
    texts = [
        STORAGE_VERSION,
        str(reconcile.VERSION),
        str(same_runs.VERSION),
        str(kept_elsewhere.VERSION),
        str(listed_runs.VERSION),
        str(job_outputs.VERSION),
        str(driver_logs.VERSION),
        str(rank_logs.VERSION),
        str(ended_together.VERSION),
        *tables,
        *stored_views.as_stored(views).values(),
        *(text for view in VIEWS.values() for text in ddl.comments(view)),
    ]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _publish(
    home: Home, release: Release, views: Mapping[str, str], done: StoreInfo | None
) -> tuple[Path, dict[str, int]]:
    version = 1 + max((kept.version for kept in versions(home.path)), default=0)
    final = home.store / f"results-{version}.duckdb"
    temporary = home.store / f".{final.name}"
    info = StoreInfo(
        version=version,
        release=release.number,
        published_at=datetime.now(UTC).replace(tzinfo=None),
        package_version=installed_version("sweepscope"),
        fingerprint=fingerprint(views),
        row_count=0,
    )
    _remove_leftovers(home)
    try:
        rows = _renewed(home, temporary, release, info, done, views=views)
        if rows is None:
            _remove_leftovers(home)
            rows = store_file.build(temporary, Lake(home), release, views, info)
        sync(temporary)
        reach("store.built")
        temporary.rename(final)
        reach("store.renamed")
    finally:
        _remove_leftovers(home)
    sync(home.store)
    _point_to(home.link, final)
    reach("store.linked")
    _remove_old(home)
    return final, rows


def _renewed(
    home: Home, path: Path, release: Release, info: StoreInfo, done: StoreInfo | None, *, views: Mapping[str, str]
) -> dict[str, int] | None:
    """Rows by table of a store written to `path` from the current version, the one that `done` describes.

    None where that cannot be done.
    """
    kept = {one.number: one for one in releases.kept(home.releases)}
    if done is None or done.fingerprint != info.fingerprint or done.release not in kept:
        return None
    before = kept[done.release]
    if before.number >= release.number or _is_older(done, before):
        return None
    try:
        return store_file.renew(path, current(home.path), Lake(home), (before, release), info, views=views)
    except (duckdb.Error, StoreError) as error:  # what is wrong with the disk, building meets as well
        event(_LOG, logging.WARNING, "not_renewed", version=done.version, reason=str(error).splitlines()[0])
        return None


def _shows(done: StoreInfo, release: Release, wanted_fingerprint: str) -> bool:
    """Whether a published version needs no renewal.

    The number does not suffice: where a damaged release was moved away, the next one takes its number.
    """
    return (done.release, done.fingerprint) == (release.number, wanted_fingerprint) and not _is_older(done, release)


def _is_older(done: StoreInfo, release: Release) -> bool:
    """Whether a version was published before a release was made, from another one of the same number."""
    return done.published_at < release.created_at.astimezone(UTC).replace(tzinfo=None)


def _current(home: Home) -> StoreInfo | None:
    """`store_info` of the current version; None when there is none or it cannot be read, so that it is rebuilt."""
    try:
        connection = connect(current(home.path))
    except StoreError:
        return None
    try:
        return store_info(connection)
    except StoreError:
        return None
    finally:
        connection.close()


def _count(path: Path) -> dict[str, int]:
    with connect(path) as connection:
        return store_file.counts(connection)


def _point_to(link: Path, target: Path) -> None:
    temporary = link.with_name(f".{link.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target.name)
    temporary.replace(link)
    sync(link.parent)


def _remove_leftovers(home: Home) -> None:
    """Remove half-built files, of this process or of a publisher that was killed: the lock excludes others."""
    for path in home.store.glob(".results-*"):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _remove_old(home: Home) -> None:
    for old in versions(home.path)[KEPT:]:
        if not old.is_current:
            os.unlink(old.path)  # readers that have it open keep it
