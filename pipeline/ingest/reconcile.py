"""What the files of a batch are to those in the lake: grown, overwritten, shortened, unreadable, moved, or copies.

Nothing that was read well is lost, and nothing counts twice. A file that begins with what was read of it has grown: its
rows are replaced. Other rows stay: those of content that was overwritten under another name (`PATH#1`), those of files
that are gone, cannot be read or became shorter under their own. The same content is the same run wherever it lies: when
the file that was read is gone, the rows move to the new name with their run ids; as long as it is there, the other file
is a duplicate and has no rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import polars as pl

from sweepscope.pipeline.derive.run_id import run_id
from sweepscope.pipeline.ingest.batch import Tables
from sweepscope.pipeline.ingest.batch_state import HAS_ROWS, RECOGNISED, RUN_COLUMNS, BatchState
from sweepscope.pipeline.ingest.copies import recognise
from sweepscope.pipeline.ingest.earlier_readings import compare_with_earlier_readings, keep_files_that_are_gone
from sweepscope.pipeline.ingest.rotated_logs import compare_rotated_logs, whole_runs
from sweepscope.pipeline.ingest.same_content import alike
from sweepscope.schemas.registry import TABLES

if TYPE_CHECKING:
    from sweepscope.pipeline.store.lake import (
        Lake,  # its libraries take 16 MB, which processes that only read logs save
    )


CONTENT = ("path", "content_bytes", "content_digest")
"""Columns of the ledger on what was read of a file."""


def with_known_content(found: pl.DataFrame, ledger: pl.DataFrame) -> pl.DataFrame:
    """`found` with `known_bytes` and `known_digest`: content that the ledger (CONTENT columns) has of the files."""
    known = ledger.select("path", known_bytes="content_bytes", known_digest="content_digest")
    return found.join(known, on="path", how="left", maintain_order="left")


def reconcile(tables: Tables, lake: Lake) -> tuple[Tables, list[str]]:
    """Tables to commit, and further paths whose rows the commit removes (`Lake.commit`).

    Args:
        tables: validated rows of whole units.
        lake: before the commit.
    """
    files = tables["files"].filter(pl.col("kind") != "published")
    ledger = lake.read("files").filter(pl.col("kind") != "published")
    of_batch = pl.concat([ledger.join(files, on=key, how="semi") for key in ("unit", "path")]).unique("path")
    of_batch = _with_other_parts(of_batch, ledger)
    recognised = ledger.filter(pl.col("status").is_in(HAS_ROWS), pl.col("kind").is_in(RECOGNISED))
    similar = _with_other_parts(alike(recognised.filter(pl.col("status") != "rotated"), files), recognised)
    paths = pl.concat([of_batch["path"], similar["path"]]).unique()
    runs = lake.read("runs", RUN_COLUMNS, pl.col("source_path").is_in(paths.implode()))
    batch = BatchState(
        new={str(row["path"]): row for row in files.iter_rows(named=True)},
        known={str(row["path"]): row for row in of_batch.iter_rows(named=True)},
        runs=runs,
        new_runs=tables["runs"].select(RUN_COLUMNS),
        steps=tables["steps"],
        lake=lake,
        ids=set(ledger["id_path"].drop_nulls()),
        paths=set(ledger["path"]),
    )
    compare_rotated_logs(batch, similar)
    compare_with_earlier_readings(batch)
    recognise(batch, similar, ledger.join(similar, on="unit", how="semi"))
    keep_files_that_are_gone(batch)
    return _applied(batch, tables), sorted(batch.forget)


def _with_other_parts(rows: pl.DataFrame, ledger: pl.DataFrame) -> pl.DataFrame:
    """`rows`, and those rows of `ledger` that are of the same rotated logs."""
    other_parts = ledger.join(rows.drop_nulls("part_of"), on="part_of", how="semi")
    return pl.concat([rows, other_parts]).unique("path", maintain_order=True)


def _applied(batch: BatchState, tables: Tables) -> Tables:
    """The tables without rows that are not recorded, and with the run ids of files that had others before."""
    gone = batch.new_runs.filter(pl.col("source_path").is_in(list(batch.dropped)))["run_id"]
    ids = dict(batch.run_ids)
    part_of = {path: str(row["part_of"] or path) for path, row in batch.read.items()}
    attempts = Counter(part_of.get(path, path) for path in batch.new_runs["source_path"])
    for path, row in batch.new.items():
        log, is_read = str(row["part_of"] or path), row["status"] == "parsed" and path not in batch.dropped
        if is_read and path not in batch.aligned and (row["id_path"] or log) != log:
            ids |= _ids(batch, path, log, str(row["id_path"]), attempts[log])
    found = {}
    for name, frame in tables.items():
        found[name] = _without(name, frame, batch.dropped, gone, ids)
    found["runs"] = whole_runs(batch, found["runs"], found["steps"])
    bundled = tables["files"].filter(pl.col("kind") == "published")
    rows = pl.DataFrame(list(batch.new.values()), schema=TABLES["files"].polars_schema, orient="row")
    # How a file came to what it holds is known now, and no content of the lake, which has no history.
    return {**found, "files": pl.concat([bundled, rows.with_columns(is_continued=pl.lit(None, pl.Boolean))])}


def _ids(batch: BatchState, path: str, log: str, id_path: str, count: int) -> dict[str, str]:
    """Run ids of a file of a log with so many attempts, made from its path, to those made from `id_path`."""
    rows = batch.new_runs.filter(source_path=path)
    ids = {run_id(log, str(n)): run_id(id_path, str(n)) for n in range(1, count + 1)}
    if set(rows["run_id"]) <= ids.keys():
        return {old: ids[old] for old in rows["run_id"]}
    keys = [(old, f"line {line}") for old, line in rows.select("run_id", "line_no").iter_rows()]
    return {old: run_id(id_path, key) for old, key in keys}


def _without(
    name: str, frame: pl.DataFrame, paths: Collection[str], runs: pl.Series, ids: Mapping[str, str]
) -> pl.DataFrame:
    """Rows of a table that are neither of the given paths nor of the given runs, with other run ids."""
    if name in TABLES and TABLES[name].layer == "lake" and paths:
        path = pl.col(TABLES[name].replaced_by)
        frame = frame.filter(~path.is_in(list(paths)))
    if "run_id" in frame.columns:
        if not runs.is_empty():  # a filter copies all columns
            frame = frame.filter(~pl.col("run_id").is_in(runs.implode()).fill_null(value=False))
        names = [name for name in ("run_id", "duplicate_of") if name in frame.columns]
        frame = frame.with_columns(pl.col(names).replace(ids)) if ids else frame
    return frame
