"""Notes, tags and named views of a home, for a page: kept and removed as the command line does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sweepscope.pipeline.store import notes
from sweepscope.pipeline.store.home import Home


def keep(home: Path, target: Mapping[str, Any], *, note: str = "", tags: Sequence[str] = ()) -> int:
    """Keep a remark and tags on a run or a cell; returns how many of them are new.

    Raises:
        UsageError: a text is too long, or no tag.
        StoreError: the home cannot be written to.
    """
    rows = [notes.row("tag", target, tag) for tag in tags if tag.strip()]
    rows += [notes.row("note", target, note)] if note.strip() else []
    return len(notes.add(Home.resolve(str(home)), rows)) if rows else 0


def keep_view(home: Path, name: str, address: str) -> None:
    """Keep a page with its query under a name, in place of an earlier view of that name. Raises as `keep` does."""
    notes.add(Home.resolve(str(home)), [notes.row("view", {}, name, address=address)])


def remove(home: Path, note_id: str) -> None:
    """Remove a note, tag or view; nothing happens where it is gone already. Raises StoreError."""
    notes.remove(Home.resolve(str(home)), [note_id])
