"""What archives hold, kept in the user's cache folder: unpacking one takes seconds, and a watcher lists it each minute.

Two files for each archive, under a digest of its path, size and time: the bytes of its members behind each other, and a
list of them. They go after a week without use, those used longest ago also once all of them take more than
`limits.ARCHIVE_CACHE_BYTES`. What is gone is unpacked again when it is next wanted.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import IO

from sweepscope.pipeline.io.archive_formats import Contents, Member
from sweepscope.pipeline.io.user_cache import cache_folder
from sweepscope.schemas import limits

_FOLDER = "archives"
_FORM = 1
"""Of the lists; one more when they change."""
_UNUSED_S = 7 * 86_400


class Place:
    """Where the contents of one archive are kept; a `with` block removes what is left half done."""

    def __init__(self, path: str, size: int, mtime_ns: int) -> None:
        named = f"{_FORM}\n{path}\n{size}\n{mtime_ns}"
        key = hashlib.sha256(os.fsencode(named)).hexdigest()[:32]
        self._data, self._list = (cache_folder() / _FOLDER / f"{key}.{kind}" for kind in ("data", "json"))
        self._temporary: Path | None = None

    def __enter__(self) -> Place:
        return self

    def __exit__(self, _type: type[BaseException] | None, _error: object, _traceback: TracebackType | None) -> None:
        if self._temporary:
            self._temporary.unlink(missing_ok=True)

    def kept(self) -> Contents | None:
        """What is kept of the archive; None where that is nothing, or damaged."""
        try:
            stated = json.loads(self._list.read_bytes())
            members = tuple(Member(**member) for member in stated["members"])
            if self._data.stat().st_size != stated["data"]:
                return None
            os.utime(self._list)
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return Contents(members, tuple(stated["notes"]), str(self._data), is_spooled=True)

    @contextmanager
    def spool(self) -> Iterator[tuple[IO[bytes], int]]:
        """A new file for the bytes of members, and how many it may take: half of what the disk has left, at most.

        Raises OSError where the disk takes no file.
        """
        folder = self._data.parent
        folder.mkdir(parents=True, exist_ok=True)
        number, name = tempfile.mkstemp(prefix=".unpacking-", dir=folder)
        self._temporary = Path(name)
        with os.fdopen(number, "wb") as file:
            yield file, min(limits.ARCHIVE_BYTES, shutil.disk_usage(folder).free // 2)

    def keep(self, found: Contents) -> Contents:
        """Put what was found in its place, and make room. Raises OSError."""
        if not found.is_spooled or self._temporary is None:
            return found  # the headers of a plain tar are as soon read again
        size = self._temporary.stat().st_size
        self._temporary.replace(self._data)
        self._temporary = None
        # The list comes last: without it nothing is taken for kept.
        stated = {"members": [asdict(member) for member in found.members], "notes": found.notes, "data": size}
        listing = self._list.with_suffix(f".{os.getpid()}")
        listing.write_text(json.dumps(stated), encoding="utf-8")
        listing.replace(self._list)
        with suppress(OSError):  # another process removes the same
            _make_room(self._data.parent, besides=self._data.stem)
        return replace(found, data=str(self._data))


def _make_room(folder: Path, *, besides: str) -> None:
    """Remove what is too old or too much, that which was used longest ago first. Raises OSError."""
    by_use = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    total, oldest = 0, time.time() - _UNUSED_S
    for listing in by_use:
        data = listing.with_suffix(".data")
        total += data.stat().st_size if data.exists() else 0
        is_old = listing.stat().st_mtime < oldest
        if listing.stem != besides and (is_old or total > limits.ARCHIVE_CACHE_BYTES):
            listing.unlink(missing_ok=True)
            data.unlink(missing_ok=True)
    for left in folder.glob(".unpacking-*"):  # of processes that were killed
        if left.stat().st_mtime < oldest:
            left.unlink(missing_ok=True)
