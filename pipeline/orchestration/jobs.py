"""Jobs, and what launches them: the sensor, the schedule, and the configuration of a run.

The sensor compares the watched paths with the ledger and asks for a run per batch. Here it is decided when to read;
`ingest.plan` decides what is new, and what a run does is in `assets`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import dagster as dg
import polars as pl

from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.ingest.dialect_files import InForce, in_force
from sweepscope.pipeline.operations.heartbeat import beat
from sweepscope.pipeline.orchestration.assets import ASSETS, BatchConfig
from sweepscope.pipeline.orchestration.batch_files import units_of, write_batch
from sweepscope.pipeline.orchestration.lost_runs import LOST_TAG, close_lost_runs
from sweepscope.pipeline.orchestration.report_runs import report_runs
from sweepscope.pipeline.orchestration.resources import HomeResource
from sweepscope.pipeline.orchestration.run_tags import TRIGGER_TAG, batch_tags, sweep_folders
from sweepscope.pipeline.orchestration.sweep_names import add_sweeps
from sweepscope.pipeline.orchestration.watched_paths import NOTHING_WATCHED, every_s, watched_paths, with_published
from sweepscope.pipeline.store.home import Home

# Retry all steps: values travel between steps in memory, so a retry from the failed one would find none of them.
RETRIES = {"dagster/max_retries": "2", "dagster/retry_strategy": "ALL_STEPS"}
BATCH_TAG = "sweepscope/batch"
_AFTER_FAILURE_S = 120.0
_AFTER_ANY_RUN_S = 1800.0
_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]

ingest_job = dg.define_asset_job(
    "ingest",
    selection=dg.AssetSelection.assets(*ASSETS),
    description="Read one batch, commit it to the lake, publish the store.",
    executor_def=dg.in_process_executor,
    tags=RETRIES,
)
load_job = dg.define_asset_job(
    "load",
    selection=dg.AssetSelection.assets("discovered", "parsed", "validated", "lake"),
    description="Read one batch and commit it to the lake; a later run publishes.",
    executor_def=dg.in_process_executor,
    tags=RETRIES,
)


@dg.sensor(job=ingest_job, minimum_interval_seconds=every_s(), default_status=dg.DefaultSensorStatus.RUNNING)
def new_runs(context: dg.SensorEvaluationContext, store_home: HomeResource) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """One run per batch of new or changed run directories under the watched paths."""
    yield from _requests(context, store_home, are_keyed=False)


def _requests(
    context: dg.SensorEvaluationContext | dg.ScheduleEvaluationContext, store_home: HomeResource, *, are_keyed: bool
) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """One run per batch of what is new, or why there is none.

    Requests of a schedule need run keys (`are_keyed`), which count within one tick. Those of a sensor have none: with
    one, Dagster would never launch a batch again whose run was interrupted, met a full disk or a file that it was not
    allowed to read. Such a batch is requested again after a pause.
    """
    paths = watched_paths()
    if not paths:
        yield dg.SkipReason(NOTHING_WATCHED)
        return
    for run_id in close_lost_runs(context.instance, store_home.home):
        context.log.warning("Run %s was killed; what it was to read is read again.", run_id)
    try:
        report_runs(context.instance, store_home.home)
        in_use = in_force(store_home.home)
        pending = _unread(context.instance, store_home, paths, in_use)
    except SweepscopeError as error:
        yield dg.SkipReason(str(error))
        return
    if isinstance(pending, dg.SkipReason):
        yield pending
        return
    add_sweeps(context.instance, sweep_folders(pending))
    work = {write_batch(store_home.home, batch, in_use.files): batch for batch in plan.batches(pending)}
    ids = list(work)
    waits_s = {batch_id: _wait_s(context.instance, batch_id) for batch_id in ids}
    if all(waits_s.values()):
        yield dg.SkipReason(
            f"Runs for all that is new were requested; again in {min(waits_s.values()):.0f} s if it is still new."
        )
    for batch_id, wait_s in waits_s.items():
        if not wait_s:
            key = batch_id if are_keyed else None
            config = run_config(in_use, batch_id=batch_id, with_published=with_published())
            trigger = "schedule" if are_keyed else "sensor"
            tags = {BATCH_TAG: batch_id, TRIGGER_TAG: trigger, **batch_tags(work[batch_id])}
            yield dg.RunRequest(run_key=key, run_config=config, tags=tags)


def _unread(
    instance: dg.DagsterInstance, store_home: HomeResource, paths: list[str], in_use: InForce
) -> pl.DataFrame | dg.SkipReason:
    """FOUND rows of what is new and read by no run yet, or why there are none.

    Units that an unfinished run reads are left out, even when they have grown since: runs that take longer than a tick
    would pile up.
    """
    pending = plan.pending(store_home.lake, paths, dialects=in_use.dialects, are_watched=True)
    unfinished = instance.get_run_records(dg.RunsFilter(statuses=_UNFINISHED))
    beat(store_home.home, files_waiting=pending.height, runs_unfinished=len(unfinished))
    if pending.is_empty():
        waiting = plan.awaited(paths)
        nothing = f"Nothing new under {', '.join(paths)}."
        return dg.SkipReason(f"{nothing} No file yet at {', '.join(waiting)}." if waiting else nothing)
    pending = pending.filter(~pl.col("unit").is_in(_being_read(unfinished, store_home.home)))
    return dg.SkipReason("Runs that are not finished read all that is new.") if pending.is_empty() else pending


def _being_read(records: Sequence[dg.RunRecord], home: Home) -> list[str]:
    """Units in the batches of unfinished runs; those that were killed have been closed before."""
    ids = [record.dagster_run.tags.get(BATCH_TAG) for record in records]
    return [unit for batch_id in ids if batch_id for unit in units_of(home, batch_id)]


def _wait_s(instance: dg.DagsterInstance, batch_id: str) -> float:
    """Seconds until a batch may be requested again; 0 for one that has no run yet, or whose run was killed."""
    records = instance.get_run_records(dg.RunsFilter(tags={BATCH_TAG: batch_id}), limit=1)
    if not records or LOST_TAG in records[0].dagster_run.tags:
        return 0.0
    pause_s = _AFTER_FAILURE_S if records[0].dagster_run.is_failure_or_canceled else _AFTER_ANY_RUN_S
    return max(0.0, records[0].update_timestamp.timestamp() + pause_s - time.time())


@dg.schedule(
    job=ingest_job,
    cron_schedule="17 * * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Off unless you switch it on: what the sensor would ask for, once an hour, where sensors are off.",
)
def hourly(context: dg.ScheduleEvaluationContext, store_home: HomeResource) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """The fallback where sensors are switched off: what the sensor would ask for, once an hour."""
    yield from _requests(context, store_home, are_keyed=True)


def run_config(
    in_use: InForce | None = None,
    *,
    batch_id: str = "",
    paths: list[str] | None = None,
    with_published: bool = True,
    workers: int = 0,
) -> dg.RunConfig:
    """The configuration of a run, the same for both assets that take one.

    Args:
        in_use: dialect files to read with; None: those of the home.
        batch_id: a stored batch to read; "": what is new under `paths`.
        paths: files, folders and URLs; empty: those that are watched.
        with_published: load the bundled results.
        workers: processes that read; 0: one per two cores, at most a few.
    """
    config = BatchConfig(
        batch_id=batch_id,
        paths=paths or [],
        with_published=with_published,
        workers=workers,
        dialects=in_use.files if in_use else None,
    )
    # Dagster prints every step event to the console by default; its page shows them anyway.
    loggers = {"console": {"config": {"log_level": "WARNING"}}}
    return dg.RunConfig(ops={"discovered": config, "parsed": config}, loggers=loggers)
