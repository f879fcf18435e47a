"""Records of runs in this process, for Dagster: what each step did, one JSON file per run below the home.

Importing Dagster and writing its two hundred events takes longer than reading ten run directories. So an ingest only
keeps a record, and `report_runs` hands it to Dagster where that runs anyway. Nothing but Dagster's page depends on it.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from sweepscope.pipeline.errors import StoreError, SweepscopeError, UnreadableError, WorkerError
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.orchestration.steps import Check, Step
from sweepscope.pipeline.store.durable_files import storing, write_over
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.text.secrets import hide

_LOG = logging.getLogger(__name__)

Value = TypeVar("Value")
Status = Literal["running", "succeeded", "failed", "canceled"]

PASSING = (StoreError, UnreadableError, WorkerError)
"""Errors that a retry may not meet again: a lock, a full disk, a file system that is away."""

RETRIES = 2
RETRY_AFTER_S = 1.0
"""Before the first retry; twice as long before the second."""

KEPT = 200
"""Records that wait for a Dagster to report them to; older ones go, as Dagster's own records do."""


class CheckFailedError(SweepscopeError):
    """So many rows of a table break their schema that a parser must be wrong."""


@dataclass
class StepRecord:
    """What a step did: its facts and checks, and when it began and ended, in seconds since 1970.

    `is_failed`: it gave nothing; the error is that of the run.
    """

    name: str
    began_at: float
    ended_at: float
    facts: Mapping[str, str | int | float] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    is_failed: bool = False


@dataclass
class RunRecord:
    """A run of a job of `jobs` in this process, as far as it has come. Times are seconds since 1970.

    `error`: the sentence with which it ended, without credentials.
    """

    run_id: str
    job: str
    tags: Mapping[str, str]
    began_at: float
    ended_at: float = 0.0
    status: Status = "running"
    error: str = ""
    steps: list[StepRecord] = field(default_factory=list)

    def do(self, name: str, work: Callable[[], Step[Value]], *, retries: int = 0) -> Value:
        """The value of a step, which is noted; tried again after errors that may pass.

        Raises:
            CheckFailedError: a blocking check failed. Else what the last try raised.
        """
        began_at = time.time()
        try:
            step = _tried(name, work, retries)
        except Exception:
            self.steps.append(StepRecord(name, began_at, time.time(), is_failed=True))
            raise
        self.steps.append(StepRecord(name, began_at, time.time(), step.facts, step.checks))
        for check in step.checks:
            if check.is_blocking and not check.passed:
                counts = ", ".join(f"{count:,} {what}" for what, count in check.counts.items())
                raise CheckFailedError(
                    f"The check {check.name} failed ({counts}): a parser must be wrong, so nothing of this batch was "
                    "stored. Please report it."
                )
        return step.value


@contextmanager
def recorded(home: Home, job: str, tags: Mapping[str, str]) -> Iterator[RunRecord]:
    """A record of the run that the block does, kept at its end however it ends. Raises StoreError when it cannot be."""
    run = RunRecord(str(uuid.uuid4()), job, dict(tags), time.time())
    try:
        yield run
        run.status = "succeeded"
    except Exception as error:
        run.status, run.error = "failed", hide(f"{type(error).__name__}: {error}")
        raise
    except BaseException:
        run.status = "canceled"
        raise
    finally:
        run.ended_at = time.time()
        _keep(home, run)


def kept(home: Home) -> list[Path]:
    """Files of records that were not reported yet, oldest first."""
    return sorted(_folder(home).glob("*.json"))


def load(path: Path) -> RunRecord | None:
    """The record in a file; None where it is damaged, or of another version."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        steps = content.pop("steps")
        checks = [tuple(Check(**check) for check in step.pop("checks")) for step in steps]
        noted = [StepRecord(**step, checks=found) for step, found in zip(steps, checks, strict=True)]
        return RunRecord(**content, steps=noted)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _tried(name: str, work: Callable[[], Step[Value]], retries: int) -> Step[Value]:
    for attempt in range(retries):
        try:
            return work()
        except PASSING as error:
            wait_s = RETRY_AFTER_S * 2**attempt
            event(_LOG, logging.WARNING, "step_retried", step=name, after_s=wait_s, reason=error)
            time.sleep(wait_s)
    return work()


def _keep(home: Home, run: RunRecord) -> None:
    folder = _folder(home)
    # By the time of its end, so that names are in the order in which runs are reported.
    path = folder / f"{run.ended_at:017.6f}-{run.run_id}.json"
    with storing(folder, "write to"):
        write_over(path, json.dumps(asdict(run)))
        for old in kept(home)[:-KEPT]:
            old.unlink(missing_ok=True)


def _folder(home: Home) -> Path:
    return home.dagster / "unreported"
