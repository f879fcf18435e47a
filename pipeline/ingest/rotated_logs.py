"""Rotated logs of a batch: their parts by what the ledger has of all parts, and their runs with what lost parts had."""

from __future__ import annotations

import polars as pl

from sweepscope.pipeline.ingest.batch_state import HAS_ROWS, BatchState
from sweepscope.pipeline.ingest.rotated_parts import Alignment, align, run_ids, with_lost_parts
from sweepscope.pipeline.ingest.same_content import Row
from sweepscope.pipeline.io.rotated import rotation


def compare_rotated_logs(batch: BatchState, similar: pl.DataFrame) -> None:
    """Judge the parts of rotated logs by what the ledger has of all parts.

    Args:
        similar: ledger rows of the lake with similar content.
    """
    were_parts = {str(row["part_of"]) for row in batch.known.values() if row["part_of"]}
    logs: dict[str, list[Row]] = {}
    for path, row in batch.new.items():
        was_part_of = batch.known.get(path, {}).get("part_of")
        if log := row["part_of"] or was_part_of or (path if path in were_parts else None):
            logs.setdefault(str(log), []).append(row)
    overwritten = similar.filter(pl.col("status") == "overwritten").rows(named=True)
    for log, rows in logs.items():
        known = [row for row in batch.known.values() if log in {row["part_of"], row["path"]}]
        known = [row for row in known if row["status"] in HAS_ROWS and row["rows_parsed"]]
        before = [row for row in overwritten if row["former_path"] == log]
        if known and all(row["status"] == "parsed" for row in rows):
            rows.sort(key=lambda row: rotation(str(row["path"]).rpartition("/")[2])[1])
            _align(batch, log, rows, align(rows, known), align(rows, before).found)


def _align(batch: BatchState, log: str, rows: list[Row], parts: Alignment, before: list[tuple[Row, str]]) -> None:
    found = [*before, *parts.found]
    if not found:
        return  # each part is judged by itself
    paths = [str(row["path"]) for row in rows]
    id_path = str(found[0][0]["id_path"] or log)
    new = batch.new_runs.select("run_id", "source_path", "line_no").filter(pl.col("source_path").is_in(paths))
    batch.run_ids |= run_ids(id_path, paths, new, found, batch.lake)
    known = {str(row["path"]) for row, _ in found}
    batch.rotated |= dict.fromkeys(paths, known)
    for row in rows:
        batch.new[str(row["path"])] = {
            **row,
            "id_path": None if id_path == (row["part_of"] or row["path"]) else id_path,
        }
    batch.aligned |= {*paths, *known, *(str(row["path"]) for row in parts.lost)}
    batch.forget |= {str(row["path"]) for row, _ in before}
    for row in parts.lost:
        name = batch.unused(str(row["path"]))
        former = {"path": name, "unit": name, "status": "rotated", "former_path": row["path"], "part_of": None}
        batch.new[name] = {**row, **former, "id_path": id_path, "error": None}


def whole_runs(batch: BatchState, runs: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
    """The batch's runs; those of rotated logs with what is known from parts that are no longer there."""
    if not batch.rotated:
        return runs
    is_rotated = pl.col("source_path").is_in(list(batch.rotated))
    of_logs = runs.filter(is_rotated)
    is_same = pl.col("run_id").is_in(of_logs["run_id"].implode())
    known = batch.lake.read("runs", None, is_same)
    there = sorted(set().union(*batch.rotated.values()))
    lost = batch.lake.read("steps", ["run_id", "step"], is_same & ~pl.col("source_path").is_in(there))
    read = steps.select("run_id", "step")
    return pl.concat([runs.filter(~is_rotated), with_lost_parts(of_logs, known, lost, read)])
