"""Runs of `sweepscope ingest` in Dagster's records: their steps, facts and checks, at the times at which they happened.

An ingest keeps a file of each run (`run_record`); the watcher's sensor and its start report them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluation,
    AssetCheckEvaluationPlanned,
)
from dagster._core.events import DagsterEvent, DagsterEventType, StepMaterializationData
from dagster._core.execution.plan.objects import StepFailureData, StepSuccessData
from dagster._core.storage.dagster_run import DagsterRun
from dagster._utils.error import SerializableErrorInfo  # type: ignore[attr-defined]  # Dagster re-exports it there

from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.orchestration.assets import as_metadata
from sweepscope.pipeline.orchestration.run_record import RunRecord, StepRecord, kept, load
from sweepscope.pipeline.orchestration.steps import Check
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lock import exclusive

_LOG = logging.getLogger(__name__)

AT_ONCE = 10
"""Runs that a tick of the sensor reports at most: SQLite takes some tenths of a second for the events of one."""

_ENDS = {
    "succeeded": DagsterEventType.RUN_SUCCESS,
    "failed": DagsterEventType.RUN_FAILURE,
    "canceled": DagsterEventType.RUN_CANCELED,
}


def report_runs(instance: dg.DagsterInstance, home: Home, *, at_most: int = AT_ONCE) -> int:
    """Number of runs that Dagster knows from now on, the oldest of those that it did not.

    It may be killed at any point: the next call begins that run again.

    Raises:
        StoreError: another process reports them and does not come to an end.
    """
    if not kept(home):
        return 0
    with exclusive(home.dagster / "reporting.lock", "reporting runs to Dagster"):
        waiting = kept(home)[:at_most]
        for path in waiting:
            if run := load(path):
                _report(instance, run)
                event(_LOG, logging.INFO, "run_reported", run=run.run_id, job=run.job, status=run.status)
            else:
                event(_LOG, logging.WARNING, "record_not_readable", path=path)
            path.unlink(missing_ok=True)
        return len(waiting)


def _report(instance: dg.DagsterInstance, run: RunRecord) -> None:
    if instance.has_run(run.run_id):
        instance.delete_run(run.run_id)
    tags = {**run.tags, "dagster/max_retries": "0"}  # what it was to read is new to the next ingest, or to the watcher
    reported = DagsterRun(run.job, run.run_id, tags=tags, status=dg.DagsterRunStatus.NOT_STARTED)
    # `instance.add_run` would show it among the runs of today, whenever it was.
    instance.run_storage.add_historical_run(reported, datetime.fromtimestamp(run.began_at, UTC))
    for happened_at, what in _events(run):
        instance.report_dagster_event(what, run.run_id, timestamp=happened_at)


def _events(run: RunRecord) -> Iterator[tuple[float, DagsterEvent]]:
    """Seconds since 1970, and what happened then, in order."""
    yield run.began_at, _event(run, DagsterEventType.RUN_START)
    for step in run.steps:
        key = dg.AssetKey(step.name)
        yield step.began_at, _event(run, DagsterEventType.STEP_START, step)
        if step.is_failed:
            error = SerializableErrorInfo(run.error, [], None)
            failed = StepFailureData(error=error, user_failure_data=None)  # type: ignore[no-untyped-call]  # its constructor is not annotated
            yield step.ended_at, _event(run, DagsterEventType.STEP_FAILURE, step, failed)
            continue
        for check in step.checks:
            planned = AssetCheckEvaluationPlanned(asset_key=key, check_name=check.name)
            yield step.ended_at, _event(run, DagsterEventType.ASSET_CHECK_EVALUATION_PLANNED, step, planned)
            yield step.ended_at, _event(run, DagsterEventType.ASSET_CHECK_EVALUATION, step, _evaluation(key, check))
        made = StepMaterializationData(dg.AssetMaterialization(key, metadata=as_metadata(step.facts)))
        yield step.ended_at, _event(run, DagsterEventType.ASSET_MATERIALIZATION, step, made)
        done = StepSuccessData(duration_ms=1e3 * (step.ended_at - step.began_at))  # type: ignore[no-untyped-call]  # its constructor is not annotated
        yield step.ended_at, _event(run, DagsterEventType.STEP_SUCCESS, step, done)
    yield run.ended_at, _event(run, _ENDS[run.status], message=run.error)


def _event(
    run: RunRecord, kind: DagsterEventType, step: StepRecord | None = None, data: object = None, *, message: str = ""
) -> DagsterEvent:
    return DagsterEvent(
        event_type_value=kind.value,
        job_name=run.job,
        step_key=step.name if step else None,
        event_specific_data=data,  # type: ignore[arg-type]  # one type for each kind of event
        message=message or None,
    )


def _evaluation(asset: dg.AssetKey, check: Check) -> AssetCheckEvaluation:
    severity = dg.AssetCheckSeverity.ERROR if check.is_blocking else dg.AssetCheckSeverity.WARN
    return AssetCheckEvaluation(
        asset_key=asset,
        check_name=check.name,
        passed=check.passed,
        metadata={name: dg.MetadataValue.int(count) for name, count in check.counts.items()},
        severity=severity,
        blocking=check.is_blocking,
    )
