"""What can be computed again at any time, kept from command to command in the user's cache folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

KEPT = 2
"""Versions of one thing: two checkouts that are used in turn do not displace each other's."""


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/sweepscope`, else `~/.cache/sweepscope`; it may not be there."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    # Others than absolute ones are to be ignored, says the XDG specification.
    return (Path(given) if os.path.isabs(given) else Path(os.path.expanduser("~/.cache"))) / "sweepscope"


def remove_older(pattern: str) -> None:
    """Remove files and folders of that name, but for the KEPT that were written last. Raises OSError."""
    by_age = sorted(cache_folder().glob(pattern), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in by_age[KEPT:]:
        if old.is_dir():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.unlink(missing_ok=True)
