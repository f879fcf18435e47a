"""The published store as the pages see it: one read-only connection per version, pinned for the visit.

A visit keeps the version it began with, so nothing on screen changes by itself; `newer_version` tells the shell
that a later one is ready. Connections are cached by path, because each version is a file of its own.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb
import streamlit as st

from pipeline.errors import StoreError
from pipeline.store import published

_PINNED = "store_path"


@dataclass(frozen=True)
class Store:
    """One opened version. `con` belongs to this script run; `published_at` is the file's time, in local time."""

    path: Path
    version: int | None
    published_at: datetime
    con: duckdb.DuckDBPyConnection


def version_of(path: Path) -> int | None:
    """Version in a store's file name, or None for a file that was named by hand.

    >>> version_of(Path("results-12.duckdb"))
    12
    """
    match = re.fullmatch(r"results-(\d+)\.duckdb", path.name)
    return int(match[1]) if match else None


@st.cache_resource(max_entries=4, show_spinner=False)
def _connection(path: str) -> duckdb.DuckDBPyConnection:
    return published.connect(Path(path))


def home() -> Path:
    """Where sweepscope keeps its data: SWEEPSCOPE_HOME, else the XDG data directory."""
    if os.environ.get("SWEEPSCOPE_HOME"):
        return Path(os.environ["SWEEPSCOPE_HOME"])
    data_home = os.environ.get("XDG_DATA_HOME")
    return (Path(data_home) if data_home else Path.home() / ".local" / "share") / "sweepscope"


def open_store() -> Store | None:
    """The version this visit reads, or None when nothing was published yet."""
    try:
        latest = published.current(home())
    except StoreError:
        latest = None
    pinned = st.session_state.get(_PINNED)
    path = Path(pinned) if pinned and Path(pinned).exists() else latest
    if path is None:
        return None
    st.session_state[_PINNED] = str(path)
    # A cursor per run: a DuckDB connection may not be used by two threads at once.
    con = _connection(str(path)).cursor()
    return Store(path, version_of(path), datetime.fromtimestamp(path.stat().st_mtime), con)


def newer_version(store: Store) -> int | None:
    """Number of a version published after the one on screen, or None."""
    try:
        latest = published.current(home())
    except StoreError:
        return None
    return version_of(latest) if latest != store.path else None


def adopt_latest() -> None:
    """Lets the next run open the latest version."""
    st.session_state.pop(_PINNED, None)
