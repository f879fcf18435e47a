"""A home is its owner's, whatever the umask; a shared one is the group's as well, and never everybody's."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sweepscope.pipeline.store import home_access
from sweepscope.pipeline.store.home import Home
from tests.paths import ROOT
from tests.picotron_runs import picotron_run


@pytest.fixture(autouse=True)
def _umask(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(home_access, "_GIVEN_UMASK", 0o022)
    monkeypatch.delenv(home_access.VARIABLE, raising=False)
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(home: Path) -> set[tuple[str, str]]:
    """Kinds of entries and their modes, the home's own included; links have none."""
    found = [home, *home.rglob("*")]
    return {
        ("folder" if path.is_dir() else "file", f"{stat.S_IMODE(path.stat().st_mode):04o}")
        for path in found
        if not path.is_symlink()
    }


def fill(folder: Path) -> None:
    """What an older version left: folders and files that all may read."""
    (folder / "lake" / "runs").mkdir(parents=True)
    (folder / "lake" / "runs" / "part.parquet").write_text("x")
    (folder / "store").mkdir()
    (folder / "store" / "link").symlink_to("nowhere")


def ingest(home: Path, *options: str, umask: int = 0o022, **environment: str) -> str:
    """What an ingest in a process of its own prints on stderr."""
    run = home.parent / "sweep"
    if not run.exists():
        picotron_run(run)
    done = subprocess.run(
        [sys.executable, "-m", "sweepscope", "ingest", str(run), "--home", str(home), "--no-published", *options],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        preexec_fn=lambda: os.umask(umask) and None,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stderr


def test_every_file_of_an_ingest_is_its_owners_and_sharing_lasts(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert "home_was_open" not in ingest(home, umask=0o000)
    assert (home / "dagster").is_dir()
    assert modes(home) == {("folder", "0700"), ("file", "0600")}
    ingest(home, "--shared")
    assert modes(home) == {("folder", "0750"), ("file", "0640")}
    (tmp_path / "sweep" / "dp2_tp1_pp1_cp1_mbs1_ga4_sl128" / "status.txt").write_text("fail")
    ingest(home, umask=0o002)  # without the option
    written = {mode for _, mode in modes(home)}
    assert written <= {"0750", "0640", "0770", "0660"}
    assert "0660" in written


def test_an_open_home_is_closed_and_that_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    home = tmp_path / "home"
    fill(home)
    assert ("file", "0644") in modes(home)
    with caplog.at_level(logging.WARNING, "sweepscope"):
        Home.resolve(str(home))
        Home.resolve(str(home))
    assert modes(home) == {("folder", "0700"), ("file", "0600")}
    assert [record.getMessage().split(" ")[0] for record in caplog.records] == ["event=home_was_open"]


def test_a_link_to_a_home_is_followed(tmp_path: Path) -> None:
    fill(tmp_path / "home")
    (tmp_path / "link").symlink_to("home")
    Home.resolve(str(tmp_path / "link"))
    assert modes(tmp_path / "home") == {("folder", "0700"), ("file", "0600")}


def test_reading_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path / "home")
    before = modes(tmp_path / "home")
    Home.resolve(str(tmp_path / "home"), for_writing=False)
    assert modes(tmp_path / "home") == before
    assert os.umask(0o022) == 0o022


def test_without_its_marker_a_shared_home_is_private_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv(home_access.VARIABLE, "1")
    Home.resolve(str(home))
    monkeypatch.delenv(home_access.VARIABLE)
    fill(home)
    Home.resolve(str(home))
    assert ("folder", "0750") in modes(home)
    (home / home_access.MARKER).unlink()
    Home.resolve(str(home))
    assert modes(home) == {("folder", "0700"), ("file", "0600")}


def test_a_folder_with_files_of_others_stays_as_it_is_around_ours(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "train.log").write_text("x")
    (tmp_path / "train.log").chmod(0o644)
    fill(tmp_path)
    Home.resolve(str(tmp_path))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "train.log").stat().st_mode) == 0o644
    assert modes(tmp_path / "lake") == {("folder", "0700"), ("file", "0600")}
