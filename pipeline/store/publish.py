"""Publish: build a new DuckDB file from the pinned release beside the old one, then let the link point to it.

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
from sweepscope.pipeline.logs.runs import same_runs
from sweepscope.pipeline.scheduler import reconcile
from sweepscope.pipeline.store import published_contents
from sweepscope.pipeline.store.durable_files import storing, sync
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake, Release
from sweepscope.pipeline.store.lock import exclusive
from sweepscope.pipeline.store.published import StoreInfo, connect, current, store_info, version_of, versions
from sweepscope.pipeline.store.rule_scores_sql import with_rules
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import STORE, TABLES, VIEWS
from sweepscope.schemas.tables.ledger import STORE_INFO
from sweepscope.schemas.thresholds import THRESHOLDS

_LOG = logging.getLogger(__name__)

VIEW_FOLDER = Path(__file__).parent / "views"
MACRO_FOLDER = Path(__file__).parent / "macros"
KEPT = 3
_MEMORY_LIMIT = "128MB"
"""For DuckDB, which sorts on disk what is more. Without a limit it takes 150 bytes per row at once; with half of this,
ten million rows do not fit."""
# The file format of DuckDB 1.2, so that clients older than ours can read the store as well.
_STORAGE_VERSION = "v1.2.0"


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
        release = Lake(home).release()
        if release is None:
            raise StoreError(f"There is nothing to publish in {home.path}. Run `sweepscope ingest PATH` first.")
        done = _current(home)
        is_new = done is None or not _shows(done, release, fingerprint(views))
        path = _publish(home, release, views) if is_new else current(home.path)
        rows = _count(path)
    published = Published(version_of(path), path, release.number, rows, time.perf_counter() - begin, is_new)
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
        _STORAGE_VERSION,
        str(reconcile.VERSION),
        str(same_runs.VERSION),
        *tables,
        *views.values(),
        *(text for view in VIEWS.values() for text in ddl.comments(view)),
    ]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _publish(home: Home, release: Release, views: Mapping[str, str]) -> Path:
    version = 1 + max((kept.version for kept in versions(home.path)), default=0)
    final = home.store / f"results-{version}.duckdb"
    temporary = home.store / f".{final.name}"
    _remove_leftovers(home)
    try:
        try:
            _build(temporary, home, release, version, views, memory_limit=_MEMORY_LIMIT)
        except duckdb.OutOfMemoryException:  # not all of its work can go to the disk
            _remove_leftovers(home)
            _build(temporary, home, release, version, views)
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
    return final


def _build(
    path: Path, home: Home, release: Release, version: int, views: Mapping[str, str], *, memory_limit: str | None = None
) -> None:
    """Write the whole store to `path`, from which this process is then detached."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": f"{path}.spill",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    if memory_limit:
        settings["memory_limit"] = memory_limit
    with duckdb.connect(":memory:", config=settings) as connection:
        connection.execute(f"ATTACH {ddl.literal(str(path))} AS store (STORAGE_VERSION '{_STORAGE_VERSION}')")
        connection.execute("USE store")
        # One transaction: on its own each of the 400 statements would wait for the disk (2 s instead of 0.3 s).
        connection.execute("BEGIN")
        row_count = _fill_tables(connection, Lake(home), release)
        reach("store.filled")
        for statement in views.values():
            connection.execute(statement)
        _write_info(
            connection,
            StoreInfo(
                version=version,
                release=release.number,
                published_at=datetime.now(UTC).replace(tzinfo=None),
                package_version=installed_version("sweepscope"),
                fingerprint=fingerprint(views),
                row_count=row_count,
            ),
        )
        for table in (*TABLES.values(), *VIEWS.values(), STORE_INFO):
            for statement in ddl.comments(table):
                connection.execute(statement)
        connection.execute("COMMIT")
        connection.execute("CHECKPOINT store")
        connection.execute("USE memory")
        connection.execute("DETACH store")


def _fill_tables(connection: duckdb.DuckDBPyConnection, lake: Lake, release: Release) -> int:
    """Create and fill every table of the lake; the number of rows over all of them."""
    total = 0
    different = published_contents.changed(lake, release)
    for name, table in TABLES.items():
        connection.execute(ddl.create_table(table))
        query, parameters = published_contents.select(connection, name, lake, release, different)
        # In key order: equal content gives equal tables, and the rows of a run lie together, as queries want them.
        order = ", ".join(map(ddl.quote, table.primary_key))
        connection.execute(f"INSERT INTO {ddl.quote(name)} {query} ORDER BY {order}", parameters)
        total += _rows(connection, name)
    return total


def _write_info(connection: duckdb.DuckDBPyConnection, info: StoreInfo) -> None:
    values = vars(info)
    columns = ", ".join(f"${name} AS {name}" for name in values)
    connection.execute(ddl.create_table(STORE_INFO))
    connection.execute(f"INSERT INTO store_info BY NAME SELECT {columns}", values)


def _shows(done: StoreInfo, release: Release, wanted_fingerprint: str) -> bool:
    """Whether a published version needs no renewal.

    The number does not suffice: where a damaged release was moved away, the next one takes its number.
    """
    is_older = done.published_at < release.created_at.astimezone(UTC).replace(tzinfo=None)
    return (done.release, done.fingerprint) == (release.number, wanted_fingerprint) and not is_older


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
        return {name: _rows(connection, name) for name in TABLES}


def _rows(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    ((count,),) = connection.execute(f"SELECT count(*) FROM {ddl.quote(name)}").fetchall()
    return int(count)


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
