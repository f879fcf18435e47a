"""The settings of a home's Dagster instance."""

from __future__ import annotations

import resource
import sqlite3
from contextlib import suppress
from pathlib import Path

import dagster as dg
import pytest
import yaml
from sqlalchemy import create_engine
from sqlalchemy.pool import NullPool

from sweepscope.pipeline.orchestration.instance import open_instance, prepare
from sweepscope.pipeline.store.home import Home


def test_settings_that_a_full_disk_cut_are_written_whole_the_next_time(tmp_path: Path) -> None:
    home = Home.resolve(str(tmp_path / "home"))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            prepare(home)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    # Dagster takes half a file, or an empty one, for one that leaves telemetry on.
    assert prepare(home)["DAGSTER_HOME"] == str(home.dagster)
    assert yaml.safe_load((home.dagster / "dagster.yaml").read_text())["telemetry"] == {"enabled": False}
    assert [path.name for path in home.dagster.iterdir()] == ["dagster.yaml"]


def test_a_run_in_this_process_starts_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that keep what steps print get the Ctrl-C of a terminal as well, and each says a traceback."""
    for name in ("DAGSTER_HOME", "SWEEPSCOPE_HOME"):
        monkeypatch.setenv(name, "")
    started: list[object] = []
    monkeypatch.setattr("subprocess.Popen", lambda command, *_, **__: started.append(command))
    with open_instance(Home.resolve(str(tmp_path / "home"))) as instance:
        assert not instance.telemetry_enabled
        with instance.compute_log_manager.capture_logs(["run", "step"]):
            pass
    assert not started


@dg.asset
def made() -> int:
    return 1


def test_records_are_written_over_open_files_and_read_by_dagsters_own_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DAGSTER_HOME", "SWEEPSCOPE_HOME"):
        monkeypatch.setenv(name, "")
    home = Home.resolve(str(tmp_path / "home"))
    opened: list[object] = []
    connect = sqlite3.dbapi2.connect
    with open_instance(home) as instance:
        first, second = (dg.materialize([made], instance=instance, tags={"a": "b"}) for _ in range(2))
        monkeypatch.setattr(sqlite3.dbapi2, "connect", lambda *a, **k: opened.append(a) or connect(*a, **k))
        third = dg.materialize([made], instance=instance)
        assert len(opened) < 5, "a connection for each of its events"
    with dg.DagsterInstance.from_config(str(home.dagster)) as theirs:
        assert type(theirs.event_log_storage).__module__.startswith("dagster.")
        assert {record.dagster_run.run_id for record in theirs.get_run_records()} == {
            one.run_id for one in (first, second, third)
        }
        for one in (first, second, third):
            assert len(theirs.all_logs(one.run_id)) >= len(one.all_events)
        assert theirs.get_latest_materialization_event(dg.AssetKey("made")).run_id == third.run_id  # type: ignore[union-attr]  # there is one


def test_a_storage_of_the_users_choice_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DAGSTER_HOME", "SWEEPSCOPE_HOME"):
        monkeypatch.setenv(name, "")
    home = Home.resolve(str(tmp_path / "home"))
    prepare(home)
    settings = home.dagster / "dagster.yaml"
    settings.write_text(settings.read_text() + f"storage:\n  sqlite:\n    base_dir: {tmp_path / 'elsewhere'}\n")
    with open_instance(home) as instance:
        dg.materialize([made], instance=instance)
    assert (tmp_path / "elsewhere" / "history" / "runs.db").exists()
    assert not (home.dagster / "history").exists()


@pytest.mark.parametrize(("raised", "is_told"), [(KeyboardInterrupt, False), (RuntimeError, True)])
def test_a_ctrl_c_while_dagsters_records_are_closed_leaves_no_traceback(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    raised: type[BaseException],
    is_told: bool,
) -> None:
    for name in ("DAGSTER_HOME", "SWEEPSCOPE_HOME"):
        monkeypatch.setenv(name, "")  # opening sets them

    class Interrupted(sqlite3.Connection):
        def close(self) -> None:
            raise raised

    open_instance(Home.resolve(str(tmp_path / "home"))).dispose()
    engine = create_engine(
        "sqlite://", poolclass=NullPool, creator=lambda: sqlite3.connect(":memory:", factory=Interrupted)
    )
    with suppress(KeyboardInterrupt), engine.connect():
        pass
    assert ("Exception closing connection" in caplog.text) == is_told
