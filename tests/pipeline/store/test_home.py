"""Where the home is, and what is said when it cannot be there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sweepscope.pipeline.errors import StoreError, UsageError
from sweepscope.pipeline.store.home import Home, home_option


def test_the_flag_wins_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPSCOPE_HOME", str(tmp_path / "environment"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    assert Home.resolve(str(tmp_path / "flag")).path == tmp_path / "flag"
    assert Home.resolve(None).path == tmp_path / "environment"
    monkeypatch.delenv("SWEEPSCOPE_HOME")
    assert Home.resolve(None).path == tmp_path / "xdg" / "sweepscope"


def test_without_any_setting_it_is_below_the_user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWEEPSCOPE_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Home.resolve(None).path == tmp_path / ".local" / "share" / "sweepscope"


def test_is_created_and_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    home = Home.resolve("deep/er")
    assert home.path == tmp_path / "deep" / "er"
    assert home.path.is_dir()


def test_expands_the_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Home.resolve("~/results").path == tmp_path / "results"


@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_file_is_no_home(tmp_path: Path, below: str) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UsageError, match=r"notes\.txt.* is not a directory\. Give another directory with --home"):
        Home.resolve(f"{tmp_path}/notes.txt{below}")


def test_a_url_is_no_home() -> None:
    with pytest.raises(UsageError, match="s3://bucket/home is a URL; it has to be a local directory"):
        Home.resolve("s3://bucket/home")


@pytest.mark.parametrize("name", ["my [lab]", "50%25", "star*", "back\\slash", "two\nlines"])
def test_refuses_what_the_lake_cannot_hold(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot have") as refused:
        Home.resolve(str(tmp_path / name))
    assert "\n" not in str(refused.value)
    assert not (tmp_path / name).exists()


def test_says_when_it_cannot_be_created() -> None:
    with pytest.raises(StoreError, match="The home /proc/nowhere cannot be created"):
        Home.resolve("/proc/nowhere")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_says_when_it_is_not_writable(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="is not writable for you"):
        Home.resolve(str(tmp_path))
    assert Home.resolve(str(tmp_path), for_writing=False).path == tmp_path


def test_everything_lies_below_it(tmp_path: Path) -> None:
    home = Home.resolve(str(tmp_path))
    places = (home.lake, home.table("runs"), home.releases, home.lake_lock, home.store, home.link, home.store_lock)
    for place in (*places, home.batches, home.dagster):
        assert place.is_relative_to(tmp_path)


def test_only_an_unusual_home_has_to_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert home_option(tmp_path / "sweepscope") == ""
    assert home_option(tmp_path / "my runs") == f" --home '{tmp_path}/my runs'"
