"""The DuckDB file of a store without rows: its tables, views and 1,600 comments.

They are the same in each store of a version of the product, and take longer to create than a small sweep takes to
publish. So the file is kept in the user's cache folder and copied: a first publish takes 0.8 s of processor time less.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Mapping
from pathlib import Path

import duckdb

from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.user_cache import cache_folder, remove_older
from sweepscope.pipeline.store import stored_views
from sweepscope.pipeline.store.store_connection import STORAGE_VERSION, attached, transaction
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import STORE, TABLES, VIEWS

_LOG = logging.getLogger(__name__)

_AT_ONCE = 100
"""Each comment is a new version of all that the catalog has of its table or view, kept until the transaction ends:
of 1,500 comments these take 54 MB."""


def write_empty_store(path: Path, views: Mapping[str, str]) -> None:
    """Write a store to `path` that has all tables and views, and no rows; stored views are tables in it.

    Args:
        path: where no file is.
        views: statements by view, after those of the macros.

    Raises:
        duckdb.Error: a view is wrong. OSError: the disk is full.
    """
    statements = _statements(views)
    kept = cache_folder() / f"store-{_digest(statements)}"
    if (content := _read(kept)) is not None:
        path.write_bytes(content)
        return
    with attached(path) as connection:
        for first in range(0, len(statements), _AT_ONCE):
            with transaction(connection):
                for statement in statements[first : first + _AT_ONCE]:
                    connection.execute(statement)
    try:
        _keep(kept, path.read_bytes())
    except OSError as error:  # a cache that cannot be written costs time only
        event(_LOG, logging.INFO, "not_cached", path=kept, reason=error)


def _statements(views: Mapping[str, str]) -> list[str]:
    """All that creates a store without rows, in order."""
    shown = (VIEWS[name] for name in views if name in VIEWS)
    return [
        *(ddl.create_table(table) for table in TABLES.values()),
        *stored_views.as_stored(views).values(),
        *(ddl.create_table(table) for table in STORE.values()),
        *(text for table in (*TABLES.values(), *shown, *STORE.values()) for text in ddl.comments(table)),
    ]


def _digest(statements: list[str]) -> str:
    made_by = f"{duckdb.__version__} {STORAGE_VERSION}"
    return hashlib.sha256("\n".join([made_by, *statements]).encode()).hexdigest()[:32]


def _read(kept: Path) -> bytes | None:
    """What was kept, behind its own hash; None where it is not there, or not whole."""
    try:
        data = kept.read_bytes()
    except OSError:
        return None
    content = data[hashlib.sha256().digest_size :]
    return content if data.startswith(hashlib.sha256(content).digest()) and content else None


def _keep(kept: Path, content: bytes) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    temporary = kept.with_name(f".{kept.name}-{os.getpid()}")
    try:
        temporary.write_bytes(hashlib.sha256(content).digest() + content)
        temporary.replace(kept)
    finally:
        temporary.unlink(missing_ok=True)
    remove_older("store-*")
