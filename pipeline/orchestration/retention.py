"""Dagster's records of runs and ticks, removed by age and number: by themselves they grow by half a megabyte a run.

Dagster deletes the rows of a run when it is asked to, but leaves its tags, the outcomes of its checks and, with SQLite,
the file of its events; ticks of schedules it never removes. Nothing of the lake or the store depends on any of them:
what has been read is in the table `files`.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import sqlalchemy as sa
from dagster._core.scheduler.instigation import TickStatus
from dagster._core.storage.event_log.schema import (
    AssetCheckExecutionsTable,
    AssetEventTagsTable,
    SqlEventLogStorageTable,
)
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage
from dagster._core.storage.runs.schema import RunsTable, RunTagsTable
from dagster._core.storage.runs.sql_run_storage import SqlRunStorage
from dagster._core.storage.schedules.schema import JobTickTable
from dagster._core.storage.schedules.sql_schedule_storage import SqlScheduleStorage

from sweepscope.pipeline.operations.settings import Retention
from sweepscope.pipeline.store.home import Home

KEPT_OF_EACH_JOB = 20
"""Newest runs of a job that stay whatever their age, so that Dagster's page has something to show of a quiet home."""

_RECENT = timedelta(hours=1)
"""Runs that stay in any case: the sensor looks at those of the last half hour."""

_ORPHANED_S = 86_400.0
_MANY_TICKS = 1000
_AT_ONCE = 200  # SQLite takes some thousand values in one statement
_MIN_FREE_PAGES = 1024
_SUCCEEDED = [dg.DagsterRunStatus.SUCCESS]
_FAILED = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


@dataclass(frozen=True)
class Pruned:
    """What was removed: runs, ticks, files of runs that Dagster no longer lists, and bytes on the disk."""

    runs: int = 0
    ticks: int = 0
    orphans: int = 0
    bytes_freed: int = 0

    def as_dict(self) -> dict[str, int]:
        """For JSON output and metadata."""
        return asdict(self)


def prune(
    instance: dg.DagsterInstance,
    home: Home,
    retention: Retention,
    *,
    now: datetime | None = None,
) -> Pruned:
    """Remove records that are older than `retention` keeps them.

    Unfinished runs stay, and so do the newest of each job. It may be killed at any point: the next call goes on.

    Args:
        instance: Dagster's records.
        home: whose instance it is; files of runs are looked for there.
        retention: how long which of them are kept.
        now: the current time, in UTC.
    """
    now = now or datetime.now(UTC)
    due = _due(instance, retention, now)
    before = _bytes(home)
    for start in range(0, len(due), _AT_ONCE):
        _delete(instance, home, due[start : start + _AT_ONCE])
    ticks = _delete_ticks(instance, retention, now)
    orphans = _delete_orphans(instance, home)
    _shrink(home)
    return Pruned(len(due), ticks, orphans, max(before - _bytes(home), 0))


def has_due(instance: dg.DagsterInstance, retention: Retention) -> bool:
    """Whether `prune` would remove runs, or ticks enough to make it worth a run of its own."""
    now = datetime.now(UTC)
    return bool(_due(instance, retention, now)) or _old_ticks(instance, retention, now) >= _MANY_TICKS


def _due(instance: dg.DagsterInstance, retention: Retention, now: datetime) -> list[str]:
    """Ids of finished runs to remove, oldest first."""
    storage = instance.run_storage
    if not isinstance(storage, SqlRunStorage):
        return []
    table = RunsTable.c
    finished = [status.value for status in (*_SUCCEEDED, *_FAILED)]
    query = sa.select(table.run_id, table.pipeline_name, table.status, table.create_timestamp)
    with storage.connect() as connection:
        rows = connection.execute(query.where(table.status.in_(finished)).order_by(table.id.desc())).fetchall()
    succeeded = {status.value for status in _SUCCEEDED}
    of_job: dict[str, int] = {}
    due = []
    for number, (run_id, job, status, created) in enumerate(rows):
        of_job[job] = of_job.get(job, 0) + 1
        age = now.replace(tzinfo=None) - created.replace(tzinfo=None)
        kept_days = retention.succeeded_days if status in succeeded else retention.failed_days
        is_old = age > timedelta(days=kept_days) or number >= retention.max_runs
        if is_old and age > _RECENT and of_job[job] > KEPT_OF_EACH_JOB:
            due.append(run_id)
    return due[::-1]


