"""Who may read a home: its owner alone, or the owner's group as well.

What is read from logs is no less private than the logs. Folders have the mode 0700 and files 0600, whatever the umask;
in a shared home the group has what the umask leaves it (0750 and 0640 with the usual 022), and others have nothing.
The umask of the process is set accordingly, because the libraries that write (delta-rs, DuckDB, SQLite, Dagster) know
no other way; processes that it starts inherit it.
"""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from sweepscope.pipeline.io.event_log import event

VARIABLE = "SWEEPSCOPE_SHARED"
"""Not empty: a home that is written to becomes a shared one. `--shared` sets it."""

MARKER = "shared"
"""File in a shared home, so that later commands keep it shared. Without it, the next write makes the home private."""

_LOG = logging.getLogger(__name__)
_MARKER_TEXT = "The group of this folder may read what is in it. Remove this file to make it private again.\n"
_PRIVATE, _SHARED = 0o077, 0o007


def _current_umask() -> int:
    umask = os.umask(_PRIVATE)
    os.umask(umask)
    return umask


_GIVEN_UMASK = _current_umask()


def restrict(home: Path, own: Collection[Path], *, is_new: bool) -> None:
    """Set the umask for writing to a home, and the modes of what lies in it where it is open to more.

    A warning is logged when a home was open, once: afterwards it is not.

    Args:
        home: the folder, which exists.
        own: what sweepscope writes in it. Where the folder has anything else, only that is changed, not the folder.
        is_new: whether the folder has just been created.

    Raises:
        OSError: the disk does not take it.
    """
    home = home.resolve()
    marker = home / MARKER
    if os.environ.get(VARIABLE) and not marker.exists():
        marker.write_text(_MARKER_TEXT, encoding="utf-8")
    umask = _GIVEN_UMASK | _SHARED if marker.exists() else _PRIVATE
    os.umask(umask)
    entries = set(home.iterdir())
    ours = sorted(entries & {marker, *(home / path.name for path in own)})
    roots = [home, *ours] if len(ours) == len(entries) else ours
    wrong = [root for root in roots if _is_mine(root) and _mode(root) != _wanted(root, umask)]
    open_to = 0
    for path in (path for root in wrong for path in ([root] if root == home else _below(root))):
        with suppress(FileNotFoundError, PermissionError):  # another process removes its files; others' stay theirs
            open_to |= _mode(path) & umask
            path.chmod(_wanted(path, umask))
    if open_to and not is_new:
        event(_LOG, logging.WARNING, "home_was_open", path=home, now=f"{0o777 & ~umask:04o}", remedy=_remedy(umask))


def _remedy(umask: int) -> str:
    if umask == _PRIVATE:
        return "none needed: only you can read it now; --shared lets your group, too"
    return "none needed: only you and your group can read it now"


def _below(root: Path) -> Iterator[Path]:
    """`root` and everything in it, links left out."""
    yield root
    for folder, folders, files in os.walk(root):
        yield from (path for name in (*folders, *files) if not (path := Path(folder, name)).is_symlink())


def _is_mine(path: Path) -> bool:
    return path.lstat().st_uid == os.geteuid() and not path.is_symlink()


def _mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def _wanted(path: Path, umask: int) -> int:
    is_folder = path.is_dir()
    group = path.stat().st_mode & stat.S_ISGID if is_folder else 0  # new files get the folder's group
    return (0o777 if is_folder else 0o666) & ~umask | group
