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
# For runs in this process. What steps print goes where the caller's output goes: kept by Dagster, each run would start
# two more processes, which say a traceback of their own when Ctrl-C ends all that the terminal runs.
_OWN_NAME = "in_process.yaml"
_OWN_SETTINGS = f"""\
{_SETTINGS}compute_logs:
  module: dagster._core.storage.noop_compute_log_manager
  class: NoOpComputeLogManager
"""


def prepare(home: Home) -> dict[str, str]:
    """Write the instance's settings and return the environment in which Dagster's own processes find it.

    Raises OSError, and leaves no part of a file then: Dagster would take it for one that allows telemetry.
    """
    home.dagster.mkdir(parents=True, exist_ok=True)
    _write_once(home.dagster / "dagster.yaml", _SETTINGS)
    return {"DAGSTER_HOME": str(home.dagster), "SWEEPSCOPE_HOME": str(home.path)}


def _write_once(path: Path, text: str) -> None:
    if not path.exists():
        with suppress(FileExistsError):  # another process was faster
            write_new(path, text)


def open_instance(home: Home) -> dg.DagsterInstance:
    """The instance, for runs in this process. Raises StoreError where its records cannot be opened."""
    os.environ.update(prepare(home))
    # It logs a traceback of a Ctrl-C that falls into its closing a connection, and then raises it as well.
    logging.getLogger(f"{NullPool.__module__}.{NullPool.__name__}").addFilter(_is_no_interrupt)
    # Two processes that create its tables at the same time get in each other's way.
    with (
        exclusive(home.dagster / "opening.lock", "opening Dagster's records"),
        storing(home.dagster, "open", SQLAlchemyError),
    ):
        _write_once(home.dagster / _OWN_NAME, _OWN_SETTINGS)
        return dg.DagsterInstance.from_config(str(home.dagster), _OWN_NAME)


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))
