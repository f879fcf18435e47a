"""The published store as readers see it: which file is current, opened read-only and locked down.

The only module of `pipeline.store` that the dashboard imports. Versions never change once published: a reader keeps
the file it opened, and finds out about a newer one by the name behind the link.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb

from sweepscope.pipeline.errors import NoStoreError, StoreError
from sweepscope.pipeline.store.home import Home, home_option

_NAME = re.compile(r"results-(\d+)\.duckdb")
# Every connection of a process to one file has to be opened alike, so this is the only place that opens it.
_LOCKED_DOWN: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}


@dataclass(frozen=True)
class Version:
    """One published file that is still kept."""

    version: int
    path: Path
    bytes: int
    is_current: bool


@dataclass(frozen=True)
class StoreInfo:
    """The row of `store_info`. `published_at` is in UTC, without a zone."""

    version: int
    release: int
    published_at: datetime
    package_version: str
    fingerprint: str
    row_count: int


def default_home() -> Path:
    """The home that SWEEPSCOPE_HOME names, else the XDG data directory. Raises as Home.resolve does."""
    return Home.resolve(None, for_writing=False).path


def named_home() -> str:
    """The option that names `default_home` on a command line, "" where none is needed."""
    return home_option(default_home())


def first_commands(home: Path) -> tuple[str, str]:
    """The commands that fill an empty home: with the bundled data, and with a sweep of one's own."""
    named = home_option(home)
    return f"sweepscope demo{named}", f"sweepscope ingest PATH{named}"


def current(home: Path | str) -> Path:
    """The current published file, with links resolved.

    Raises:
        NoStoreError: nothing has been published yet.
        StoreError: the file behind the link is gone.
    """
    link = Home(Path(home)).link
    if not os.path.lexists(link):
        demo, ingest = first_commands(Path(home))
        raise NoStoreError(f"There is no store in {home} yet. Run `{ingest}` (or `{demo}`) first.")
    path = Path(os.path.realpath(link))
    if not path.is_file():
        raise StoreError(f"The store {path} is gone. Run `sweepscope ingest` again: it publishes from the lake.")
    return path


def connect(path: Path | str) -> duckdb.DuckDBPyConnection:
    """A read-only connection to a published file: no other files, no network, no extensions, settings locked.

    Raises:
        StoreError: the file is missing, is not a DuckDB file, or was written by a newer DuckDB.
    """
    try:
        return duckdb.connect(str(path), read_only=True, config=_LOCKED_DOWN)
    except duckdb.Error as error:
        why = str(error).splitlines()[0]
        remedy = "Run `sweepscope ingest PATH` again: it publishes from the lake."
        raise StoreError(f"Cannot open the store {path}: {why}. {remedy}") from error


def version_of(path: Path | str) -> int:
    """Version in the name of a published file.

    Raises:
        StoreError: the name is not that of a published file.

    >>> version_of("store/results-12.duckdb")
    12
    """
    match = _NAME.fullmatch(Path(path).name)
    if not match:
        raise StoreError(f"{path} is not a published store: those are named results-<version>.duckdb.")
    return int(match[1])


def versions(home: Path | str) -> list[Version]:
    """The published files that are kept, newest first. Empty before the first one."""
    layout = Home(Path(home))
    counts = Path(os.path.realpath(layout.link)).name
    found = [path for path in layout.store.glob("results-*.duckdb") if _NAME.fullmatch(path.name)]
    rows = []
    for path in found:
        with suppress(FileNotFoundError):  # removed since it was listed
            rows.append(Version(version_of(path), path, path.stat().st_size, path.name == counts))
    return sorted(rows, key=lambda row: row.version, reverse=True)


def store_info(connection: duckdb.DuckDBPyConnection) -> StoreInfo:
    """The row of `store_info` of the opened store. Raises StoreError when it is no published store."""
    try:
        # fetchall, because a result that is not read to its end blocks the connection for the next query
        rows = connection.execute(
            "SELECT version, release, published_at, package_version, fingerprint, row_count FROM store_info"
        ).fetchall()
    except duckdb.Error as error:
        raise StoreError(f"Not a published store: {str(error).splitlines()[0]}") from error
    if not rows:
        raise StoreError("Not a published store: store_info is empty.")
    return StoreInfo(*rows[0])
