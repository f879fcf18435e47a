"""The Dagster instance of a home: its run history, without telemetry and without a dialog that asks for an address."""

from __future__ import annotations

import logging
import os

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from sweepscope.pipeline.operations.dagster_settings import write_settings
from sweepscope.pipeline.store.durable_files import storing
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lock import exclusive

LOCATION = "sweepscope.pipeline.orchestration.definitions"
"""The module from which Dagster's processes load our definitions."""


def prepare(home: Home) -> dict[str, str]:
    """Environment in which Dagster's processes find the instance, whose settings are written on the way.

    Raises OSError and leaves no partial file then: Dagster would read it as one that allows telemetry.
    """
    write_settings(home)
    return {"DAGSTER_HOME": str(home.dagster), "SWEEPSCOPE_HOME": str(home.path)}


def open_instance(home: Home) -> dg.DagsterInstance:
    """The instance of a home. Raises StoreError where its records cannot be opened."""
    os.environ.update(prepare(home))
    # Pools log a traceback of a Ctrl-C that arrives while they close a connection, and raise it as well.
    for pool in (NullPool, QueuePool):
        logging.getLogger(f"{pool.__module__}.{pool.__name__}").addFilter(_is_no_interrupt)
    # Two processes that create the tables at the same time fail.
    with (
        exclusive(home.dagster / "opening.lock", "opening Dagster's records"),
        storing(home.dagster, "open", SQLAlchemyError),
    ):
        return dg.DagsterInstance.from_config(str(home.dagster))


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))
