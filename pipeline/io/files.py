"""The landing zone: list files and read them in chunks, from local disk or any fsspec URL. Interprets nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from stat import S_ISDIR, S_ISREG

from sweepscope.pipeline.errors import InputError, UsageError
from sweepscope.pipeline.io import remote
from sweepscope.pipeline.io.remote import is_url


@dataclass(frozen=True)
class Entry:
    """One file: absolute path or URL, size in bytes, modification time in seconds since 1970.

    Or a directory that may not be looked into: it stands for the files that we cannot see.

    `linked_path` is the file's own name where `path` leads to it through a link, else None.
    """

    path: str
    bytes: int
    mtime: float
    is_file: bool = True
    linked_path: str | None = None

    @property
    def own_path(self) -> str:
        """The one name that the file has without links."""
        return self.linked_path or self.path


def canonical(path: str) -> str:
    """The one name by which a path is known, however it was spelled: absolute, `..` and links resolved; a URL as it is.

    Two names would make two runs of one log, and a repeat that never ran.

    >>> canonical("file:///proc/../proc/version"), canonical("s3://bucket/runs")
    ('/proc/version', 's3://bucket/runs')
    """
    local = path.removeprefix("file://")
    return local if is_url(local) else os.path.realpath(local)


def list_files(root: str) -> Iterator[Entry]:
    """Every regular file at or below `root`; hidden files and directories are left out.

    A `root` that is a link is listed under the name of what it leads to. Links below are followed where they lead out
    of `root`; each file is listed once, what lies below `root` under its own name. A file that vanishes
    while the listing runs is left out; a directory that cannot be listed is an entry itself.

    Raises:
        UsageError: `root` is empty or does not exist.
        InputError: it exists and cannot be listed.
    """
    if not root:
        raise UsageError("A path is empty: is a variable unset? Give a run directory, a sweep directory or a log file.")
    path = canonical(root)
    if is_url(path):
        yield from (Entry(*found) for found in remote.listed(path))
        return
    try:
        stat = os.stat(path)
    except FileNotFoundError as error:
        raise UsageError(
            f"No such file or directory: {root}. Give a run directory, a sweep directory or a log file."
        ) from error
    except OSError as error:
        raise InputError(f"Cannot read {root}: {error.strerror}. Make it readable, or run as its owner.") from error
    if S_ISDIR(stat.st_mode):
        yield from _list_directory(path)
    elif S_ISREG(stat.st_mode):
        yield Entry(_storable(path), stat.st_size, stat.st_mtime)
    else:
        raise UsageError(f"{root} is neither a file nor a directory. Save what comes out of it, and give that file.")


def _list_directory(root: str) -> Iterator[Entry]:
    met: set[str] = set()  # own names of directories, and of files that links lead to
    todo = [(root, root)]
    while todo:
        directory, own = todo.pop()
        if own in met:
            continue
        met.add(own)
        try:
            children = _children(directory)
        except OSError as error:
            if directory == root:
                raise InputError(
                    f"Cannot list {root}: {error.strerror}. Make it readable, or run as its owner."
                ) from error
            yield _closed(directory)
            continue
        below: list[tuple[str, str]] = []
        for child in children:
            try:
                is_link = child.is_symlink()
                # Joined names only below a link: elsewhere a file's own name is the one it is listed by.
                plain = child.path if own == directory else os.path.join(own, child.name)
                child_own = os.path.realpath(child.path) if is_link else plain
                if is_link and (_is_met_anyway(child_own, root) or child_own in met):
                    continue
                if child.is_dir():
                    below.append((child.path, child_own))
                elif child.is_file():
                    stat = child.stat()
                    linked = None if child_own == child.path else _storable(child_own)
                    if linked is not None:
                        if linked in met:
                            continue
                        met.add(linked)
                    yield Entry(_storable(child.path), stat.st_size, stat.st_mtime, linked_path=linked)
            except FileNotFoundError:
                continue
            except OSError:
                yield _closed(child.path)
        todo += reversed(below)  # so that of two links the first by name is followed


def _closed(path: str) -> Entry:
    """What stands for a place that we may not look into; reading it fails, and the ledger keeps that failure."""
    return Entry(_storable(path), 0, 0.0, is_file=False)


def _children(directory: str) -> list[os.DirEntry[str]]:
    """What is in a directory apart from hidden names, by name; nothing if it has just vanished. Raises OSError."""
    try:
        with os.scandir(directory) as found:
            return sorted((child for child in found if not child.name.startswith(".")), key=lambda child: child.name)
    except FileNotFoundError:
        return []


def _is_met_anyway(own: str, root: str) -> bool:
    """Whether the place that a link leads to is met below `root` without it, or holds `root` and so would be a loop."""
    if own == root or root.startswith(own.rstrip(os.sep) + os.sep):
        return True
    below = own.removeprefix(root.rstrip(os.sep) + os.sep)
    return below != own and not any(part.startswith(".") for part in below.split(os.sep))


def _storable(path: str) -> str:
    """`path`, if it can be stored as text. Raises InputError for a name that is not UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode("utf-8", errors="replace")
        raise InputError(f"Cannot keep the name {shown}: it is not UTF-8. Rename the file.") from error
    return path


def marker_above(marker: str) -> Callable[[str], bool]:
    """Tells of a directory whether it or one above it holds a file of that name (local paths only).

    What is above is looked at once, however many directories are asked about.
    """

    @cache
    def is_marked(directory: str) -> bool:
        parent = os.path.dirname(directory)
        return os.path.exists(os.path.join(directory, marker)) or (parent != directory and is_marked(parent))

    return lambda directory: not is_url(directory) and is_marked(directory)
