"""Words around notes, tags and named views."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from sweepscope.dashboard.format.numbers import count, moment
from sweepscope.dashboard.queries.query import Row
from sweepscope.schemas.tables.notes import CELL

_ABOUT = {"run": "", "cell": "on its cell", "day": "on its day"}
NOTHING_WRITTEN = "Write a note, or tags with commas between them."


def qualifier(rows: Sequence[Row]) -> str:
    """How many notes and tags there are."""
    tags = sum(row["note_kind"] == "tag" for row in rows)
    notes = len(rows) - tags
    parts = [count(notes, "note")] if notes else []
    return ", ".join([*parts, *([count(tags, "tag")] if tags else [])])


def aside(row: Row, *, is_cell: bool) -> str:
    """What a note is about, where that is not what the page shows, who wrote it and when."""
    parts = ["" if is_cell else _ABOUT[row["note_about"]], row["author"] or "", moment(row["written_at"])]
    return " · ".join(part for part in parts if part)


def by_command(target: Mapping[str, object], home: str) -> str:
    """The commands that add a note and a tag, where the page may not."""
    what = target.get("run_id") or ",".join(f"{name}={target[name]}" for name in CELL if target.get(name) is not None)
    name = shlex.quote(str(what))
    return f"sweepscope note {name} 'TEXT'{home}\nsweepscope tag {name} TAG{home}"
