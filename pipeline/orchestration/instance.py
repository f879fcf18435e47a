"""The Dagster instance of a home: its run history, without telemetry and without a dialog that asks for an address."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from pathlib import Path

import dagster as dg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

from sweepscope.pipeline.store.durable_files import storing, write_new
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lock import exclusive

LOCATION = "sweepscope.pipeline.orchestration.definitions"
"""The module from which Dagster's processes load our definitions."""

_SETTINGS = """\
telemetry:
  enabled: false
nux:
  enabled: false
run_retries:
  enabled: true
  max_retries: 2
run_monitoring:
  enabled: false
"""
# For runs in this process: what steps print is not captured. To capture it, Dagster starts two more processes per run,
# which print tracebacks when Ctrl-C ends all processes of the terminal.
_IN_PROCESS_NAME = "in_process.yaml"
_IN_PROCESS_SETTINGS = f"""\
{_SETTINGS}compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""


def prepare(home: Home) -> dict[str, str]:
    """Environment in which Dagster's processes find the instance, whose settings are written on the way.

    Raises OSError and leaves no partial file then: Dagster would read it as one that allows telemetry.
    """
    home.dagster.mkdir(parents=True, exist_ok=True)
    _write_once(home.dagster / "dagster.yaml", _SETTINGS)
    return {"DAGSTER_HOME": str(home.dagster), "SWEEPSCOPE_HOME": str(home.path)}


def _write_once(path: Path, text: str) -> None:
    if not path.exists():
        with suppress(FileExistsError):  # another process has written it
            write_new(path, text)


def open_instance(home: Home) -> dg.DagsterInstance:
    """The instance, for runs in this process. Raises StoreError where its records cannot be opened."""
    os.environ.update(prepare(home))
    # The pool logs a traceback of a Ctrl-C that arrives while it closes a connection, and raises it as well.
    logging.getLogger(f"{NullPool.__module__}.{NullPool.__name__}").addFilter(_is_no_interrupt)
    # Two processes that create the tables at the same time fail.
    with (
        exclusive(home.dagster / "opening.lock", "opening Dagster's records"),
        storing(home.dagster, "open", SQLAlchemyError),
    ):
        _write_once(home.dagster / _IN_PROCESS_NAME, _IN_PROCESS_SETTINGS)
        return dg.DagsterInstance.from_config(str(home.dagster), _IN_PROCESS_NAME)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))
