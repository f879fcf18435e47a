"""Runs whose process was killed: Dagster takes them for unfinished until somebody says otherwise.

A killed process reports nothing, and Dagster's launcher on one machine does not ask whether it lives. Ten such runs
would fill the queue, and the watcher would wait for them for ever. So each run holds a lock file while it works, which
the kernel releases when the process ends, however it ends.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import dagster as dg

from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.io.fault_points import reach
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lock import exclusive, holder

_LOG = logging.getLogger(__name__)

LOST_TAG = "sweepscope/lost"
"""Marks a run that was closed because its process was gone."""

STARTING_S = 90.0
"""How long a run may show no sign of its process: it takes seconds to start, on a busy machine a minute."""

_STATUSES = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_MESSAGE = "The process of this run ended without a result: it was killed, or the machine restarted. Nothing is lost."


@contextmanager
def working(home: Home, run_id: str) -> Iterator[None]:
    """Hold the lock of a run while the block works on it."""
    path = _lock(home, run_id)
    with exclusive(path, f"run {run_id}"):
        reach("run.started")
        yield
    path.unlink(missing_ok=True)


def close_lost_runs(instance: dg.DagsterInstance, home: Home, *, starting_s: float = STARTING_S) -> list[str]:
    """Ids of the unfinished runs that no process works on, which count as failed from now on.

    Args:
        instance: Dagster's records.
        home: whose runs they are.
        starting_s: how long a run without a lock file may be about to start.
    """
    closed = []
    for record in instance.get_run_records(dg.RunsFilter(statuses=_STATUSES)):
        run, path = record.dagster_run, _lock(home, record.dagster_run.run_id)
        has_begun = path.exists()
        is_starting = not has_begun and time.time() - record.update_timestamp.timestamp() < starting_s
        if is_starting or holder(path):
            continue
        # The watcher asks for the batch again at once, so Dagster need not.
        instance.add_run_tags(run.run_id, {LOST_TAG: "true", "dagster/max_retries": "0"})
        instance.report_run_failed(run, _MESSAGE)
        event(_LOG, logging.WARNING, "lost_run_closed", run=run.run_id, job=run.job_name, status=run.status.value)
        closed.append(run.run_id)
        with suppress(OSError):
            path.unlink(missing_ok=True)
    return closed


def _lock(home: Home, run_id: str) -> Path:
    return home.dagster / "working" / f"{run_id}.lock"
