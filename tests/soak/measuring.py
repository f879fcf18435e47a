"""How large a home and its watcher's processes are, and a day that goes by in its records."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sweepscope.pipeline.store import release as releases
from sweepscope.pipeline.store.home import Home
from tests.processes import command_line, descendants

_STAYING = (
    "sweepscope.pipeline.orchestration.daemon",
    "sweepscope.pipeline.orchestration.webserver",
    "dagster",
    "watch",
)
_FORMAT = "%Y-%m-%d %H:%M:%S.%f"


@dataclass(frozen=True)
class Sample:
    """A home at one moment: sizes in bytes, and numbers of Dagster's runs and ticks, releases and files of the lake."""

    hours: float
    memory_bytes: int
    dagster_bytes: int
    dagster_runs: int
    ticks: int
    releases: int
    lake_files: int
    store_bytes: int


def take(home: Home, hours: float, root_pid: int | None = None) -> Sample:
    """A sample, `hours` after the start; memory is that of the processes below `root_pid` that stay."""
    return Sample(
        hours=hours,
        memory_bytes=0 if root_pid is None else memory_below(root_pid),
        dagster_bytes=size_of(home.dagster),
        dagster_runs=_count(home.dagster / "history" / "runs.db", "runs"),
        ticks=_count(home.dagster / "schedules" / "schedules.db", "job_ticks"),
        releases=len(releases.numbers(home.releases)),
        lake_files=sum(1 for _ in home.lake.rglob("*.parquet")),
        store_bytes=size_of(home.store),
    )


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder; those that go meanwhile are left out."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def memory_below(root_pid: int) -> int:
    """Resident bytes of a watcher and of its servers; runs, which come and go, are left out."""
    total = 0
    for pid in (root_pid, *descendants(root_pid)):
        with suppress(OSError, ValueError, IndexError):
            command = command_line(pid)
            if any(name in word for name in _STAYING for word in command) and "execute_run" not in command:
                total += int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return total


def age(home: Home, by: timedelta) -> None:
    """Make Dagster's records of runs and ticks older: a simulated day has to be a day in them, too."""
    for path, table, column in (
        (home.dagster / "history" / "runs.db", "runs", "create_timestamp"),
        (home.dagster / "schedules" / "schedules.db", "job_ticks", "timestamp"),
    ):
        if not path.exists():
            continue
        with closing(sqlite3.connect(path, timeout=60)) as connection:
            rows = connection.execute(f"SELECT id, {column} FROM {table}").fetchall()
            older = [(_older(at, by), number) for number, at in rows]
            connection.executemany(f"UPDATE {table} SET {column} = ? WHERE id = ?", older)
            connection.commit()


def _older(text: str, by: timedelta) -> str:
    at = datetime.fromisoformat(text).replace(tzinfo=UTC) - by
    return at.strftime(_FORMAT)


def _count(path: Path, table: str) -> int:
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path, timeout=60)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
