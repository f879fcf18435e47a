"""The command line called from tests: in this process, or as a process of its own, which takes a second to start."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from sweepscope.pipeline.__main__ import main

Done = subprocess.CompletedProcess[str]


def called(*args: str | Path, home: Path | None = None) -> Done:
    """What a verb says and returns, called in this process."""
    argv = [*map(str, args)]
    with (
        patch.dict(os.environ, {"SWEEPSCOPE_HOME": str(home)} if home else {}),
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
    ):
        code = main(argv)
    return subprocess.CompletedProcess(argv, code, out.getvalue(), err.getvalue())


def started(*args: str | Path, home: Path | None = None, prefix: tuple[str, ...] = ()) -> Done:
    """The same from a process of its own, below the command `prefix`."""
    environment = {**os.environ, **({"SWEEPSCOPE_HOME": str(home)} if home else {}), "RUST_BACKTRACE": "0"}
    command = [*prefix, sys.executable, "-m", "sweepscope", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240, check=False)


def assert_one_line_error(done: Done, *parts: str, code: int) -> None:
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("sweepscope:")]
    assert len(errors) == 1, done.stderr
    for part in parts:
        assert part in errors[0]
