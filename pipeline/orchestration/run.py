"""Run the graph in this process, batch by batch: what `sweepscope ingest` and the tests do.

The watcher's runs do not come through here: Dagster's daemon launches those that the sensor in `jobs` asks for.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence

import dagster as dg
import polars as pl
from sqlalchemy.exc import SQLAlchemyError

from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.batch import Tables
from sweepscope.pipeline.ingest.bundled import bundled_is_pending
from sweepscope.pipeline.ingest.dialect_files import in_force, remember
from sweepscope.pipeline.ingest.discover import FOUND
from sweepscope.pipeline.ingest.engine import Engine
from sweepscope.pipeline.ingest.statements import Stated, state
from sweepscope.pipeline.ingest.summary import Summary
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.io.process_pool import CORES_PER_READER, default_workers
from sweepscope.pipeline.operations.alerting import look
from sweepscope.pipeline.orchestration.batch_files import write_batch
from sweepscope.pipeline.orchestration.build import build
from sweepscope.pipeline.orchestration.instance import open_instance
from sweepscope.pipeline.orchestration.jobs import TRIGGER_TAG, batch_tags, run_config
from sweepscope.pipeline.orchestration.resources import CallbackProgress, OnFile, OpenReaders
from sweepscope.pipeline.orchestration.upkeep import after_ingest
from sweepscope.pipeline.store.checkpoints import Records
from sweepscope.pipeline.store.durable_files import storing
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect

_LOG = logging.getLogger(__name__)
_SILENT = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}  # errors reach the caller as exceptions


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
        SweepscopeError: as the steps raise it, unwrapped from Dagster.
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
    if not work and with_published and bundled_is_pending(lake.read("files")):
        work = [pending]
    readers = engine if engine and work else Engine()
    with (
        open_instance(home) as instance,
        storing(home.path, "write to", SQLAlchemyError),
        readers.cluster(home, processes=workers or default_workers(cores_each=CORES_PER_READER)) as cluster,
    ):
        defs = build(str(home.path), {"progress": CallbackProgress(on_file), "readers": OpenReaders(cluster)})
        for index, batch in enumerate(work):
            job = defs.resolve_job_def("ingest" if index == len(work) - 1 else "load")
            batch_id = write_batch(home, batch, in_use.files)
            config = run_config(in_use, batch_id=batch_id, with_published=with_published, workers=workers)
            summary.add(_execute(job, instance, config, {TRIGGER_TAG: "command", **batch_tags(batch)}))
        after_ingest(home, instance)
    # Does nothing when the last run has published; after a crash between commit and publish it catches up.
    summary.store = str(publish(home).path)
    summary.runs = _statuses(summary.store, summary.run_ids)
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
    try:
        look(home)
    except SweepscopeError as error:
        event(_LOG, logging.WARNING, "alerts_not_sent", reason=error)


def _statuses(store: str, run_ids: Sequence[str]) -> Counter[str]:
    """Number of runs by their status in the store, where a scheduler's table may have corrected that of the log."""
    connection = connect(store)
    try:
        query = "SELECT status, count(*) FROM runs WHERE run_id IN (SELECT unnest($ids)) GROUP BY status"
        return Counter(dict(connection.execute(query, {"ids": list(run_ids)}).fetchall()))
    finally:
        connection.close()


def _execute(
    job: dg.JobDefinition, instance: dg.DagsterInstance, run_config: dg.RunConfig, tags: dict[str, str]
) -> Tables:
    config = run_config.to_config_dict()  # type: ignore[no-untyped-call]  # Dagster leaves it unannotated
    try:
        result = job.execute_in_process(instance=instance, run_config={**config, **_SILENT}, tags=tags)
    except dg.DagsterExecutionInterruptedError as error:
        raise KeyboardInterrupt from error  # Dagster's handler received the signal
    except Exception as error:
        raise _cause(error) or error from error
    tables: Tables = result.output_for_node("lake")
    return tables


def _cause(error: BaseException | None) -> SweepscopeError | None:
    """The error that a step raised, from under Dagster's wrapping."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, SweepscopeError):
            return error
        seen.add(id(error))  # Dagster's error and its cause may name each other
        # After the last retry Dagster raises an error of its own without a cause, from within the handler of ours.
        error = error.__cause__ or getattr(error, "user_exception", None) or error.__context__
    return None
