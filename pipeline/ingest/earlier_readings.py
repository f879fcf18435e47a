"""Files that the ledger knows, by what it has of them: grown, overwritten, shortened, unreadable or gone."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.ingest.batch_state import HAS_ROWS, MEASURED, BatchState
from sweepscope.pipeline.ingest.same_content import Row
from sweepscope.pipeline.io.files import exists
from sweepscope.schemas.registry import TABLES

_LOGS = ("log", "nccl")
"""Kinds that are written from front to back, so that other content at the beginning is another run."""


def compare_with_earlier_readings(batch: BatchState) -> None:
    """Judge files that the ledger knows by what it has of them."""
    frozen: dict[str, str] = {}
    for path, row in list(batch.new.items()):
        old = batch.known.get(path)
        if path in batch.aligned or row["status"] == "rotated":
            continue
        if old is None or old["status"] not in HAS_ROWS or not old["rows_parsed"]:
            batch.fresh.add(path)
        elif row["status"] == "rejected":
            if row["parser_version"] is None:  # it could not be opened or read: try again
                frozen[str(old["unit"])] = path
            batch.keep(path, "failed", error=row["error"], parser_version=row["parser_version"])
        elif old["kind"] in _LOGS and row["is_continued"] is False and _is_beginning(batch, row, old):
            batch.keep(path, "shrunk", bytes=row["bytes"], mtime=row["mtime"], is_continued=False)
        elif old["kind"] in _LOGS and row["is_continued"] is False and not _is_edited(batch, path):
            _overwrite(batch, path, row, old)
        else:
            batch.new[path] = {**row, "id_path": old["id_path"], "former_path": old["former_path"]}
    for path, row in list(batch.new.items()):
        if (cause := frozen.get(str(row["unit"]))) and path not in batch.dropped:
            batch.fresh.discard(path)
            if path in batch.known:
                batch.keep(path, "unread", error=f"{cause} of the same run could not be read")
            else:
                batch.dropped.add(path)
                del batch.new[path]


def keep_files_that_are_gone(batch: BatchState) -> None:
    """Keep rows of files of the same units that are no longer there."""
    in_batch = {str(row["unit"]) for row in batch.read.values()}
    for path, row in batch.known.items():
        if row["unit"] not in in_batch:
            continue
        has_rows = row["kind"] in MEASURED and row["status"] in HAS_ROWS and bool(row["rows_parsed"])
        is_known = path in batch.new or path in batch.forget or path in batch.aligned
        if has_rows and not is_known and not exists(path):
            batch.new[path] = {**row, "status": "gone", "error": None}
    # Without the log that it stood beside, a file that only had evidence would become a run.
    units = {str(row["unit"]) for row in batch.new.values() if row["status"] in ("gone", "failed", "shrunk")}
    had_runs = set(batch.runs["source_path"])
    for path in batch.new_runs["source_path"].unique():
        beside = batch.new.get(path, {})
        if beside.get("unit") in units and path in batch.known and path not in had_runs | batch.dropped:
            settled = {name: beside[name] for name in ("bytes", "mtime", "sha256", "parser_version")}
            batch.keep(path, "unread", error="it belongs to a log that is gone or could not be read", **settled)


def _is_beginning(batch: BatchState, row: Row, old: Row) -> bool:
    """Whether a file has become a part of what was read of it: all of its steps were read then."""
    size, known_size = row["content_bytes"], old["content_bytes"]
    if not (isinstance(size, int) and isinstance(known_size, int) and size < known_size):
        return False
    if not str(old["content_head"] or "").startswith(str(row["content_head"] or "")):
        return False
    if size == 0 or row["parser_version"] != old["parser_version"]:
        return True
    return batch.has_steps_of(str(row["path"]), str(row["path"]))


def _is_edited(batch: BatchState, path: str) -> bool:
    """Whether most of the steps that were read of a file are still in it: it is no other run."""
    columns = [name for name in TABLES["steps"].column_names if name not in {"run_id", "source_path", "line_no"}]
    read = batch.lake.read("steps", columns, pl.col("source_path") == path)
    again = read.join(batch.steps.filter(source_path=path), on=columns, how="semi", nulls_equal=True)
    return read.height > 0 and again.height >= read.height / 2


def _overwrite(batch: BatchState, path: str, row: Row, old: Row) -> None:
    """Keep what the file held under a name of its own; its new content gets run ids of its own."""
    name = batch.unused(path)
    batch.kept[path] = name
    former = {"path": name, "unit": name, "status": "overwritten", "former_path": path, "part_of": None, "error": None}
    batch.new[name] = {**old, **former, "id_path": old["id_path"] or old["part_of"] or path}
    batch.new[path] = {**row, "id_path": name}
    batch.fresh.add(path)
