"""The Dagster instance of a home: its run history, with telemetry off."""

from __future__ import annotations

import os
from contextlib import suppress

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError

from pipeline.store.disk import storing, write_new
from pipeline.store.home import Home
from pipeline.store.lock import exclusive

_SETTINGS = """\
telemetry:
  enabled: false
run_retries:
  enabled: true
  max_retries: 2
run_monitoring:
  enabled: false
"""


def prepare(home: Home) -> dict[str, str]:
    """Write the instance's settings and return the environment in which Dagster's own processes find it.

    Raises OSError, and leaves no part of a file then: Dagster would take it for one that allows telemetry.
    """
    home.dagster.mkdir(parents=True, exist_ok=True)
    settings = home.dagster / "dagster.yaml"
    if not settings.exists():
        with suppress(FileExistsError):  # another process was faster
            write_new(settings, _SETTINGS)
    return {"DAGSTER_HOME": str(home.dagster), "SWEEPSCOPE_HOME": str(home.path)}


def open_instance(home: Home) -> dg.DagsterInstance:
    """The instance, for runs in this process. Raises StoreError where its records cannot be opened."""
    os.environ.update(prepare(home))
    # Two processes that create its tables at the same time get in each other's way.
    with (
        exclusive(home.dagster / "opening.lock", "opening Dagster's records"),
        storing(home.dagster, "open", SQLAlchemyError),
    ):
        return dg.DagsterInstance.get()
