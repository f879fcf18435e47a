"""The landing zone: list files and read them in chunks, from local disk or any fsspec URL. Interprets nothing."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

import fsspec
import zstandard

from pipeline.errors import InputError, UsageError

CHUNK_BYTES = 8 << 20


@dataclass(frozen=True)
class Entry:
    """One file: absolute path or URL, size in bytes, modification time in seconds since 1970."""

    path: str
    bytes: int
    mtime: float


def is_url(path: str) -> bool:
    """Whether fsspec rather than the local file system is meant."""
    return "://" in path


def list_files(root: str) -> Iterator[Entry]:
    """Every regular file at or below `root`, in path order; hidden files and directories are left out.

    Raises:
        UsageError: `root` does not exist.
        InputError: it exists and cannot be listed.
    """
    if is_url(root):
        yield from _list_url(root)
        return
    path = Path(os.path.abspath(root))  # resolves "..", keeps links as the user wrote them
    if not path.exists():
        raise UsageError(f"No such file or directory: {root}. Give a run directory, a sweep directory or a log file.")
    if path.is_file():
        yield _entry(path)
        return
    if not os.access(path, os.R_OK | os.X_OK):
        raise InputError(f"Cannot list {root}: permission denied. Make the directory readable, or run as its owner.")
    for directory, children, names in os.walk(path):
        children[:] = sorted(name for name in children if not name.startswith("."))
        for name in sorted(names):
            file = Path(directory, name)
            if not name.startswith(".") and file.is_file():
                yield _entry(file)


def _entry(path: Path) -> Entry:
    stat = path.stat()
    return Entry(str(path), stat.st_size, stat.st_mtime)


def _list_url(root: str) -> Iterator[Entry]:
    filesystem, inner = fsspec.core.url_to_fs(root)
    try:
        listed = filesystem.find(inner, detail=True)
    except (OSError, ImportError) as error:
        raise InputError(f"Cannot list {root}: {error}. Check the URL and the credentials.") from error
    if not listed:
        raise UsageError(f"Nothing found at {root}. Check the URL.")
    for name, info in sorted(listed.items()):
        modified = info.get("mtime") or info.get("LastModified") or info.get("updated") or 0
        stamp = modified.timestamp() if hasattr(modified, "timestamp") else float(modified)
        yield Entry(filesystem.unstrip_protocol(name), int(info.get("size") or 0), stamp)


def has_marker(directory: str, marker: str) -> bool:
    """Whether `directory` or one above it holds a file of that name (local paths only)."""
    if is_url(directory):
        return False
    path = Path(directory)
    return any((parent / marker).exists() for parent in (path, *path.parents))


@dataclass
class Reader:
    """Chunks of one file, decompressed, with the hash of the bytes on disk once it is read to its end."""

    path: str
    sha256: str | None = field(default=None, init=False)

    def chunks(self) -> Iterator[bytes]:
        """Decompressed chunks of about CHUNK_BYTES.

        Raises:
            InputError: the file cannot be read, or its compressed stream is damaged.
        """
        digest = hashlib.sha256()
        try:
            with _open(self.path) as raw:
                counted = _Hashing(raw, digest.update)
                stream = _decompressed(counted)
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
                counted.drain()
        except PermissionError as error:
            raise InputError(
                f"Cannot read {self.path}: permission denied. Make it readable, or run as its owner."
            ) from error
        except (OSError, EOFError, zstandard.ZstdError, gzip.BadGzipFile) as error:
            raise InputError(f"Cannot read {self.path}: {error}") from error
        self.sha256 = digest.hexdigest()


def _open(path: str) -> IO[bytes]:
    if is_url(path):
        return cast(IO[bytes], fsspec.open(path, "rb").open())
    return Path(path).open("rb")


class _Hashing(io.RawIOBase):
    """Passes reads through and shows every byte to the digest."""

    def __init__(self, raw: IO[bytes], update: object) -> None:
        self._raw, self._update = raw, update
        self._head = raw.read(4)
        self.magic = self._head
        self._update(self._head)  # type: ignore[operator]  # hashlib's update; typeshed names no protocol for it

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # RawIOBase asks for any writable buffer
        if self._head:
            data, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        else:
            data = self._raw.read(len(buffer))
            self._update(data)  # type: ignore[operator]  # see above
        buffer[: len(data)] = data
        return len(data)

    def drain(self) -> None:
        """Hash what the decompressor left unread (bytes behind the end of its stream)."""
        while self.read(CHUNK_BYTES):
            pass


def _decompressed(raw: _Hashing) -> IO[bytes]:
    if raw.magic[:2] == b"\x1f\x8b":
        return cast(IO[bytes], gzip.GzipFile(fileobj=io.BufferedReader(raw)))
    if raw.magic == b"\x28\xb5\x2f\xfd":
        reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        return cast(IO[bytes], reader)
    return cast(IO[bytes], io.BufferedReader(raw, CHUNK_BYTES))
