"""Remove files from the lake and the ledger, so that the next ingest of their paths reads them anew."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.checkpoints import Records
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from sweepscope.schemas.registry import TABLES


@dataclass(frozen=True)
class Forgotten:
    """What is, or would be, removed: paths, rows by table, runs, and the path that was asked for."""

    path: str
    files: tuple[str, ...]
    runs: int
    rows: dict[str, int]

    def as_dict(self) -> dict[str, Any]:
        """For JSON output."""
        return {"path": self.path, "files": list(self.files), "runs": self.runs, "rows": self.rows}


def forgettable(home: Home, path: str) -> Forgotten:
    """What `forget` of a file or folder removes.

    Content that was overwritten goes with its file. So do copies of it, which have no rows: they are read next time.

    Args:
        home: whose lake it is.
        path: as the ledger has it.

    Raises:
        StoreError: the lake has no such file, or is damaged.
    """
    lake = Lake(home)
    files = lake.read("files", ["path", "status", "former_path"], pl.col("kind") != "published")
    name = pl.col("path")
    is_below = (name == path) | name.str.starts_with(f"{path.rstrip('/')}/")
    of_below = pl.col("former_path").is_in(files.filter(is_below)["path"].implode())
    before = of_below & pl.col("status").is_in(["overwritten", "rotated"])
    paths = files.filter(is_below | before)["path"]
    if paths.is_empty():
        raise StoreError(f"The store has nothing of {path}. `select path from files` lists what it has.")
    copies = files.filter((pl.col("status") == "duplicate") & pl.col("former_path").is_in(paths.implode()))["path"]
    found = pl.concat([paths, copies]).unique().sort()
    runs = lake.read("runs", ["run_id"], pl.col("source_path").is_in(found.implode()))["run_id"]
    rows = {}
    for table in TABLES.values():
        if table.layer == "lake":
            is_theirs = pl.col(table.replaced_by).is_in(found.implode())
            if "run_id" in table.column_names:
                is_theirs |= pl.col("run_id").is_in(runs.implode())
            rows[table.name] = lake.read(table.name, [table.replaced_by], is_theirs).height
    return Forgotten(path, tuple(found), runs.len(), {name: count for name, count in rows.items() if count})


def forget(home: Home, what: Forgotten) -> int:
    """Remove it and publish; returns the number of the release. Raises StoreError."""
    release = Lake(home).commit({}, forget=what.files)
    records = Records(home.records, datetime.now(UTC).replace(tzinfo=None))
    for path in what.files:
        records.forget(path)
    publish(home)
    return release.number
