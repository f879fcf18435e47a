"""Dagster's daemon, which runs the sensor and the schedule and launches runs."""

from __future__ import annotations

from dagster._daemon.cli import create_dagster_daemon_cli

from sweepscope.pipeline.io.children import end_with_parent
from sweepscope.pipeline.orchestration.instance import LOCATION


def main() -> None:
    """Run until the parent process ends."""
    end_with_parent()
    create_dagster_daemon_cli()(["run", "-m", LOCATION, "--log-level", "error", "--code-server-log-level", "error"])


if __name__ == "__main__":
    main()
