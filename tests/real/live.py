"""Ingests all along while files grow, and whether the store is then what one ingest after the end makes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from sweepscope.pipeline.errors import NoStoreError
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import connect, current
from sweepscope.schemas.registry import TABLES
from tests.real.judge import attempts_in, read

_NOT_CONTENT = {"batch_id"}
_PAUSE_S = 1.0


def ingest(sweep: Path, home: Path) -> None:
    """Ingest with the command line.

    Raises:
        RuntimeError: it failed.
    """
    command = [sys.executable, "-m", "sweepscope", "ingest", str(sweep), "--no-published", "--home", str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)


@dataclass
class LiveIngests:
    """Repeated ingests of a growing sweep, and when there were more runs than starts of trainings.

    Attributes:
        truths: file of truth by the folder of each training.
    """

    sweep: Path
    home: Path
    truths: Mapping[Path, Path]
    count: int = 0
    faults: list[str] = field(default_factory=list)

    def __call__(self, is_over: threading.Event) -> None:
        """Ingest until it is over."""
        while not is_over.wait(_PAUSE_S):
            try:
                ingest(self.sweep, self.home)
                self.count += 1
                self._look()
            except NoStoreError:
                continue  # nothing was there to publish
            except RuntimeError as error:
                self.faults.append(f"ingest {self.count} failed: {error}")

    def _look(self) -> None:
        for place, truth in self.truths.items():
            runs, _ = read(self.home, place)
            starts = max(attempts_in(truth), 1)  # read later than the runs: it can only have grown
            if len(runs) > starts:
                sources = [(run["source_path"], run["line_no"], run["attempt"], run["framework"]) for run in runs]
                self.faults.append(f"ingest {self.count}: {len(runs)} runs of {starts} starts: {sources}")


def differences(live: Path, once: Path) -> list[str]:
    """Rows that only one of two homes holds, with its name. The ledger may remember files that are gone."""
    found = []
    ours, theirs = (connect(current(Home.resolve(str(home)).path)) for home in (live, once))
    try:
        for name, table in TABLES.items():
            if table.layer != "lake":
                continue
            columns = [column for column in table.column_names if column not in _NOT_CONTENT]
            mine, others = (_rows(store, name, columns) for store in (ours, theirs))
            if name == "files":
                is_there = {row: Path(row[columns.index("path")] or "").exists() for row in mine}
                mine = Counter({row: count for row, count in mine.items() if is_there[row]})
            found += [f"{name}: only live: {_shown(columns, row)}" for row in mine - others]
            found += [f"{name}: only at once: {_shown(columns, row)}" for row in others - mine]
    finally:
        ours.close()
        theirs.close()
    return found


def _rows(store: duckdb.DuckDBPyConnection, table: str, columns: list[str]) -> Counter[tuple[str | None, ...]]:
    names = ", ".join(f'"{name}"::VARCHAR' for name in columns)
    return Counter(store.execute(f'SELECT {names} FROM "{table}"').fetchall())


def _shown(columns: list[str], row: tuple[str | None, ...]) -> str:
    return " ".join(f"{name}={value}" for name, value in zip(columns, row, strict=True) if value is not None)
