"""Files that hold what another file holds, or held before it went: copies, and moved ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from sweepscope.pipeline.ingest.batch_state import MEASURED, RECOGNISED, BatchState
from sweepscope.pipeline.ingest.same_content import Contents, Held, Row, held
from sweepscope.pipeline.io.archives import is_in_archive
from sweepscope.pipeline.io.files import exists


def recognise(batch: BatchState, similar: pl.DataFrame, beside: pl.DataFrame) -> None:
    """Find files of the batch that hold what another file holds, or held before it went.

    Args:
        similar: ledger rows of the lake that may be those.
        beside: ledger rows of the lake of the same units.
    """
    contents = Contents(changed=set(batch.kept), has_steps_of=batch.has_steps_of)
    grown = {path for path, row in batch.new.items() if row["status"] == "parsed" and path not in batch.fresh}
    grown |= batch.aligned
    known = [row for row in similar.iter_rows(named=True) if row["path"] not in grown]
    paths = pl.Series([row["path"] for row in known], dtype=pl.String)
    steps = batch.lake.read("steps", ["source_path"], pl.col("source_path").is_in(paths.implode()))
    for one in held(known, batch.runs, steps):
        contents.add(one)
    # Of a file that became shorter the ledger keeps what it held; a copy may be of what it holds now.
    shrunk = {path for path, row in batch.new.items() if row["status"] == "shrunk"}
    now = [batch.read[path] for path in shrunk] + [batch.new[path] for path in grown if path in batch.new]
    for one in held(now, batch.new_runs, batch.steps):
        if one.names_run:  # a rank's log has no rows once that of a lower rank is there, which holds the same
            contents.add(one, is_new=True)
    units = _Units([*batch.new.values(), *beside.iter_rows(named=True)])
    rows = (batch.new[path] for path in batch.fresh)
    fresh = (row for row in rows if row["status"] == "parsed" and row["kind"] in RECOGNISED)
    logs: dict[str, list[Held]] = {}
    for one in held(fresh, batch.new_runs, batch.steps):
        if one.names_run:  # other logs go with the unit that they belong to
            logs.setdefault(one.log, []).append(one)
    order = {
        log: (-sum(part.size for part in parts), -len(units.configs(parts[0].unit))) for log, parts in logs.items()
    }
    # Of a folder and an archive of it, the folder's files have the rows.
    for log in sorted(logs, key=lambda log: (order[log], is_in_archive(log), log)):
        _recognise(batch, logs[log], contents, units)
        for part in logs[log]:
            if part.path not in batch.dropped:
                contents.add(part, is_new=True)
    _copy_files_beside_copies(batch)
    ids = {*batch.ids, *(str(row["id_path"]) for row in batch.new.values() if row["id_path"])}
    names: dict[str, str] = {}
    for path in sorted(batch.fresh - batch.dropped):
        row = batch.new[path]
        log = str(row["part_of"] or path)
        if log in ids and not row["id_path"]:
            name = names[log] = names.get(log) or batch.unused(log)
            batch.new[path] = {**row, "id_path": name}


def _recognise(batch: BatchState, new: Sequence[Held], contents: Contents, units: _Units) -> None:
    """Judge a log, by all of its parts: a copy has nothing that the other lacks, and takes over what has no more."""
    equal = {part: contents.equal(part) for part in new}
    there = {
        part: [*(known for known in equal[part] if contents.is_there(known)), *contents.continuations(part)]
        for part in new
    }
    for log in dict.fromkeys(known.log for part in new for known in there[part]):
        holders = [next((known for known in there[part] if known.log == log), None) for part in new]
        whole = [known for known in holders if known is not None]
        if len(whole) < len(new):
            continue
        ours, theirs = units.configs(new[0].unit), units.configs(whole[0].unit)
        if ours <= theirs:
            for part, known in zip(new, whole, strict=True):
                batch.copy(part.path, known.path)
            return
        if not theirs <= ours:
            return
    before = {part: [*equal[part], *contents.beginnings(part)] for part in new}
    for log in dict.fromkeys(known.log for part in new for known in before[part]):
        known_parts = contents.parts(log)
        found = [(part, known) for known in known_parts for part in new if known in before[part]]
        pairs = list({known: (part, known) for part, known in reversed(found)}.values())[::-1]
        if len(pairs) == len(known_parts):
            for part, known in pairs:
                _take_over(batch, part, known, units)
            first = batch.new[pairs[0][0].path]["id_path"]
            for part in new:
                batch.new[part.path] = {**batch.new[part.path], "id_path": first}
    # What is left of a log whose other parts are gone, under another name.
    if not any(part.path in batch.moved for part in new) and all(equal.values()):
        for part in new:
            batch.copy(part.path, equal[part][0].path)


def _take_over(batch: BatchState, new: Held, known: Held, units: _Units) -> None:
    """Give a file the run ids of the one that held its content before, whose rows go."""
    first = batch.moved.setdefault(new.path, known)
    batch.rotated.setdefault(new.path, set()).add(known.path)
    batch.new[new.path] = {**batch.new[new.path], "id_path": first.id_path, "former_path": first.path}
    if known.path in batch.kept:
        del batch.new[batch.kept.pop(known.path)]
    elif batch.new.get(known.path, {}).get("status") == "shrunk":
        batch.new[known.path] = {**batch.read[known.path], "id_path": batch.unused(known.path)}
        batch.dropped.discard(known.path)
    else:
        batch.forget.add(known.path)
        if batch.new.pop(known.path, None):
            batch.dropped.add(known.path)
    contents = {row["content_digest"] for row in units.files(new.unit)}
    for row in units.files(known.unit):
        is_same = row["kind"] not in MEASURED or row["content_digest"] in contents
        if is_same and row["path"] not in batch.new and not exists(str(row["path"])):
            batch.forget.add(str(row["path"]))


def _copy_files_beside_copies(batch: BatchState) -> None:
    """Leave out files that belong to logs which are all copies."""
    unit_of = {path: str(row["unit"]) for path, row in batch.new.items()}
    with_runs = {path: unit_of[path] for path in batch.new_runs["source_path"] if path in unit_of}
    counting = {unit for path, unit in with_runs.items() if path not in batch.dropped}
    copies = {unit: batch.new[path]["former_path"] for path, unit in with_runs.items() if path in batch.dropped}
    for path in sorted(batch.fresh - batch.dropped):
        unit, row = unit_of[path], batch.new[path]
        is_beside = row["kind"] == "log" or row["kind"] not in RECOGNISED
        if unit in copies.keys() - counting and is_beside and row["status"] == "parsed":
            batch.copy(path, str(copies[unit]))


class _Units:
    """Files by their unit."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._files: dict[str, dict[str, Row]] = {}
        for row in rows:
            self._files.setdefault(str(row["unit"]), {}).setdefault(str(row["path"]), row)

    def files(self, unit: str) -> list[Row]:
        """Ledger rows of a unit."""
        return list(self._files.get(unit, {}).values())

    def configs(self, unit: str) -> set[object]:
        """Hashes of the configurations of a unit."""
        return {row["sha256"] for row in self.files(unit) if row["kind"] == "config"}
