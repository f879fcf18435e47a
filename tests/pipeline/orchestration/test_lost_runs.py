"""Runs whose process was killed are closed, and what they were to read is asked for again at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest

from sweepscope.pipeline.io.fault_points import VARIABLE
from sweepscope.pipeline.orchestration import lost_runs
from sweepscope.pipeline.orchestration.instance import open_instance
from sweepscope.pipeline.orchestration.jobs import BATCH_TAG, new_runs
from sweepscope.pipeline.orchestration.lost_runs import LOST_TAG, close_lost_runs, working
from sweepscope.pipeline.orchestration.resources import HomeResource
from sweepscope.pipeline.orchestration.watched_paths import PATHS_VARIABLE
from sweepscope.pipeline.store.home import Home
from tests.picotron_runs import picotron_run

STARTED = dg.DagsterRunStatus.STARTED


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in ("DAGSTER_HOME", "SWEEPSCOPE_HOME"):
        monkeypatch.setenv(name, "")  # opening the instance sets them
    return Home.resolve(str(tmp_path / "home"))


def started(instance: dg.DagsterInstance, **tags: str) -> str:
    """Id of a run that Dagster takes for one at work."""
    return instance.add_run(dg.DagsterRun(job_name="ingest", run_id=str(uuid4()), status=STARTED, tags=tags)).run_id


_RUN = """
import sys
from sweepscope.pipeline.orchestration.build import build
from sweepscope.pipeline.orchestration.instance import open_instance
from sweepscope.pipeline.orchestration.jobs import run_config
from sweepscope.pipeline.store.home import Home

home = Home.resolve(sys.argv[1])
config = run_config(paths=[sys.argv[2]], with_published=False)
with open_instance(home) as instance:
    build(str(home.path)).resolve_job_def("ingest").execute_in_process(instance=instance, run_config=config)
"""


def test_a_killed_run_is_closed_and_says_so(home: Home, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    command = [sys.executable, "-c", _RUN, str(home.path), str(picotron_run(tmp_path / "sweep"))]
    environment = {**os.environ, VARIABLE: "lake.tables_written"}
    killed = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert killed.returncode == -9
    with open_instance(home) as instance:
        (record,) = instance.get_run_records()
        assert record.dagster_run.status is STARTED
        assert close_lost_runs(instance, home) == [record.dagster_run.run_id]
        run = instance.get_run_by_id(record.dagster_run.run_id)
        assert run is not None
        assert (run.status, run.tags[LOST_TAG]) == (dg.DagsterRunStatus.FAILURE, "true")
        assert close_lost_runs(instance, home) == []
    assert "event=lost_run_closed" in caplog.text


def test_a_run_at_work_is_left_alone(home: Home) -> None:
    with open_instance(home) as instance:
        run_id = started(instance)
        with working(home, run_id):
            assert close_lost_runs(instance, home, starting_s=0) == []
        assert close_lost_runs(instance, home, starting_s=0) == [run_id]


def test_a_run_without_a_sign_of_its_process_is_given_time_to_start(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_instance(home) as instance:
        run_id = started(instance)
        assert close_lost_runs(instance, home) == []
        later = time.time() + lost_runs.STARTING_S + 1
        monkeypatch.setattr(lost_runs.time, "time", lambda: later)
        assert close_lost_runs(instance, home) == [run_id]


def test_the_sensor_asks_again_at_once_however_many_were_killed(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = picotron_run(tmp_path / "sweep")
    monkeypatch.setenv(PATHS_VARIABLE, str(sweep))
    resources = {"store_home": HomeResource(path=str(home.path))}
    with open_instance(home) as instance:

        def tick() -> dg.SensorExecutionData:
            with dg.build_sensor_context(instance=instance, resources=resources) as context:
                return new_runs.evaluate_tick(context)

        (request,) = tick().run_requests
        batch = request.tags[BATCH_TAG]
        runs = [started(instance, **{BATCH_TAG: batch}) for _ in range(11)]
        assert not tick().run_requests  # they may be about to start
        for run_id in runs:  # each began to work, and was killed
            (home.dagster / "working").mkdir(exist_ok=True)
            (home.dagster / "working" / f"{run_id}.lock").write_text("process 1")
        (again,) = tick().run_requests
        assert again.tags[BATCH_TAG] == batch
        assert instance.get_runs_count(dg.RunsFilter(statuses=[STARTED])) == 0
        assert list((home.dagster / "working").iterdir()) == []
