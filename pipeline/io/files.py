"""Files below a path or an fsspec URL."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from stat import S_ISDIR, S_ISREG

from sweepscope.pipeline.errors import InputError, NothingYetError, UsageError
from sweepscope.pipeline.io import remote
from sweepscope.pipeline.io.archives import stat_member
from sweepscope.pipeline.io.file_names import on_disk, printable
from sweepscope.pipeline.io.hidden_names import is_hidden
from sweepscope.pipeline.io.remote import is_url
from sweepscope.pipeline.text.secrets import hide


@dataclass(frozen=True)
class Entry:
    """One file, or a directory that cannot be listed.

    Attributes:
        path: absolute path as `file_names.printable` writes it, or URL.
        bytes: size.
        mtime: modification time in seconds since 1970.
        is_file: false for an unreadable directory, which represents the files in it.
        linked_path: the real path where `path` leads to the file through a link.
    """

    path: str
    bytes: int
    mtime: float
    is_file: bool = True
    linked_path: str | None = None

    @property
    def own_path(self) -> str:
        """The path of the file without links."""
        return self.linked_path or self.path


def canonical(path: str) -> str:
    """`path` in its one canonical form: absolute, `..` and links resolved; a URL as it is.

    Two names would make two runs of one log.

    >>> canonical("file:///proc/../proc/version"), canonical("s3://bucket/runs")
    ('/proc/version', 's3://bucket/runs')
    """
    local = path.removeprefix("file://")
    return local if is_url(local) else os.path.realpath(local)


def list_files(root: str) -> Iterator[Entry]:
    """Every regular file at or below `root`; hidden ones are left out, but for those of `hidden_names`.

    A `root` that is a link is listed under the name of its target. Links below are followed where they lead out of
    `root`; each file is listed once, and files below `root` under their real path. A file that vanishes during the
    listing is left out; a directory that cannot be listed is an entry itself.

    Raises:
        NothingYetError: `root` does not exist.
        UsageError: it is empty, or is a URL with a credential.
        InputError: it exists and cannot be listed.
    """
    if not root:
        raise UsageError("A path is empty: is a variable unset? Give a run directory, a sweep directory or a log file.")
    path = canonical(root)
    if is_url(path):
        if (shown := hide(path)) != path:
            raise UsageError(
                f"The URL {shown} has a credential in it, and paths are kept with every row. Give it by the "
                "environment, or in fsspec's configuration."
            )
        yield from (Entry(*found) for found in remote.listed(path))
        return
    try:
        stat = os.stat(path)
    except FileNotFoundError as error:
        raise NothingYetError(
            f"No such file or directory: {root}. Give a run directory, a sweep directory or a log file."
        ) from error
    except OSError as error:
        raise InputError(f"Cannot read {root}: {error.strerror}. Make it readable, or run as its owner.") from error
    if S_ISDIR(stat.st_mode):
        yield from _list_directory(path)
    elif S_ISREG(stat.st_mode):
        yield Entry(printable(path), stat.st_size, stat.st_mtime)
    else:
        raise UsageError(f"{root} is neither a file nor a directory. Save what comes out of it, and give that file.")


def _list_directory(root: str) -> Iterator[Entry]:
    seen: set[str] = set()  # real paths of directories, and of files that links lead to
    todo = [(root, root)]
    while todo:
        directory, real = todo.pop()
        if real in seen:
            continue
        seen.add(real)
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
                # Joined names only below a link: elsewhere the listed path is the real one.
                plain = child.path if real == directory else os.path.join(real, child.name)
                child_real = os.path.realpath(child.path) if is_link else plain
                if is_link and (_is_listed_anyway(child_real, root) or child_real in seen):
                    continue
                if child.is_dir():
                    below.append((child.path, child_real))
                elif child.is_file():
                    stat = child.stat()
                    linked = None if child_real == child.path else printable(child_real)
                    if linked is not None:
                        if linked in seen:
                            continue
                        seen.add(linked)
                    yield Entry(printable(child.path), stat.st_size, stat.st_mtime, linked_path=linked)
            except FileNotFoundError:
                continue
            except OSError:
                yield _closed(child.path)
        todo += reversed(below)  # so that of two links the first by name is followed


def _closed(path: str) -> Entry:
    """Entry of an unreadable directory; reading it fails, and the ledger records that failure."""
    return Entry(printable(path), 0, 0.0, is_file=False)


def _children(directory: str) -> list[os.DirEntry[str]]:
    """Children of a directory apart from hidden names, by name; none if it has just vanished. Raises OSError."""
    try:
        with os.scandir(directory) as found:
            return sorted((child for child in found if not is_hidden(child.name)), key=lambda child: child.name)
    except FileNotFoundError:
        return []


def _is_listed_anyway(real: str, root: str) -> bool:
    """Whether the target of a link is below `root`, or above it, which would be a loop."""
    if real == root or root.startswith(real.rstrip(os.sep) + os.sep):
        return True
    below = real.removeprefix(root.rstrip(os.sep) + os.sep)
    return below != real and not any(map(is_hidden, below.split(os.sep)))


def marker_above(marker: str) -> Callable[[str], bool]:
    """Function that returns whether a directory or one above it has a file of that name.

    Directories above are examined once, however many directories are asked about, and before those below. Behind a URL
    that has just been listed, s3fs and gcsfs answer from the listing; where a directory above it may not be read, there
    is no such file in it.
    """

    @cache
    def is_marked(directory: str) -> bool:
        parent = os.path.dirname(directory)
        if parent != directory and is_url(parent) == is_url(directory) and is_marked(parent):
            return True
        if is_url(directory):
            return remote.exists(f"{directory}/{marker}", if_unknown=False)
        return os.path.exists(os.path.join(on_disk(directory), marker))

    return is_marked


def exists(path: str) -> bool:
    """Whether a listed file is still there; true also where that cannot be found out."""
    if is_url(path):
        return remote.exists(path)
    try:
        os.stat(on_disk(path))
    except NotADirectoryError:
        return stat_member(path) is not None
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def modified_at(path: str) -> float | None:
    """Modification time of a file in seconds since 1970; None where there is no such file, or none that can be seen."""
    if is_url(path):
        return remote.modified_at(path)
    try:
        found = size_and_time(path)
    except (OSError, ValueError):
        return None
    return found[1] if found else None


def size_and_time(path: str) -> tuple[int, float] | None:
    """Size in bytes and modification time (seconds since 1970) of a local file; None for what is no regular file.

    Raises:
        OSError: nothing is there, or it may not be looked at.
        ValueError: the path has a character that none may have.
    """
    try:
        found = os.stat(on_disk(path))
    except NotADirectoryError:
        if member := stat_member(path):
            return member
        raise
    return (found.st_size, found.st_mtime) if stat.S_ISREG(found.st_mode) else None
