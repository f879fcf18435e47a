"""The settings of a home's Dagster instance."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
import yaml

from pipeline.orchestration.instance import prepare
from pipeline.store.home import Home


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
