"""Files in archives, under paths that continue the archive's own: `/data/sweep.tar.gz/tp2/train.log`.

The operating system refuses such a path because the archive is no directory, and that is when `files` and `reader` turn
here. Nothing is ever written under a name that an archive states: members are stretches of the archive itself where it
is a plain tar, and of one file in the user's cache folder otherwise (`archive_cache`). Links, devices and names that
lead out of the archive are left out and counted; archives within archives are not opened.
"""

from __future__ import annotations

import errno
import io
import os
import posixpath
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, cast

from sweepscope.pipeline.io import archive_cache
from sweepscope.pipeline.io.archive_formats import Contents, Member, read_archive
from sweepscope.pipeline.io.file_names import on_disk
from sweepscope.pipeline.io.remote import is_url

_SUFFIXES = (".zip", ".tar", ".tgz", ".tbz2", ".txz", ".tar.gz", ".tar.zst", ".tar.bz2", ".tar.xz")
_CLOSED = (".7z", ".rar")
"""Archives for which Python has no reader."""


def is_archive(name: str) -> bool:
    """Whether a name is that of an archive of files, which may be runs.

    >>> is_archive("sweep.tar.gz"), is_archive("sweep.7z"), is_archive("train.log.gz")
    (True, True, False)
    """
    return name.lower().endswith(_SUFFIXES + _CLOSED)


def without_suffix(name: str) -> str:
    """A name without the suffix of archives.

    >>> without_suffix("exp1.tar.gz"), without_suffix("exp.1")
    ('exp1', 'exp.1')
    """
    suffix = next((suffix for suffix in _SUFFIXES if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(suffix)] or name


def is_in_archive(path: str) -> bool:
    """Whether a path has a folder that is named as an archive.

    >>> is_in_archive("/d/sweep.tar.gz/tp2/train.log"), is_in_archive("/d/sweep.tar.gz")
    (True, False)
    """
    return next(_splits(path), None) is not None


def contents(path: str) -> Contents:
    """What a local archive holds; one that cannot be read holds nothing, and its `notes` have the reason."""
    if path.lower().endswith(_CLOSED):
        return Contents(notes=("an archive of a kind that is not opened: unpack it beside the others",))
    try:
        found = os.stat(on_disk(path))
    except OSError as error:
        return Contents(notes=(f"cannot be read: {error.strerror}. Make it readable, or run as its owner.",))
    try:
        return _contents(path, found.st_size, found.st_mtime_ns)
    except OSError as error:
        return Contents(notes=(f"cannot be unpacked: {error.strerror or error}. Unpack it beside the others.",))


@lru_cache(maxsize=16)
def _contents(path: str, size: int, mtime_ns: int) -> Contents:
    with archive_cache.Place(path, size, mtime_ns) as place:
        return place.kept() or place.keep(read_archive(on_disk(path), place.spool))


@dataclass(frozen=True)
class _Found:
    """A member, and the file that has its bytes."""

    member: Member
    data: str


def _find(path: str) -> _Found | None:
    """The member of an archive that a path names; None where it names none."""
    if is_url(path):
        return None
    for archive, name in _splits(path):
        try:
            is_file = stat.S_ISREG(os.stat(on_disk(archive)).st_mode)
        except (OSError, ValueError):
            continue
        if is_file:
            held = contents(archive)
            member = held.by_name.get(name)
            return _Found(member, held.data or on_disk(archive)) if member else None
    return None


def _splits(path: str) -> Iterator[tuple[str, str]]:
    """Every way to take a path for one of an archive and one in it."""
    at = path.find("/", 1)
    while at > 0:
        if is_archive(posixpath.basename(path[:at])):
            yield path[:at], path[at + 1 :]
        at = path.find("/", at + 1)


def stat_member(path: str) -> tuple[int, float] | None:
    """Bytes and modification time (seconds since 1970) of a file in an archive; None where there is none."""
    found = _find(path)
    return (found.member.bytes, found.member.mtime) if found else None


def open_member(path: str) -> IO[bytes]:
    """A file in an archive, from its begin on. Raises OSError."""
    found = _find(path)
    if found and not os.path.exists(found.data):  # another process has made room
        _contents.cache_clear()
        found = _find(path)
    if found is None:
        raise FileNotFoundError(errno.ENOENT, "No such file in the archive", path)
    if found.member.offset is None:
        raise OSError("it is not unpacked: unpack its archive and give the file")
    raw = open(found.data, "rb", buffering=0)  # noqa: SIM115 - it stays open behind this call: _Section closes it with itself
    return cast(IO[bytes], _Section(raw, found.member.offset, found.member.bytes))


class _Section(io.RawIOBase):
    """A stretch of a file, as a file of its own."""

    def __init__(self, raw: io.FileIO, begin: int, size: int) -> None:
        self._raw, self._begin, self._size = raw, begin, size
        raw.seek(begin)

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Bytes from the begin of the stretch."""
        return self._raw.tell() - self._begin

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """As any file."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self._size}[whence]
        self._raw.seek(self._begin + max(0, start + offset))
        return self.tell()

    def read(self, size: int = -1) -> bytes:
        """As any file."""
        left = max(0, self._size - self.tell())
        return self._raw.read(left if size < 0 else min(size, left)) or b""

    def close(self) -> None:
        """As any file."""
        self._raw.close()
        super().close()
