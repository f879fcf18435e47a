"""Server processes import nothing that lies around, and do not outlive what started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from sweepscope.pipeline.io import children
from tests.paths import ROOT

_PARENT = """
import os, sys, time
from pathlib import Path
from sweepscope.pipeline.io import children
print(children.start("acme_server", environment={"PYTHONPATH": sys.argv[1]}, folder=Path("/")).pid, flush=True)
time.sleep(600)
"""
_SERVER = """
import signal, time
from sweepscope.pipeline.io.children import end_with_parent
end_with_parent()
%s
time.sleep(600)
"""


def wait_until_gone(pid: int, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(ProcessLookupError):
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat")
            if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
                return True  # nobody has waited for it, but it runs no more
            time.sleep(0.05)
            continue
        return True
    return False


def killed_parent(folder: Path, server: str) -> int:
    """Process id of a server whose parent was killed."""
    (folder / "acme_server.py").write_text(server, encoding="utf-8")
    path = os.pathsep.join([str(folder), *children.import_path()])
    with subprocess.Popen([sys.executable, "-c", _PARENT, path], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    return pid


def test_a_server_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    assert wait_until_gone(killed_parent(tmp_path, _SERVER % ""))


def test_a_server_that_does_not_listen_is_killed_with_all_it_started(tmp_path: Path) -> None:
    deaf = "from sweepscope.pipeline.io import children; children._GRACE_S = 0.5\nsignal.signal(15, signal.SIG_IGN)"
    started = f"import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', {_SERVER % ''!r}])"
    written = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))"
    server = killed_parent(tmp_path, _SERVER % f"{deaf}\n{started}\n{written}")
    assert wait_until_gone(server)
    if (tmp_path / "pid").exists():  # else the parent's end came first
        assert wait_until_gone(int((tmp_path / "pid").read_text()))


def test_code_that_lies_around_is_not_imported(tmp_path: Path) -> None:
    """In the current directory and on a PYTHONPATH, as training repositories have it."""
    for name in ("data", "gql", "graphql", "polars", "duckdb", "streamlit", "acme"):
        (tmp_path / f"{name}.py").write_text("open('/dev/stdout', 'w').write(f'{__name__} ran')", encoding="utf-8")
    code = """
import sys
from pathlib import Path
from sweepscope.pipeline.io import children
sys.exit(children.start("sweepscope", "--version", environment={}, folder=Path.cwd()).wait())
"""
    kept = os.pathsep.join([*children.import_path(), str(tmp_path), ""])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": kept},
        capture_output=True,
        text=True,
        check=True,
    )
    assert " ran" not in done.stdout


def test_the_command_line_imports_nothing_from_the_current_directory(tmp_path: Path) -> None:
    for name in ("data", "gql", "polars", "duckdb", "pandera", "argparse"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(f'{__name__} ran')", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(children.import_path())}
    done = subprocess.run(
        [sys.executable, "-m", "sweepscope", "estimate", "--help"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, " ran" in done.stderr) == (0, False), done.stderr


def test_a_package_that_pythonpath_leads_to_is_not_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster takes the first entry for a script's folder and imports our assets without it."""
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    first, *behind = children.import_path()
    assert Path(first) != ROOT
    assert str(ROOT) in behind
