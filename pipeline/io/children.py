"""Server processes that import what this one does, nothing that lies around, and do not outlive it."""

from __future__ import annotations

import os
import signal
import site
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

_NEEDED = ("sweepscope", "dagster", "dagster_webserver", "duckdb", "polars", "streamlit")
_GRACE_S = 15.0


def import_path() -> list[str]:
    """Entries of `sys.path` that hold Python's libraries or what we need.

    The current directory is not among them, nor a PYTHONPATH that leads to a training repository, whose `data.py`
    would be imported in place of a library's: unless our own packages lie there. The standard library comes first:
    Dagster takes the first entry for the folder of a script, and leaves it out while it imports our assets.
    """
    folders = {Path(spec.origin).parent.parent for name in _NEEDED if (spec := find_spec(name)) and spec.origin}
    paths = sysconfig.get_paths()
    packages = {paths["purelib"], paths["platlib"], *site.getsitepackages()}
    standard = {Path(paths[name]) for name in ("stdlib", "platstdlib")}
    needed = {folder.resolve() for folder in folders}
    first, behind = [], []
    for entry in filter(None, sys.path):
        if entry in packages or Path(entry).resolve() in needed:
            behind.append(os.path.abspath(entry))
        elif entry.endswith(".zip") or Path(entry) in standard or Path(entry).parent in standard:
            first.append(os.path.abspath(entry))
    return [*first, *behind]


def start(
    module: str,
    *arguments: str,
    environment: Mapping[str, str],
    folder: Path,
    stdout: int | None = None,
    inherited: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """A process that runs one of our modules, whose main function calls `end_with_parent`.

    It has a session of its own: Ctrl-C reaches this process only, which stops it and its children in order. Its
    current directory is `folder`, which is ours: Streamlit and Dagster read settings from where they are started.

    Args:
        module: dotted name.
        arguments: command line.
        environment: variables beside those of this process.
        folder: the current directory.
        stdout: as in Popen.
        inherited: handles that stay open in it, such as that of a lock.
    """
    # Without PYTHONSAFEPATH, which reaches its children too, `-m` puts the current directory in front.
    settings = {"PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(import_path())}
    return subprocess.Popen(  # noqa: S603 -- our own module
        [sys.executable, "-P", "-m", module, *arguments],
        env={**os.environ, **settings, **environment},
        cwd=folder,
        stdin=subprocess.PIPE,  # closed by the kernel when this process ends, however it ends
        stdout=stdout,
        start_new_session=True,
        pass_fds=inherited,
    )


def end_with_parent() -> None:
    """Have this process end when the one that started it does: a killed one cannot stop its servers."""
    threading.Thread(target=_wait_for_end, name="end-with-parent", daemon=True).start()


def _wait_for_end() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os.killpg(os.getpgrp(), signal.SIGKILL)