def _delete(instance: dg.DagsterInstance, home: Home, run_ids: Sequence[str]) -> None:
    """Remove all of some runs; the row that lists a run goes last, so that a second call finds what the first left."""
    events, runs = instance.event_log_storage, instance.run_storage
    if isinstance(events, SqlEventLogStorage):
        log, checks, tags = SqlEventLogStorageTable, AssetCheckExecutionsTable, AssetEventTagsTable
        with events.index_connection() as connection:
            of_runs = sa.select(log.c.id).where(log.c.run_id.in_(run_ids))
            connection.execute(sa.delete(tags).where(tags.c.event_id.in_(of_runs)))
            connection.execute(sa.delete(checks).where(checks.c.run_id.in_(run_ids)))
            connection.execute(sa.delete(log).where(log.c.run_id.in_(run_ids)))
    for run_id in run_ids:
        for path in _files_of(home, run_id):
            _remove(path)
    if isinstance(runs, SqlRunStorage):
        with runs.connect() as connection:
            connection.execute(sa.delete(RunTagsTable).where(RunTagsTable.c.run_id.in_(run_ids)))
            connection.execute(sa.delete(RunsTable).where(RunsTable.c.run_id.in_(run_ids)))


def _delete_ticks(instance: dg.DagsterInstance, retention: Retention, now: datetime) -> int:
    storage = instance.schedule_storage
    if not isinstance(storage, SqlScheduleStorage):
        return 0
    with storage.connect() as connection:
        return int(connection.execute(sa.delete(JobTickTable).where(_is_old_tick(retention, now))).rowcount)


def _old_ticks(instance: dg.DagsterInstance, retention: Retention, now: datetime) -> int:
    storage = instance.schedule_storage
    if not isinstance(storage, SqlScheduleStorage):
        return 0
    query = sa.select(sa.func.count()).select_from(JobTickTable).where(_is_old_tick(retention, now))
    with storage.connect() as connection:
        return int(connection.execute(query).scalar_one())


def _is_old_tick(retention: Retention, now: datetime) -> sa.ColumnElement[bool]:
    table = JobTickTable.c
    is_skipped = table.status == TickStatus.SKIPPED.value
    skipped, others = (
        now.replace(tzinfo=None) - timedelta(days=days) for days in (retention.skipped_tick_days, retention.tick_days)
    )
    return sa.or_(
        sa.and_(is_skipped, table.timestamp < skipped),
        sa.and_(~is_skipped, table.timestamp < others),
    )


def _delete_orphans(instance: dg.DagsterInstance, home: Home) -> int:
    """Remove files of runs that are not listed any more, from when a removal was interrupted."""
    named: dict[str, list[Path]] = {}
    for path in (*_events(home).glob("*.db*"), *_outputs(home).glob("*")):
        run_id = path.name.partition(".")[0]
        if run_id != "index" and path.stat().st_mtime < time.time() - _ORPHANED_S:
            named.setdefault(run_id, []).append(path)
    storage = instance.run_storage
    if not named or not isinstance(storage, SqlRunStorage):
        return 0
    with storage.connect() as connection:
        listed = set(connection.execute(sa.select(RunsTable.c.run_id)).scalars())
    orphans = [path for run_id, paths in named.items() if run_id not in listed for path in paths]
    for path in orphans:
        _remove(path)
    return len(orphans)


def _shrink(home: Home) -> None:
    """Give free pages of SQLite files back to the disk, where they are most of a file and nobody is writing."""
    for path in (
        _events(home) / "index.db",
        home.dagster / "history" / "runs.db",
        home.dagster / "schedules" / "schedules.db",
    ):
        if not path.exists():
            continue
        try:
            with closing(sqlite3.connect(path, timeout=1)) as connection:
                (pages,), (free,) = (
                    connection.execute(f"PRAGMA {what}").fetchone() for what in ("page_count", "freelist_count")
                )
                if free > max(_MIN_FREE_PAGES, pages // 2):
                    connection.execute("VACUUM")
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.OperationalError:  # in use; the pages are used again meanwhile
            continue


def _events(home: Home) -> Path:
    return home.dagster / "history" / "runs"


def _outputs(home: Home) -> Path:
    """Folder of what the processes of runs printed, a folder each."""
    return home.dagster / "storage"


def _files_of(home: Home, run_id: str) -> Iterator[Path]:
    yield from (_events(home) / f"{run_id}.db{suffix}" for suffix in ("", "-wal", "-shm"))
    yield _outputs(home) / run_id


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _bytes(home: Home) -> int:
    """Size of everything in the folder of Dagster's records."""
    return sum(path.stat().st_size for path in home.dagster.rglob("*") if path.is_file())
