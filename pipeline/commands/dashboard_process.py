"""What the dashboard writes, from a process of its own: it lies above the command line, which starts it by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from sweepscope.pipeline.errors import SweepscopeError, UsageError
from sweepscope.pipeline.io.children import import_path
from sweepscope.pipeline.store.home import Home


def written(module: str, home: Home, *arguments: str) -> dict[str, Any]:
    """The JSON document that a module of the dashboard prints on what it wrote. Raises the error that it printed."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", f"sweepscope.dashboard.{module}", *arguments],
        env={
            **os.environ,
            "PYTHONSAFEPATH": "1",
            "PYTHONPATH": os.pathsep.join(import_path()),
            "SWEEPSCOPE_HOME": str(home.path),
        },
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise _error(done)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _error(done: subprocess.CompletedProcess[str]) -> SweepscopeError:
    """The error that a failed process printed: its last line, which a Python that fails ends with too."""
    message = (done.stderr.strip().splitlines() or ["it was stopped"])[-1]
    return UsageError(message) if done.returncode == UsageError.exit_code else SweepscopeError(message)
