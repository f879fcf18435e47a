"""The Dagster instance of a home: its run history, without telemetry and without a dialog that asks for an address."""

from __future__ import annotations

import logging
import os
from typing import Any

import dagster as dg
import yaml
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool, QueuePool

from sweepscope.pipeline.operations.dagster_settings import read_dagster_settings, write_settings
from sweepscope.pipeline.store.durable_files import storing, write_over
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lock import exclusive

LOCATION = "sweepscope.pipeline.orchestration.definitions"
"""The module from which Dagster's processes load our definitions."""

# For runs in this process: what steps print is not captured. To capture it, Dagster starts two more processes per run,
# which print tracebacks when Ctrl-C ends all processes of the terminal.
_IN_PROCESS_NAME = "in_process.yaml"
_NO_CAPTURE = {
    "compute_logs": {
        "module": "dagster._core.storage.noop_compute_log_manager",
        "class": "NoOpComputeLogManager",
    }
}
_STORAGES = {"storage", "run_storage", "event_log_storage", "schedule_storage"}


def prepare(home: Home) -> dict[str, str]:
    """Environment in which Dagster's processes find the instance, whose settings are written on the way.

    Raises OSError and leaves no partial file then: Dagster would read it as one that allows telemetry.
    """
    write_settings(home)
    return {"DAGSTER_HOME": str(home.dagster), "SWEEPSCOPE_HOME": str(home.path)}


def _write_in_process_settings(home: Home) -> None:
    """Those of `dagster.yaml`, with its storage and limits, but for what steps print."""
    given = read_dagster_settings(home)
    text = yaml.safe_dump({**({} if _STORAGES & given.keys() else _open_sqlite(home)), **given, **_NO_CAPTURE})
    path = home.dagster / _IN_PROCESS_NAME
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_over(path, text)


def _open_sqlite(home: Home) -> dict[str, Any]:
    """In place of the storage that Dagster has by default: the same files."""
    storage = {"module": f"{__package__}.sqlite_storage", "class": "OpenSqliteStorage"}
    return {"storage": {"custom": {**storage, "config": {"base_dir": str(home.dagster)}}}}


def open_instance(home: Home) -> dg.DagsterInstance:
    """The instance, for runs in this process. Raises StoreError where its records cannot be opened."""
    os.environ.update(prepare(home))
    # Pools log a traceback of a Ctrl-C that arrives while they close a connection, and raise it as well.
    for pool in (NullPool, QueuePool):
        logging.getLogger(f"{pool.__module__}.{pool.__name__}").addFilter(_is_no_interrupt)
    # Two processes that create the tables at the same time fail.
    with (
        exclusive(home.dagster / "opening.lock", "opening Dagster's records"),
        storing(home.dagster, "open", SQLAlchemyError),
    ):
        _write_in_process_settings(home)
        return dg.DagsterInstance.from_config(str(home.dagster), _IN_PROCESS_NAME)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))
