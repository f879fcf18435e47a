"""What keeps a home small: old records of Dagster, small files of the lake, releases that no reader needs.

`upkeep` runs it once an hour in Dagster's daemon, and `sweepscope store prune` at once. An ingest tidies the lake, and
leaves Dagster's records alone.
"""

# No `from __future__ import annotations` here: Dagster reads the annotations of ops at run time.
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dagster as dg

from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.operations.settings import read_settings
from sweepscope.pipeline.orchestration.resources import HomeResource
from sweepscope.pipeline.orchestration.retention import Pruned, has_due, prune
from sweepscope.pipeline.orchestration.run_memory import one_sentence
from sweepscope.pipeline.store import maintenance
from sweepscope.pipeline.store.home import Home

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Kept:
    """What upkeep did: to Dagster's records, and to the lake."""

    records: Pruned
    lake: maintenance.Tidied

    def as_dict(self) -> dict[str, Any]:
        """For JSON output and metadata."""
        return {**self.records.as_dict(), **self.lake.as_dict()}


def keep_up(home: Home, instance: dg.DagsterInstance) -> Kept:
    """Remove what is no longer needed. Raises StoreError, or UsageError for settings that are wrong."""
    records = prune(instance, home, read_settings(home).retention)
    done = Kept(records, maintenance.tidy(home))
    event(_LOG, logging.INFO, "upkeep_done", **done.as_dict())
    return done


@dg.op(
    name="keep_up",
    description="Removes Dagster's records by age and number, merges small files of the lake, and deletes releases and "
    "files of the lake that no reader needs.",
)
def _keep_up(context: dg.OpExecutionContext, store_home: HomeResource) -> dg.Output[None]:
    with one_sentence():
        done = keep_up(store_home.home, context.instance)
    return dg.Output(None, metadata=done.as_dict())


@dg.job(
    name="upkeep",
    executor_def=dg.in_process_executor,
    description="Keep the home small: prune Dagster's records, tidy the lake.",
    tags={"sweepscope/trigger": "schedule", "dagster/max_retries": "0"},  # the next hour tries again
)
def upkeep_job() -> None:
    """One op: what there is to do is seen when it runs."""
    _keep_up()


@dg.schedule(
    job=upkeep_job,
    cron_schedule="47 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Once an hour, where something is due: retention is set in operations.toml of the home.",
)
def upkeep(context: dg.ScheduleEvaluationContext, store_home: HomeResource) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """A run where records or files are due for removal, so that a quiet home gets no runs of it."""
    home = store_home.home
    try:
        is_due = has_due(context.instance, read_settings(home).retention) or maintenance.is_untidy(home)
    except SweepscopeError as error:
        yield dg.SkipReason(str(error))
        return
    yield dg.RunRequest() if is_due else dg.SkipReason("Nothing is due for removal.")
