"""Rows of the bundled tables, checked and estimated once per machine and version of the product.

Reading, checking and estimating thousands of published results costs more than a small sweep of one's own. So the rows
are kept in the user's cache folder (`$XDG_CACHE_HOME/sweepscope`, else `~/.cache/sweepscope`), under a digest of all
that they follow from: the bundled data, the code and the libraries that compute with it. A cache that cannot be read or
written costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path

import polars as pl

from sweepscope import data, schemas
from sweepscope.pipeline.ingest.batch import Tables, validate_batch
from sweepscope.pipeline.ingest.bundled import bundled_tables
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.user_cache import cache_folder, remove_older

_LOG = logging.getLogger(__name__)

_SOURCES = (Path(data.__file__).parent, Path(schemas.__file__).parent, Path(__file__).parents[1])
_LIBRARIES = ("numpy", "polars", "pandera")


def prepared_tables() -> Tables:
    """What `validate_batch` gives of the bundled tables, from the cache where it has them."""
    folder = cache_folder() / f"bundled-{digest()}"
    if (kept := _read(folder)) is not None:
        return kept
    tables = validate_batch(bundled_tables())
    try:
        _write(folder, tables)
    except OSError as error:  # a full or read-only disk, or another process has just put its own there
        event(_LOG, logging.INFO, "not_cached", folder=folder, reason=error)
    return tables


def digest() -> str:
    """Hash of everything that the rows follow from: data and code of the product, versions of libraries."""
    found = hashlib.sha256(" ".join(version(name) for name in _LIBRARIES).encode())
    for source in _SOURCES:
        for path in sorted(path for path in source.rglob("*") if path.suffix != ".pyc" and path.is_file()):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            found.update(f"{path.relative_to(source.parent)} {content}\n".encode())
    return found.hexdigest()[:32]


def _read(folder: Path) -> Tables | None:
    """The tables in a folder; None where it is not there, or damaged."""
    try:
        return {path.stem: pl.read_ipc(path) for path in sorted(folder.iterdir())} or None
    except (OSError, pl.exceptions.PolarsError):
        return None


def _write(folder: Path, tables: Tables) -> None:
    """Put a folder of tables in its place at once, and remove those that were written longest ago."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".bundled-", dir=folder.parent))
    try:
        for name, frame in tables.items():
            frame.write_ipc(temporary / f"{name}.arrow", compression="lz4")
        shutil.rmtree(folder, ignore_errors=True)  # damaged, or it would have been read
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    remove_older("bundled-*")
