"""Dagster's records are removed by age and number, whole, and nothing else is."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import dagster as dg
import pytest
import sqlalchemy as sa
import yaml
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import TickData, TickStatus
from dagster._core.storage.runs.schema import RunsTable

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.operations import dagster_settings
from sweepscope.pipeline.operations.dagster_settings import missing_settings
from sweepscope.pipeline.operations.settings import Retention
from sweepscope.pipeline.orchestration.instance import open_instance, prepare
from sweepscope.pipeline.orchestration.retention import KEPT_OF_EACH_JOB, has_due, prune
from sweepscope.pipeline.store.home import Home

SUCCESS, FAILURE, STARTED = dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.STARTED


@dg.asset(check_specs=[dg.AssetCheckSpec("sound", asset="made")])
def made() -> Iterator[object]:
    yield dg.Output(1)
    yield dg.AssetCheckResult(check_name="sound", passed=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in ("DAGSTER_HOME", "SWEEPSCOPE_HOME"):
        monkeypatch.setenv(name, "")  # opening the instance sets them
    return Home.resolve(str(tmp_path / "home"))


def run(instance: dg.DagsterInstance, days: float, status: dg.DagsterRunStatus = SUCCESS, job: str = "ingest") -> str:
    """Id of a run that was made so many days ago."""
    run_id = str(uuid4())
    instance.add_run(dg.DagsterRun(job_name=job, run_id=run_id, status=status, tags={"a": "b"}))
    made_at = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=days)
    storage = instance.run_storage
    with storage.connect() as connection:
        connection.execute(sa.update(RunsTable).where(RunsTable.c.run_id == run_id).values(create_timestamp=made_at))
    return run_id


def listed(instance: dg.DagsterInstance) -> set[str]:
    return {record.dagster_run.run_id for record in instance.get_run_records()}


def counts(home: Home) -> dict[str, int]:
    """Rows that Dagster keeps of runs, by table."""
    found = {}
    for file, tables in {
        "history/runs.db": ("runs", "run_tags"),
        "history/runs/index.db": ("event_logs", "asset_event_tags", "asset_check_executions"),
    }.items():
        with sa.create_engine(f"sqlite:///{home.dagster / file}").connect() as connection:
            for table in tables:
                found[table] = connection.execute(sa.text(f"SELECT count(*) FROM {table}")).scalar_one()
    return found


def test_what_is_old_goes_and_what_is_young_unfinished_or_the_last_of_its_job_stays(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweepscope.pipeline.orchestration.retention.KEPT_OF_EACH_JOB", 1)
    with open_instance(home) as instance:
        old = [run(instance, 8), run(instance, 31, FAILURE), run(instance, 400)]
        stays = [
            run(instance, 8, FAILURE),
            run(instance, 400, STARTED),
            run(instance, 400, job="load"),
            run(instance, 6),
        ]
        assert has_due(instance, Retention())
        assert prune(instance, home, Retention()).runs == len(old)
        assert listed(instance) == set(stays)
        assert not has_due(instance, Retention())
        assert prune(instance, home, Retention()).runs == 0


def test_more_than_the_greatest_number_go_whatever_their_age(home: Home) -> None:
    with open_instance(home) as instance:
        runs = [run(instance, 0.5) for _ in range(60)]
        assert prune(instance, home, Retention(max_runs=50)).runs == 10
        assert listed(instance) == set(runs[10:])
        for _ in range(60):
            run(instance, 0.01)
        assert prune(instance, home, Retention(max_runs=50)).runs == 50
        assert len(listed(instance)) == 60, "runs of the last hour stay: the sensor looks at them"


def test_a_run_goes_with_its_events_tags_checks_and_files(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sweepscope.pipeline.orchestration.retention.KEPT_OF_EACH_JOB", 1)
    later = datetime.now(UTC) + timedelta(days=9)
    with open_instance(home) as instance:
        ids = []
        for _ in range(2):
            ids.append(dg.materialize([made], instance=instance, tags={"a": "b"}).run_id)
            if len(ids) == 1:
                once = counts(home)
        assert min(once.values()) > 0
        output = home.dagster / "storage" / ids[0]
        (output / "compute_logs").mkdir(parents=True, exist_ok=True)
        (output / "compute_logs" / "step.out").write_text("printed")
        assert prune(instance, home, Retention(), now=later).runs == 1
        assert listed(instance) == {ids[1]}
        assert counts(home) == once
        shards = {path.name for path in (home.dagster / "history" / "runs").glob("*.db")}
        assert shards == {"index.db", f"{ids[1]}.db"}
        assert not output.exists()
        record = instance.get_latest_materialization_event(dg.AssetKey("made"))
        assert record is not None
        assert record.run_id == ids[1]


def test_what_an_interrupted_removal_left_goes_the_next_time(home: Home) -> None:
    with open_instance(home) as instance:
        kept = dg.materialize([made], instance=instance).run_id
        folder = home.dagster / "history" / "runs"
        left, recent = folder / f"{uuid4()}.db", folder / f"{uuid4()}.db"
        for path in (left, recent, folder / f"{kept}.db"):
            path.touch()
        for path in (left, folder / f"{kept}.db"):
            os.utime(path, (time.time() - 100_000,) * 2)
        assert prune(instance, home, Retention()).orphans == 1
        assert (left.exists(), recent.exists(), (folder / f"{kept}.db").exists()) == (False, True, True)


def test_ticks_go_by_age_also_those_of_schedules(home: Home) -> None:
    now = time.time()
    with open_instance(home) as instance:
        for kind in (InstigatorType.SENSOR, InstigatorType.SCHEDULE):
            for days, status in ((2, "SKIPPED"), (0.5, "SKIPPED"), (2, "SUCCESS"), (8, "SUCCESS")):
                data = TickData(
                    kind.value,
                    kind.value,
                    kind,
                    TickStatus(status),
                    now - 86_400 * days,
                    selector_id=kind.value,
                    run_ids=[],
                )
                instance.create_tick(data)
        assert prune(instance, home, Retention()).ticks == 4
        left = [
            (tick.status.value, round((now - tick.timestamp) / 86_400, 1))
            for kind in (InstigatorType.SENSOR, InstigatorType.SCHEDULE)
            for tick in instance.get_ticks(kind.value, kind.value)
        ]
    assert sorted(left) == [("SKIPPED", 0.5), ("SKIPPED", 0.5), ("SUCCESS", 2.0), ("SUCCESS", 2.0)]


def test_free_pages_go_back_to_the_disk(home: Home) -> None:
    index = home.dagster / "history" / "runs" / "index.db"
    with open_instance(home) as instance:
        with instance.event_log_storage.index_connection() as connection:
            row = {"run_id": "gone", "event": "x" * 50_000, "dagster_event_type": "A", "timestamp": datetime.now(UTC)}
            columns, values = ", ".join(row), ", ".join(f":{name}" for name in row)
            connection.execute(sa.text(f"INSERT INTO event_logs ({columns}) VALUES ({values})"), [row] * 200)
            connection.execute(sa.text("DELETE FROM event_logs"))
        full = sum(path.stat().st_size for path in index.parent.glob("index.db*"))
        freed = prune(instance, home, Retention()).bytes_freed
        assert freed > 5_000_000
        assert index.stat().st_size < full / 10


def test_an_old_home_gets_the_new_settings_and_one_changed_by_hand_keeps_its_own(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = "telemetry:\n  enabled: false\nnux:\n  enabled: false\n"
    monkeypatch.setattr(dagster_settings, "EARLIER", (dagster_settings.digest(earlier),))
    path = home.dagster / "dagster.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(earlier)
    prepare(home)
    assert "retention" in yaml.safe_load(path.read_text())
    assert missing_settings(home) == []
    by_hand = f"{earlier}python_logs:\n  python_log_level: INFO\n"
    path.write_text(by_hand)
    prepare(home)
    assert path.read_text() == by_hand
    assert missing_settings(home) == ["concurrency", "freshness", "retention", "run_monitoring", "run_retries"]
    with open_instance(home) as instance:
        assert instance.get_settings("python_logs") == {"python_log_level": "INFO"}, "the command line uses them, too"


def test_what_earlier_versions_wrote_is_known() -> None:
    versions = [
        "telemetry:\n  enabled: false\nnux:\n  enabled: false\nrun_retries:\n  enabled: true\n  max_retries: 2\n"
        "run_monitoring:\n  enabled: false\n"
    ]
    assert {dagster_settings.digest(text) for text in versions} <= set(dagster_settings.EARLIER)


def test_enough_of_each_job_stay_to_look_at(home: Home) -> None:
    with open_instance(home) as instance:
        for _ in range(KEPT_OF_EACH_JOB + 5):
            run(instance, 100)
        prune(instance, home, Retention())
        assert len(listed(instance)) == KEPT_OF_EACH_JOB


def test_the_command_says_what_was_removed(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home.operations.write_text("[retention]\nsucceeded_days = 3\n")
    with open_instance(home) as instance:
        for _ in range(KEPT_OF_EACH_JOB + 2):
            run(instance, 4)
    assert main(["store", "prune", "--home", str(home.path), "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert (done["runs"], done["ticks"], done["releases_removed"], done["release"]) == (2, 0, 0, None)
    home.operations.write_text("[retention]\nsucceeded_days = -3\n")
    assert main(["store", "prune", "--home", str(home.path)]) == 2
    assert "retention.succeeded_days" in capsys.readouterr().err
