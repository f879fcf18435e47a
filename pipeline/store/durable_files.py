"""Writing to disk so that it lasts, and one plain error when it does not work."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.io.fault_points import reach

_BACKTRACE = re.compile(r" 0: \S+ 1: ")  # Rust's, which Delta's message ends with
_CAUSES = (
    ("disk is full", "the disk is full", "Free space on it, or move the home to another disk (SWEEPSCOPE_HOME)"),
    ("disk i/o error", "the disk is full, or failing", "Free space on it, or move the home (SWEEPSCOPE_HOME)"),
    ("readonly database", "permission denied", "Make it writable for you, or choose another home (SWEEPSCOPE_HOME)"),
    ("no space left", "the disk is full", "Free space on it, or move the home to another disk (SWEEPSCOPE_HOME)"),
    ("quota exceeded", "the disk quota is used up", "Free space, or move the home elsewhere (SWEEPSCOPE_HOME)"),
    ("file too large", "the file would be larger than the limit", "Raise the limit (ulimit -f), or free space"),
    ("read-only file system", "the file system is read-only", "Move the home to another disk (SWEEPSCOPE_HOME)"),
    ("permission denied", "permission denied", "Make it writable for you, or choose another home (SWEEPSCOPE_HOME)"),
)


@contextmanager
def storing(path: Path, doing: str, *errors: type[Exception]) -> Iterator[None]:
    """Turn an OSError, or one of `errors`, into a StoreError with what failed where, why, and what to do.

    Args:
        path: what is being written.
        doing: the attempt in words, to follow "Cannot": "publish", "commit to".
        errors: what the library at work raises; their text is searched for the usual causes.
    """
    caught: tuple[type[Exception], ...] = (OSError, *errors)
    try:
        yield
    except caught as error:
        raise StoreError(f"Cannot {doing} {path}: {_cause(error)} What was there before is untouched.") from error


@contextmanager
def reading(path: Path, *errors: type[Exception], remedy: str = "Move it away and ingest again") -> Iterator[None]:
    """As `storing`, for reading. `remedy`: what helps where it is damaged."""
    caught: tuple[type[Exception], ...] = (OSError, *errors)
    try:
        yield
    except caught as error:
        raise StoreError(f"Cannot read {path}: {_cause(error)} Damaged? {remedy}.") from error


def _cause(error: Exception) -> str:
    text = " ".join(str(error).split()).split(" LINE 1:")[0]  # DuckDB quotes our own query below its message
    text = _BACKTRACE.split(text)[0]
    for sign, cause, remedy in _CAUSES:
        if sign in text.lower():
            return f"{cause}. {remedy}, and run it again."
    return f"{text[:300]}."


def sync(*paths: Path) -> None:
    """Wait until files, or the entries of folders, are on the disk."""
    for path in paths:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_new(path: Path, text: str) -> None:
    """Write a file that appears whole and on disk, or not at all.

    Raises:
        FileExistsError: there is one already; it stays as it is.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        reach("file.written")
        os.link(temporary, path)  # unlike rename, this refuses to overwrite
    finally:
        temporary.unlink(missing_ok=True)
    sync(path.parent)


def write_over(path: Path, text: str) -> None:
    """Write a file in place of the one that may be there: readers see the old content or the new one, never a part.

    Its folder is created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync(path.parent)
