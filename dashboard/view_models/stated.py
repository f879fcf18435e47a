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
    """
    inside: dict[str, list[Row]] = {}
    for row in rows:
        inside.setdefault(str(PurePosixPath(row["folder"]).parent), []).append(row)
    shared = [
        {name: parent if name == "folder" else sum(row[name] for row in below) for name in below[0]}
        for parent, below in inside.items()
        if len(below) > 1 and parent != "/"
    ]
    return [*shared, *rows]
