"""One writer at a time, and the others learn who it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.lock import exclusive

_HOLDER = """
import sys, time
from pathlib import Path
from sweepscope.pipeline.store.lock import exclusive
with exclusive(Path(sys.argv[1]), "committing"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path / "lock")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_says_who_holds_it_and_what_to_do(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    expected = rf"process {holder.pid} on .* \(committing, since .* UTC\)\. Wait until it ends or stop it"
    with pytest.raises(StoreError, match=expected), exclusive(tmp_path / "lock", "publishing", wait_s=0.1):
        pytest.fail("two holders")


def test_a_killed_holder_does_not_keep_it(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    os.kill(holder.pid, signal.SIGKILL)
    with exclusive(tmp_path / "lock", "publishing", wait_s=10):
        assert f"process {os.getpid()}" in (tmp_path / "lock").read_text()


def test_is_free_again_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), exclusive(tmp_path / "lock", "failing"):
        raise RuntimeError
    with exclusive(tmp_path / "lock", "trying again", wait_s=0):
        pass


def test_excludes_within_one_process_too(tmp_path: Path) -> None:
    with exclusive(tmp_path / "lock", "outer"), pytest.raises(StoreError), exclusive(tmp_path / "lock", "in", wait_s=0):
        pytest.fail("two holders")


def test_says_when_the_lock_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="Cannot lock"), exclusive(tmp_path / "file" / "lock", "trying"):
        pytest.fail("locked")
