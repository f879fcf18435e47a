"""Files behind URLs, through fsspec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import IO, Any, cast

import fsspec

from sweepscope.pipeline.errors import InputError, NothingYetError, UsageError


def is_url(path: str) -> bool:
    """Whether a path is a URL for fsspec rather than a local one."""
    return "://" in path


def listed(root: str) -> Iterator[tuple[str, int, float]]:
    """URL, size in bytes and modification time (seconds since 1970) of every file at or below a URL.

    Hidden files and directories are left out.

    Raises:
        NothingYetError: nothing is there.
        UsageError: the URL is malformed.
        InputError: it cannot be listed.
    """
    try:
        filesystem, inner = fsspec.core.url_to_fs(root)
        listed = filesystem.find(inner, detail=True)
    except ValueError as error:
        raise UsageError(f"Cannot read {root}: {error}. Check the URL.") from error
    except ImportError as error:
        raise InputError(f"Cannot list {root}: {error}. Install what it names beside sweepscope.") from error
    except FileNotFoundError:
        listed = {}
    except OSError as error:
        raise InputError(f"Cannot list {root}: {error}. Check the URL and the credentials.") from error
    if not listed:
        raise NothingYetError(f"Nothing found at {root}. Check the URL.")
    for name, info in sorted(listed.items()):
        if not any(part.startswith(".") for part in name.removeprefix(inner).split("/")):
            yield filesystem.unstrip_protocol(name), int(info.get("size") or 0), modified(info)


def modified(info: Mapping[str, Any]) -> float:
    """Modification time in seconds since 1970, from the name and type of any file system; 0 where it has none."""
    names = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")
    stamp = next((info[name] for name in names if info.get(name)), 0)
    if isinstance(stamp, str):
        stamp = datetime.fromisoformat(stamp)
    if isinstance(stamp, datetime):
        return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
    return float(stamp)


def opened(url: str) -> IO[bytes]:
    """The file behind a URL. Raises OSError."""
    return cast(IO[bytes], fsspec.open(url, "rb").open())


def exists(url: str) -> bool:
    """Whether there is a file behind a URL; true also where that cannot be found out."""
    try:
        filesystem, inner = fsspec.core.url_to_fs(url)
        return bool(filesystem.exists(inner))
    except (ValueError, ImportError, OSError):
        return True
