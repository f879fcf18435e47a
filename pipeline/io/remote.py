"""Files behind URLs, through fsspec: listed and read within bounded time, whatever the other end does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from io import RawIOBase
from typing import IO, Any, cast

from sweepscope.pipeline.errors import InputError, NothingYetError, UsageError
from sweepscope.pipeline.io.hidden_names import is_hidden

CONNECT_S = 10
READ_S = 20
"""How long to wait for a server's answer, or for the next of it. Without limits a frozen one is waited for some 25
minutes: 60 seconds, five times by the client, five times by s3fs."""

ATTEMPTS = 2
"""How often S3 is asked by each of the two, its client and s3fs."""

_FOREIGN = ("botocore", "aiobotocore", "aiohttp", "urllib3", "asyncio", "google", "gcsfs", "azure", "adlfs", "requests")
"""Packages whose errors are no OSError where a server cannot be reached or does not answer."""


def is_url(path: str) -> bool:
    """Whether a path is a URL for fsspec rather than a local one."""
    return "://" in path


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL, which gives up within bounded time, and the path there.

    Raises:
        UsageError: the URL is malformed, or of a kind that there is not.
        InputError: a package for such URLs is missing.
    """
    # Late: with what it imports itself it takes longer than all local files of a small ingest.
    import fsspec

    is_s3 = url.startswith(("s3://", "s3a://"))
    given = fsspec.config.conf.get("s3", {})
    limits: dict[str, Any] = {}
    if is_s3 and "config_kwargs" not in given:
        limits = {"connect_timeout": CONNECT_S, "read_timeout": READ_S, "retries": {"total_max_attempts": ATTEMPTS}}
    try:
        system, path = fsspec.core.url_to_fs(url, **({"config_kwargs": limits} if limits else {}))
    except ValueError as error:
        raise UsageError(f"Cannot read {url}: {error}. Check the URL.") from error
    except ImportError as error:
        remedy = "pip install 'sweepscope[s3]'" if is_s3 else "pip install what it names"
        raise InputError(f"Cannot list {url}: {error}. Install it: {remedy}.") from error
    if limits:
        system.retries = ATTEMPTS
    return system, path


@contextmanager
def as_os_error() -> Iterator[None]:
    """Raise errors of the libraries below fsspec as OSError, which is what reading a file raises."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        if type(error).__module__.split(".")[0] not in _FOREIGN:
            raise
        raise OSError(_in_words(error)) from error


def _in_words(error: Exception) -> str:
    """What went wrong, on one line.

    >>> _in_words(TimeoutError())
    'no answer (TimeoutError)'
    """
    text = " ".join(str(error).split())
    if "timeout" in type(error).__name__.lower():
        return f"no answer ({type(error).__name__}{': ' if text else ''}{text})"
    return text or type(error).__name__


def listed(root: str) -> Iterator[tuple[str, int, float]]:
    """URL, size in bytes and modification time (seconds since 1970) of every file at or below a URL.

    Hidden files and directories are left out, but for those of `hidden_names`.

    Raises:
        NothingYetError: nothing is there.
        UsageError: the URL is malformed.
        InputError: it cannot be listed.
    """
    filesystem, inner = file_system(root)
    try:
        filesystem.invalidate_cache()  # s3fs keeps listings for ever: a watcher would see nothing new
        with as_os_error():
            listed = filesystem.find(inner, detail=True)
    except ValueError as error:
        raise UsageError(f"Cannot read {root}: {error}. Check the URL.") from error
    except FileNotFoundError:
        listed = {}
    except OSError as error:
        raise InputError(f"Cannot list {root}: {error}. Check the URL, the endpoint and the credentials.") from error
    if not listed:
        raise NothingYetError(f"Nothing found at {root}. Check the URL.")
    for name, info in sorted(listed.items()):
        if not any(map(is_hidden, name.removeprefix(inner).split("/"))):
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


class _RemoteFile(RawIOBase):
    """A file of fsspec that raises nothing but OSError, and ValueError or NotImplementedError where it cannot seek."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Whether reading can begin in the middle."""
        return bool(self._file.seekable())

    def read(self, size: int = -1) -> bytes:
        """As any file."""
        with as_os_error():
            return self._file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        """As any file."""
        with as_os_error():
            return self._file.seek(offset, whence)

    def tell(self) -> int:
        """As any file."""
        return self._file.tell()

    def close(self) -> None:
        """As any file."""
        if not self.closed:
            with as_os_error():
                self._file.close()
        super().close()


def opened(url: str) -> IO[bytes]:
    """The file behind a URL. Raises OSError."""
    with as_os_error():
        system, path = file_system(url)
        return cast(IO[bytes], _RemoteFile(system.open(path, "rb")))


def exists(url: str, *, if_unknown: bool = True) -> bool:
    """Whether there is a file behind a URL; `if_unknown` where that cannot be found out."""
    try:
        with as_os_error():
            filesystem, inner = file_system(url)
            return bool(filesystem.exists(inner))
    except (UsageError, InputError, ValueError, OSError):
        return if_unknown


def modified_at(url: str) -> float | None:
    """Modification time of the file behind a URL in seconds since 1970; None where there is none."""
    try:
        with as_os_error():
            filesystem, inner = file_system(url)
            found = filesystem.info(inner)
    except (UsageError, InputError, ValueError, OSError):
        return None
    return modified(found) if found.get("type") == "file" else None
