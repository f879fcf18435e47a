"""Forgetting: rows of a file or folder go, and the next ingest reads it anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.forget import forget, forgettable
from sweepscope.pipeline.store.published import connect, current
from tests.picotron_runs import picotron_run
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs, steps


@pytest.fixture
def logs(tmp_path: Path) -> LakeOfLogs:
    return LakeOfLogs(tmp_path)


def test_a_run_directory_goes_with_all_its_rows_and_comes_back(logs: LakeOfLogs) -> None:
    run = picotron_run(logs.folder, name="run")
    logs.write("other.log", steps(1, 5))
    logs.ingest()
    ids, settings = logs.run_ids(), logs.lake.read("settings").height
    home = logs.lake.home
    found = forgettable(home, str(run))
    assert (len(found.files), found.runs) == (3, 1)
    assert found.rows["steps"] == 6
    forget(home, found)
    assert logs.runs() == [("other.log", 5)]
    assert logs.lake.verify() == []
    assert {name: logs.lake.read(name).height for name in ("files", "steps", "runs")} == {
        "files": 1,
        "steps": 5,
        "runs": 1,
    }
    with connect(current(home.path)) as store:
        assert store.sql("select count(*) from steps").fetchall() == [(5,)]
    logs.ingest()
    assert logs.run_ids() == ids
    assert logs.lake.read("settings").height == settings


def test_a_log_goes_with_what_it_held_before_and_its_copies_are_read(logs: LakeOfLogs) -> None:
    logs.write("train.log", steps(1, 5))
    logs.ingest()
    logs.write("train.log", steps(1, 9, run=2))
    logs.write("train_copy.log", steps(1, 9, run=2))
    logs.ingest()
    assert len(logs.runs()) == 2
    forget(logs.lake.home, forgettable(logs.lake.home, str(logs.folder / "train.log")))
    assert logs.statuses() == {}
    (logs.folder / "train.log").unlink()
    logs.ingest()
    assert logs.runs() == [("train_copy.log", 9)]


def test_a_path_that_was_never_read_is_named(logs: LakeOfLogs) -> None:
    logs.write("train.log", steps(1, 5))
    logs.ingest()
    with pytest.raises(StoreError, match="nothing of /nowhere"):
        forgettable(logs.lake.home, "/nowhere")


def test_much_is_forgotten_with_a_yes_only(logs: LakeOfLogs, capsys: pytest.CaptureFixture[str]) -> None:
    for run in range(11):
        logs.write(f"{run}.log", steps(1, 2, run=run))
    logs.ingest()
    asked = ["store", "forget", str(logs.folder), "--home", str(logs.lake.home.path), "--json"]
    assert main(asked) == 2
    assert "11 files with 11 runs" in capsys.readouterr().err
    assert len(logs.runs()) == 11
    assert main([*asked, "--yes"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["steps"] == 22
    assert logs.runs() == []
    assert main(["store", "forget", "--home", str(logs.lake.home.path)]) == 2
    assert main(["store", "verify", str(logs.folder), "--home", str(logs.lake.home.path)]) == 2
