"""Do the steps of the graph in this process, batch by batch: what `sweepscope ingest` and the tests do.

Without Dagster, which takes seconds to import; a record of each run is kept for it. The watcher's runs do not come
through here: Dagster's daemon launches those that the sensor in `jobs` asks for.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence

import polars as pl

from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.bundled import bundled_is_pending
from sweepscope.pipeline.ingest.dialect_files import in_force, remember
from sweepscope.pipeline.ingest.discover import FOUND
from sweepscope.pipeline.ingest.engine import Engine
from sweepscope.pipeline.ingest.statements import Stated, state
from sweepscope.pipeline.ingest.summary import Summary
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.io.process_pool import CORES_PER_READER, default_workers
from sweepscope.pipeline.store.checkpoints import Records
from sweepscope.pipeline.store.home import OPERATIONS_VARIABLE, Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect

OnFile = Callable[[str, int], None]

_LOG = logging.getLogger(__name__)


def ingest_paths(
    home: Home,
    paths: Sequence[str],
    *,
    dialect_files: Sequence[str] = (),
    with_published: bool = True,
    batch_units: int = plan.BATCH_UNITS,
    workers: int = 0,
    engine: Engine | None = None,
    statement: Stated | None = None,
    again: bool = False,
    on_plan: OnFile = lambda _what, _size: None,
    on_file: OnFile = lambda _path, _size: None,
) -> Summary:
    """Ingest everything new under `paths` and publish.

    Args:
        dialect_files: dialect files to read with, now and later: the home remembers them.
        workers: processes that read, this one included; 0: one per two cores, at most a few.
        engine: whose processes read; None: this machine's own.
        statement: what is stated of the runs at the paths, now and later: the home remembers it.
        again: read everything at the paths, also what is known and has not changed.
        on_plan: called with ("files", number) and ("bytes", size) once the work is known.
        on_file: called with each file and its size as it is read.

    Raises:
        SweepscopeError: as the steps raise it.
    """
    begin = time.perf_counter()
    remember(home, dialect_files)
    if statement is not None and not statement.is_empty:
        for path in paths:
            next(list_files(path), None)  # nothing is kept of a mistyped path
        state(home, paths, statement)
    in_use = in_force(home)
    lake = Lake(home)
    other_names: dict[str, str] = {}
    found = pl.DataFrame(schema=FOUND)
    if paths:
        found = plan.find_for(lake, paths, dialects=in_use.dialects, other_names=other_names)
    pending = _from_the_start(home, found) if again else plan.pending_of(lake, found, dialects=in_use.dialects)
    summary = Summary(files_seen=found.height, files_new=pending.height, bytes=int(pending["bytes"].sum() or 0))
    summary.other_names = other_names
    summary.dialects = [file.name for file in in_use.remembered]
    on_plan("files", pending.height)
    on_plan("bytes", summary.bytes)
    work = plan.batches(pending, units=batch_units)
    if not work and with_published and bundled_is_pending(lake):
        work = [pending]
    if work:
        # Late: it imports all readers, which takes longer than to find that there is nothing to read.
        from sweepscope.pipeline.orchestration.run_batches import run_batches

        count = workers or default_workers(cores_each=CORES_PER_READER)
        for committed, store in run_batches(
            home,
            work,
            in_use=in_use,
            with_published=with_published,
            workers=count,
            engine=engine or Engine(),
            on_file=on_file,
        ):
            summary.add(committed)
            summary.store = store or summary.store
    # Where there was nothing to read, an ingest may have died between commit and publish.
    summary.store = summary.store or str(publish(home).path)
    summary.runs, summary.copies = _statuses(summary.store, summary.run_ids)
    _tell(home)
    summary.seconds = time.perf_counter() - begin
    return summary


def _from_the_start(home: Home, found: pl.DataFrame) -> pl.DataFrame:
    """All of `found`; what is kept of growing logs is dropped, so that they are read from their first line."""
    records = Records(home.records, plan.utc_now())
    for path in found["path"]:
        records.forget(path)
    return found


def _tell(home: Home) -> None:
    """Send alerts on what is new; the ingest stands where that fails."""
    if OPERATIONS_VARIABLE not in os.environ and not home.operations.exists():
        return  # no receivers: what checks settings and sends need not be imported
    from sweepscope.pipeline.operations.alerting import look

    try:
        look(home)
    except SweepscopeError as error:
        event(_LOG, logging.WARNING, "alerts_not_sent", reason=error)


def _statuses(store: str, run_ids: Sequence[str]) -> tuple[Counter[str], int]:
    """Number of runs by their status in the store, which a scheduler's table may have corrected, and that of copies."""
    connection = connect(store)
    try:
        query = """SELECT status, count(*) FILTER (duplicate_of IS NULL), count(duplicate_of)
FROM runs
WHERE run_id IN (SELECT unnest($ids))
GROUP BY status"""
        rows = connection.execute(query, {"ids": list(run_ids)}).fetchall()
        return Counter({status: runs for status, runs, _ in rows if runs}), sum(copies for *_, copies in rows)
    finally:
        connection.close()
