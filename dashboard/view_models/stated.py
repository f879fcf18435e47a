"""Folders whose runs lack the same, as one place to state it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from sweepscope.dashboard.queries.query import Row


def with_shared_folders(rows: Sequence[Row]) -> list[Row]:
    """`rows` of `queries.stated.gaps`, before them a row for each folder that holds several of them.

    What is stated of a folder holds for all below it, so that a sweep in one folder per node count takes one statement.

    >>> found = with_shared_folders([{"folder": f"/s/{name}", "runs": 8, "no_gbs": 2} for name in "ab"])
    >>> [(row["folder"], row["runs"], row["no_gbs"]) for row in found]
    [('/s', 16, 4), ('/s/a', 8, 2), ('/s/b', 8, 2)]
    >>> found = with_shared_folders([{"folder": folder, "runs": 8} for folder in ("/s/a", "/s/b", "/s")])
    >>> [(row["folder"], row["runs"]) for row in found]
    [('/s', 24), ('/s/a', 8), ('/s/b', 8)]
    """
    inside: dict[str, list[Row]] = {}
    for row in rows:
        inside.setdefault(str(PurePosixPath(row["folder"]).parent), []).append(row)
    own = {str(row["folder"]): [row] for row in rows}
    shared = {
        parent: [*own.get(parent, []), *below] for parent, below in inside.items() if len(below) > 1 and parent != "/"
    }
    summed = [
        {name: parent if name == "folder" else sum(row[name] for row in held) for name in held[0]}
        for parent, held in shared.items()
    ]
    return [*summed, *(row for row in rows if str(row["folder"]) not in shared)]
