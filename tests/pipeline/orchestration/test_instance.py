"""The settings of a home's Dagster instance."""

from __future__ import annotations

import resource
import sqlite3
from contextlib import suppress
from pathlib import Path

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


def test_no_telemetry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DAGSTER_HOME", "SWEEPSCOPE_HOME"):
        monkeypatch.setenv(name, "")
    with open_instance(Home.resolve(str(tmp_path / "home"))) as instance:
        assert not instance.telemetry_enabled


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
