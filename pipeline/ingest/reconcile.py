"""What the files of a batch are to those in the lake: grown, overwritten, shortened, unreadable, moved, or copies.

Nothing that was read well is lost, and nothing counts twice. A file that begins with what was read of it has grown: its
rows are replaced. Other rows stay: those of content that was overwritten under another name (`PATH#1`), those of files
that are gone, cannot be read or became shorter under their own. The same content is the same run wherever it lies: when
the file that was read is gone, the rows move to the new name with their run ids; as long as it is there, the other file
is a duplicate and has no rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from sweepscope.pipeline.derive.run_id import run_id
from sweepscope.pipeline.ingest.batch import Tables
from sweepscope.pipeline.ingest.rotated_parts import Alignment, align, run_ids, with_lost_parts
from sweepscope.pipeline.ingest.same_content import Contents, Held, Row, alike, held
from sweepscope.pipeline.io.files import exists
from sweepscope.pipeline.io.rotated import rotation
from sweepscope.schemas.registry import TABLES

if TYPE_CHECKING:
    from sweepscope.pipeline.store.lake import (
        Lake,  # its libraries take 16 MB, which processes that only read logs save
    )

_MEASURED = ("log", "nccl", "scheduler", "memory", "flight_record", "bench_csv")
"""Kinds of files whose rows stay when the file goes. Others only describe the runs of their unit."""

_LOGS = ("log", "nccl")
"""Kinds that are written from front to back, so that other content at the beginning is another run."""

_RECOGNISED = ("log", "nccl", "memory", "flight_record", "bench_csv")
"""Kinds whose content counts once, wherever it lies. A table of jobs may lie beside several runs."""

_HAS_ROWS = ("parsed", "overwritten", "rotated", "shrunk", "failed", "unread", "gone")
_RUN_COLUMNS = ("run_id", "source_path", "line_no", "steps_logged", "started_at", "job_id")
_STEP = ("line_no", "step", "loss")


def with_known_content(found: pl.DataFrame, ledger: pl.DataFrame) -> pl.DataFrame:
    """`found` with `known_bytes` and `known_digest`: content that the ledger has of the files."""
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
    similar = alike(ledger.filter(pl.col("status").is_in(_HAS_ROWS), pl.col("kind").is_in(_RECOGNISED)), files)
    paths = pl.concat([of_batch["path"], similar["path"]]).unique()
    runs = lake.read("runs", _RUN_COLUMNS, pl.col("source_path").is_in(paths.implode()))
    batch = _Batch(
        new={str(row["path"]): row for row in files.iter_rows(named=True)},
        known={str(row["path"]): row for row in of_batch.iter_rows(named=True)},
        runs=runs,
        new_runs=tables["runs"].select(_RUN_COLUMNS),
        steps=tables["steps"],
        lake=lake,
        ids=set(ledger["id_path"].drop_nulls()),
        paths=set(ledger["path"]),
    )
    batch.compare_rotated_logs(similar)
    batch.compare_with_earlier_readings()
    batch.recognise(similar, ledger.join(similar, on="unit", how="semi"))
    batch.keep_files_that_are_gone()
    return batch.applied(tables), sorted(batch.forget)


@dataclass
class _Batch:
    """A batch while its files are compared with the lake.

    Attributes:
        new: ledger rows of the batch by path; those that are left out have been removed.
        known: ledger rows of the lake, by path, of the same units and paths.
        runs: _RUN_COLUMNS of runs in the lake.
        new_runs: _RUN_COLUMNS of runs of the batch.
        ids: paths that run ids in the lake are made from, beside those of their files.
        paths: all paths in the lake.
        fresh: paths of the batch whose content the ledger does not have under that path.
        dropped: paths of the batch whose new rows are not recorded.
        read: ledger rows of the batch by path, as reading gave them.
        kept: names under which overwritten content stays, by path.
        forget: paths of the lake whose rows go.
        moved: what each of these paths of the batch was before.
        run_ids: of runs of rotated logs, by those that they were read with.
        rotated: paths of the batch that are parts of known logs, and the paths in the lake that had their content.
        aligned: paths of the batch, and of the lake, that belong to logs which `compare_rotated_logs` has judged.
    """

    new: dict[str, Row]
    known: dict[str, Row]
    runs: pl.DataFrame
    new_runs: pl.DataFrame
    steps: pl.DataFrame
    lake: Lake
    ids: set[str]
    paths: set[str]
    read: dict[str, Row] = field(init=False)
    fresh: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    kept: dict[str, str] = field(default_factory=dict)
    forget: set[str] = field(default_factory=set)
    moved: dict[str, Held] = field(default_factory=dict)
    run_ids: dict[str, str] = field(default_factory=dict)
    rotated: dict[str, set[str]] = field(default_factory=dict)
    aligned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.read = dict(self.new)

    def compare_rotated_logs(self, similar: pl.DataFrame) -> None:
        """Judge the parts of rotated logs by what the ledger has of all parts.

        Args:
            similar: ledger rows of the lake with similar content.
        """
        were_parts = {str(row["part_of"]) for row in self.known.values() if row["part_of"]}
        logs: dict[str, list[Row]] = {}
        for path, row in self.new.items():
            if log := row["part_of"] or (path if path in were_parts else None):
                logs.setdefault(str(log), []).append(row)
        overwritten = similar.filter(pl.col("status") == "overwritten").rows(named=True)
        for log, rows in logs.items():
            known = [row for row in self.known.values() if log in {row["part_of"], row["path"]}]
            known = [row for row in known if row["status"] in _HAS_ROWS and row["rows_parsed"]]
            before = [row for row in overwritten if row["former_path"] == log]
            if known and all(row["status"] == "parsed" for row in rows):
                rows.sort(key=lambda row: rotation(str(row["path"]).rpartition("/")[2])[1])
                self._align(log, rows, align(rows, known), align(rows, before).found)

    def _align(self, log: str, rows: list[Row], parts: Alignment, before: list[tuple[Row, str]]) -> None:
        found = [*before, *parts.found]
        if not found:
            return  # each part is judged by itself
        paths = [str(row["path"]) for row in rows]
        id_path = str(found[0][0]["id_path"] or log)
        new = self.new_runs.select("run_id", "source_path", "line_no").filter(pl.col("source_path").is_in(paths))
        self.run_ids |= run_ids(id_path, paths, new, found, self.lake)
        known = {str(row["path"]) for row, _ in found}
        self.rotated |= dict.fromkeys(paths, known)
        for row in rows:
            self.new[str(row["path"])] = {**row, "id_path": None if id_path == log else id_path}
        self.aligned |= {*paths, *known, *(str(row["path"]) for row in parts.lost)}
        self.forget |= {str(row["path"]) for row, _ in before}
        for row in parts.lost:
            name = self._unused(str(row["path"]))
            former = {"path": name, "unit": name, "status": "rotated", "former_path": row["path"], "part_of": None}
            self.new[name] = {**row, **former, "id_path": id_path, "error": None}

    def compare_with_earlier_readings(self) -> None:
        """Judge files that the ledger knows by what it has of them."""
        frozen: dict[str, str] = {}
        for path, row in list(self.new.items()):
            old = self.known.get(path)
            if path in self.aligned or row["status"] == "rotated":
                continue
            if old is None or old["status"] not in _HAS_ROWS or not old["rows_parsed"]:
                self.fresh.add(path)
            elif row["status"] == "rejected":
                if row["parser_version"] is None:  # it could not be opened or read: try again
                    frozen[str(old["unit"])] = path
                self._keep(path, "failed", error=row["error"], parser_version=row["parser_version"])
            elif old["kind"] in _LOGS and row["is_continued"] is False and self._is_beginning(row, old):
                self._keep(path, "shrunk", bytes=row["bytes"], mtime=row["mtime"], is_continued=False)
            elif old["kind"] in _LOGS and row["is_continued"] is False and not self._is_edited(path):
                self._overwrite(path, row, old)
            else:
                self.new[path] = {**row, "id_path": old["id_path"], "former_path": old["former_path"]}
        for path, row in list(self.new.items()):
            if (cause := frozen.get(str(row["unit"]))) and path not in self.dropped:
                self.fresh.discard(path)
                if path in self.known:
                    self._keep(path, "unread", error=f"{cause} of the same run could not be read")
                else:
                    self.dropped.add(path)
                    del self.new[path]

    def _keep(self, path: str, status: str, **changes: object) -> None:
        """Leave the rows of a file as they are."""
        noted = {"bytes": self.new[path]["bytes"], "mtime": self.new[path]["mtime"]} if status == "failed" else {}
        self.new[path] = {**self.known[path], **noted, "error": None, "status": status, **changes}
        self.dropped.add(path)

    def _is_beginning(self, row: Row, old: Row) -> bool:
        """Whether a file has become a part of what was read of it: all of its steps were read then."""
        size, known_size = row["content_bytes"], old["content_bytes"]
        if not (isinstance(size, int) and isinstance(known_size, int) and size < known_size):
            return False
        if not str(old["content_head"] or "").startswith(str(row["content_head"] or "")):
            return False
        if size == 0 or row["parser_version"] != old["parser_version"]:
            return True
        return self._has_steps_of(str(row["path"]), str(row["path"]))

    def _has_steps_of(self, path: str, known: str) -> bool:
        """Whether the lake has under `known` all steps that were read of `path` now."""
        steps = self.steps.filter(pl.col("source_path") == path).select(_STEP)
        whole = steps.filter(pl.col("line_no") < pl.col("line_no").max())  # the last line may be cut
        read = self.lake.read("steps", _STEP, pl.col("source_path") == known)
        is_known = whole.join(read, on=_STEP, how="anti", nulls_equal=True).is_empty()
        return is_known and (path == known or not whole.is_empty())

    def _is_edited(self, path: str) -> bool:
        """Whether most of the steps that were read of a file are still in it: it is no other run."""
        columns = [name for name in TABLES["steps"].column_names if name not in {"run_id", "source_path", "line_no"}]
        read = self.lake.read("steps", columns, pl.col("source_path") == path)
        again = read.join(self.steps.filter(source_path=path), on=columns, how="semi", nulls_equal=True)
        return read.height > 0 and again.height >= read.height / 2

    def _overwrite(self, path: str, row: Row, old: Row) -> None:
        """Keep what the file held under a name of its own; its new content gets run ids of its own."""
        name = self._unused(path)
        self.kept[path] = name
        former = {"path": name, "unit": name, "status": "overwritten", "former_path": path, "error": None}
        self.new[name] = {**old, **former, "id_path": old["id_path"] or path}
        self.new[path] = {**row, "id_path": name}
        self.fresh.add(path)

    def _unused(self, path: str) -> str:
        """`path` with a number that makes it a name of its own."""
        number = 1
        while (name := f"{path}#{number}") in self.paths or name in self.ids or name in self.new:
            number += 1
        self.ids.add(name)
        return name

    def recognise(self, similar: pl.DataFrame, beside: pl.DataFrame) -> None:
        """Find files of the batch that hold what another file holds, or held before it went.

        Args:
            similar: ledger rows of the lake that may be those.
            beside: ledger rows of the lake of the same units.
        """
        contents = Contents(changed=set(self.kept), has_steps_of=self._has_steps_of)
        grown = {path for path, row in self.new.items() if row["status"] == "parsed" and path not in self.fresh}
        grown |= self.aligned
        known = [row for row in similar.iter_rows(named=True) if row["path"] not in grown]
        for one in held(known, self.runs):
            contents.add(one)
        for one in held((self.new[path] for path in grown if path in self.new), self.new_runs):
            contents.add(one, is_new=True)
        units = _Units([*self.new.values(), *beside.iter_rows(named=True)])
        rows = (self.new[path] for path in self.fresh)
        new = held((row for row in rows if row["status"] == "parsed" and row["kind"] in _RECOGNISED), self.new_runs)
        for one in sorted(new, key=lambda one: (-one.size, -len(units.configs(one.unit)), one.path)):
            if one.names_run:  # other logs go with the unit that they belong to
                self._recognise(one, contents, units)
        self._copy_files_beside_copies()
        ids = {*self.ids, *(str(row["id_path"]) for row in self.new.values() if row["id_path"])}
        for path in sorted(ids & self.fresh - self.dropped):
            if not self.new[path]["id_path"]:
                self.new[path] = {**self.new[path], "id_path": self._unused(path)}

    def _recognise(self, new: Held, contents: Contents, units: _Units) -> None:
        there = [known for known in contents.equal(new) if contents.is_there(known)]
        for known in [*there, *contents.continuations(new)]:
            ours, theirs = units.configs(new.unit), units.configs(known.unit)
            if ours <= theirs:
                self._copy(new.path, known.path)
                return
            if not theirs <= ours:
                contents.add(new, is_new=True)
                return
        for known in [*contents.equal(new), *contents.beginnings(new)]:
            self._take_over(new, known, units)
        contents.add(new, is_new=True)

    def _copy(self, path: str, other: str) -> None:
        """Record a file as a copy."""
        nothing = {"rows_parsed": 0, "lines_rejected": 0, "id_path": None, "former_path": other}
        self.new[path] = {**self.new[path], "status": "duplicate", "error": f"holds what {other} holds", **nothing}
        self.dropped.add(path)

    def _take_over(self, new: Held, known: Held, units: _Units) -> None:
        """Give a file the run ids of the one that held its content before, whose rows go."""
        first = self.moved.setdefault(new.path, known)
        self.new[new.path] = {**self.new[new.path], "id_path": first.id_path, "former_path": first.path}
        if known.path in self.kept:
            del self.new[self.kept.pop(known.path)]
        elif self.new.get(known.path, {}).get("status") == "shrunk":
            self.new[known.path] = {**self.read[known.path], "id_path": self._unused(known.path)}
            self.dropped.discard(known.path)
        else:
            self.forget.add(known.path)
            if self.new.pop(known.path, None):
                self.dropped.add(known.path)
        contents = {row["content_digest"] for row in units.files(new.unit)}
        for row in units.files(known.unit):
            is_same = row["kind"] not in _MEASURED or row["content_digest"] in contents
            if is_same and row["path"] not in self.new and not exists(str(row["path"])):
                self.forget.add(str(row["path"]))

    def _copy_files_beside_copies(self) -> None:
        """Leave out files that belong to logs which are all copies."""
        unit_of = {path: str(row["unit"]) for path, row in self.new.items()}
        with_runs = {path: unit_of[path] for path in self.new_runs["source_path"] if path in unit_of}
        counting = {unit for path, unit in with_runs.items() if path not in self.dropped}
        copies = {unit: self.new[path]["former_path"] for path, unit in with_runs.items() if path in self.dropped}
        for path in sorted(self.fresh - self.dropped):
            unit, row = unit_of[path], self.new[path]
            is_beside = row["kind"] == "log" or row["kind"] not in _RECOGNISED
            if unit in copies.keys() - counting and is_beside and row["status"] == "parsed":
                self._copy(path, str(copies[unit]))

    def keep_files_that_are_gone(self) -> None:
        """Keep rows of files of the same units that are no longer there."""
        for path, row in self.known.items():
            has_rows = row["kind"] in _MEASURED and row["status"] in _HAS_ROWS and bool(row["rows_parsed"])
            is_known = path in self.new or path in self.forget or path in self.aligned
            if has_rows and not is_known and not exists(path):
                self.new[path] = {**row, "status": "gone", "error": None}
        # Without the log that it stood beside, a file that only had evidence would become a run.
        units = {str(row["unit"]) for row in self.new.values() if row["status"] in ("gone", "failed", "shrunk")}
        had_runs = set(self.runs["source_path"])
        for path in self.new_runs["source_path"].unique():
            beside = self.new.get(path, {})
            if beside.get("unit") in units and path in self.known and path not in had_runs | self.dropped:
                settled = {name: beside[name] for name in ("bytes", "mtime", "sha256", "parser_version")}
                self._keep(path, "unread", error="it belongs to a log that is gone or could not be read", **settled)

    def applied(self, tables: Tables) -> Tables:
        """The tables without rows that are not recorded, and with the run ids of files that had others before."""
        gone = self.new_runs.filter(pl.col("source_path").is_in(list(self.dropped)))["run_id"]
        ids = dict(self.run_ids)
        part_of = {path: str(row["part_of"] or path) for path, row in self.read.items()}
        attempts = Counter(part_of.get(path, path) for path in self.new_runs["source_path"])
        for path, row in self.new.items():
            log, is_read = str(row["part_of"] or path), row["status"] == "parsed" and path not in self.dropped
            if is_read and path not in self.rotated and (row["id_path"] or log) != log:
                ids |= self._ids(path, log, str(row["id_path"]), attempts[log])
        found = {}
        for name, frame in tables.items():
            found[name] = _without(name, frame, self.dropped, gone, ids)
        found["runs"] = self._with_lost_parts(found["runs"], found["steps"])
        bundled = tables["files"].filter(pl.col("kind") == "published")
        rows = pl.DataFrame(list(self.new.values()), schema=TABLES["files"].polars_schema, orient="row")
        return {**found, "files": pl.concat([bundled, rows])}

    def _with_lost_parts(self, runs: pl.DataFrame, steps: pl.DataFrame) -> pl.DataFrame:
        """The batch's runs; those of rotated logs with what is known from parts that are no longer there."""
        if not self.rotated:
            return runs
        is_rotated = pl.col("source_path").is_in(list(self.rotated))
        of_logs = runs.filter(is_rotated)
        is_same = pl.col("run_id").is_in(of_logs["run_id"].implode())
        known = self.lake.read("runs", None, is_same)
        there = sorted(set().union(*self.rotated.values()))
        lost = self.lake.read("steps", ["run_id", "step"], is_same & ~pl.col("source_path").is_in(there))
        read = steps.select("run_id", "step")
        return pl.concat([runs.filter(~is_rotated), with_lost_parts(of_logs, known, lost, read)])

    def _ids(self, path: str, log: str, id_path: str, count: int) -> dict[str, str]:
        """Run ids of a file of a log with so many attempts, made from its path, to those made from `id_path`."""
        rows = self.new_runs.filter(source_path=path)
        ids = {run_id(log, str(n)): run_id(id_path, str(n)) for n in range(1, count + 1)}
        if set(rows["run_id"]) <= ids.keys():
            return {old: ids[old] for old in rows["run_id"]}
        keys = [(old, f"line {line}") for old, line in rows.select("run_id", "line_no").iter_rows()]
        return {old: run_id(id_path, key) for old, key in keys}


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


def _without(
    name: str, frame: pl.DataFrame, paths: Collection[str], runs: pl.Series, ids: Mapping[str, str]
) -> pl.DataFrame:
    """Rows of a table that are neither of the given paths nor of the given runs, with other run ids."""
    if name in TABLES and TABLES[name].layer == "lake" and paths:
        path = pl.col(TABLES[name].replaced_by)
        frame = frame.filter(~path.is_in(list(paths)))
    if "run_id" in frame.columns:
        frame = frame.filter(~pl.col("run_id").is_in(runs.implode()).fill_null(value=False))
        frame = frame.with_columns(pl.col("run_id").replace(ids)) if ids else frame
    return frame
