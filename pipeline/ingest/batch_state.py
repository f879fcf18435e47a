"""A batch while its files are compared with the lake: what is recorded of each file, and what becomes of known rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

from sweepscope.pipeline.ingest.same_content import Held, Row

if TYPE_CHECKING:
    from sweepscope.pipeline.store.lake import (
        Lake,  # its libraries take 16 MB, which processes that only read logs save
    )

MEASURED = ("log", "nccl", "scheduler", "memory", "flight_record", "bench_csv", "tracker")
"""Kinds of files whose rows stay when the file goes. Others only describe the runs of their unit."""

RECOGNISED = ("log", "nccl", "memory", "flight_record", "bench_csv", "tracker")
"""Kinds whose content counts once, wherever it lies. A table of jobs may lie beside several runs."""

HAS_ROWS = ("parsed", "overwritten", "rotated", "shrunk", "failed", "unread", "gone")
"""Words of vocab.FILE_STATUS for files that may have rows in the lake."""

RUN_COLUMNS = ("run_id", "source_path", "line_no", "steps_logged", "started_at", "job_id")
_STEP = ("line_no", "step", "loss")


@dataclass
class BatchState:
    """A batch while its files are compared with the lake.

    Reconciliation goes over it several times (rotated logs, grown files, copies, files that are gone). Each pass reads
    the first group of attributes, and decides in `new` and in the second group. A file without a decision replaces what
    the lake has of it.

    Attributes:
        new: ledger rows to commit, by path: at first as reading gave them, then as the passes decide.
        known: ledger rows of the lake, by path, of the same units and paths.
        runs: RUN_COLUMNS of runs in the lake.
        new_runs: RUN_COLUMNS of runs of the batch.
        steps: rows of `steps` of the batch.
        lake: before the commit.
        ids: paths in the lake that run ids are made from, other than those of their files.
        paths: all paths in the lake.
        read: ledger rows of the batch by path, as reading gave them.

        fresh: paths whose content the ledger does not have under that path.
        dropped: paths whose new rows are not committed: the lake keeps its own, or another file has the same ones.
        kept: names that overwritten content gets (`PATH#1`), by the path that other content has now.
        forget: paths of the lake whose rows go.
        moved: by path, the file in the lake that had the content before.
        run_ids: new ids of runs of rotated logs, by those that they were read with.
        rotated: by path, the paths in the lake that had the content of this part.
        aligned: paths that need no other pass: they are parts of logs which `compare_rotated_logs` has judged.
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

    def keep(self, path: str, status: str, **changes: object) -> None:
        """Leave the rows of a file as they are."""
        noted = {"bytes": self.new[path]["bytes"], "mtime": self.new[path]["mtime"]} if status == "failed" else {}
        self.new[path] = {**self.known[path], **noted, "error": None, "status": status, **changes}
        self.dropped.add(path)

    def copy(self, path: str, other: str) -> None:
        """Record a file as a copy."""
        nothing = {"rows_parsed": 0, "lines_rejected": 0, "id_path": None, "former_path": other}
        self.new[path] = {**self.new[path], "status": "duplicate", "error": f"holds what {other} holds", **nothing}
        self.dropped.add(path)

    def unused(self, path: str) -> str:
        """`path` with a number that makes it a name of its own."""
        number = 1
        while (name := f"{path}#{number}") in self.paths or name in self.ids or name in self.new:
            number += 1
        self.ids.add(name)
        return name

    def has_steps_of(self, path: str, known: str) -> bool:
        """Whether the lake has under `known` all steps that were read of `path` now."""
        steps = self.steps.filter(pl.col("source_path") == path).select(_STEP)
        whole = steps.filter(pl.col("line_no") < pl.col("line_no").max())  # the last line may be cut
        read = self.lake.read("steps", _STEP, pl.col("source_path") == known)
        is_known = whole.join(read, on=_STEP, how="anti", nulls_equal=True).is_empty()
        return is_known and (path == known or not steps.join(read, on=_STEP, how="semi", nulls_equal=True).is_empty())
