"""The steps of a batch without Dagster, and the record of them that Dagster gets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from sweepscope.pipeline.errors import InputError, StoreError
from sweepscope.pipeline.orchestration import run_record, steps
from sweepscope.pipeline.orchestration.instance import open_instance
from sweepscope.pipeline.orchestration.report_runs import report_runs
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.orchestration.run_record import kept, load, recorded
from sweepscope.pipeline.orchestration.steps import Check, Step
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from tests.picotron_runs import picotron_run

pytestmark = pytest.mark.usefixtures("few_views")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in ("DAGSTER_HOME", "SWEEPSCOPE_HOME"):
        monkeypatch.setenv(name, "")
    return Home.resolve(str(tmp_path / "home"))


def test_no_dagster_is_imported() -> None:
    heavy = ("dagster", "pandas", "pandera", "sqlalchemy")
    code = f"import sys, sweepscope.pipeline.orchestration.run; print([n for n in {heavy} if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_dagster_gets_what_each_step_did_when_it_did_it(home: Home, tmp_path: Path) -> None:
    picotron_run(tmp_path / "sweep", dp=2)
    (tmp_path / "sweep" / "snapshot.pickle").write_bytes(b"\x80\x04no pickle")
    ingest_paths(home, [str(tmp_path / "sweep")], with_published=False)
    (path,) = kept(home)
    noted = load(path)
    assert noted is not None
    with open_instance(home) as instance:
        assert report_runs(instance, home) == 1
        (record,) = instance.get_run_records()
        run_id = record.dagster_run.run_id
        assert record.dagster_run.status is dg.DagsterRunStatus.SUCCESS
        assert record.dagster_run.tags["sweepscope/trigger"] == "command"
        assert (record.start_time, record.end_time) == pytest.approx((noted.began_at, noted.ended_at))
        # Dagster's page lists runs by this, and calls it when they were made.
        assert record.create_timestamp.timestamp() == pytest.approx(noted.began_at)
        for name in ("discovered", "parsed", "validated", "lake", "store", "marts"):
            made = instance.get_latest_materialization_event(dg.AssetKey(name))
            assert made is not None
            assert made.run_id == run_id
            assert noted.began_at <= made.timestamp <= noted.ended_at
        key = dg.AssetCheckKey(dg.AssetKey("store"), "inputs_are_read")
        check = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])[key]
        assert check.status.value == "FAILED"
        assert {one.status.value for one in instance.get_run_step_stats(run_id)} == {"SUCCESS"}
        assert report_runs(instance, home) == 0
    assert not kept(home)
    assert set(Lake(home).read("files")["batch_id"]) >= {run_id}


def test_a_report_that_was_killed_begins_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded(home, "ingest", {}) as run:
        run.do("store", lambda: Step("path", {"release": 3}))
    with open_instance(home) as instance:
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                report_runs(instance, home)
        assert report_runs(instance, home) == 1
        assert len(instance.get_run_records()) == 1
        events = [one.dagster_event_type for one in instance.all_logs(run.run_id)]
        assert events.count(dg.DagsterEventType.ASSET_MATERIALIZATION) == 1


def test_a_failed_run_says_why_and_asks_for_no_retry(home: Home) -> None:
    def refuse() -> Step[None]:
        raise InputError("no such file, password=hunter2hunter2")

    with pytest.raises(InputError), recorded(home, "ingest", {}) as run:
        run.do("parsed", refuse)
    with open_instance(home) as instance:
        report_runs(instance, home)
        (record,) = instance.get_run_records()
        assert record.dagster_run.status is dg.DagsterRunStatus.FAILURE
        assert record.dagster_run.tags["dagster/max_retries"] == "0"
        (step,) = instance.get_run_step_stats(run.run_id)
        assert (step.step_key, step.status.value) == ("parsed", "FAILURE")
        messages = [one.dagster_event.message for one in instance.all_logs(run.run_id) if one.dagster_event]
    assert any("no such file" in (text or "") for text in messages)
    assert "hunter2" not in str(messages)


def test_an_interrupt_is_a_cancelled_run(home: Home) -> None:
    with pytest.raises(KeyboardInterrupt), recorded(home, "load", {}):
        raise KeyboardInterrupt
    with open_instance(home) as instance:
        report_runs(instance, home)
        (record,) = instance.get_run_records()
        assert record.dagster_run.status is dg.DagsterRunStatus.CANCELED


def test_what_may_pass_is_tried_again_and_nothing_else_is(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(run_record.time, "sleep", pauses.append)
    errors: list[Exception] = [StoreError("locked"), StoreError("locked")]

    def pop() -> Step[int]:
        if errors:
            raise errors.pop()
        return Step(7)

    with recorded(home, "ingest", {}) as run:
        assert run.do("lake", pop, retries=2) == 7
        assert pauses == [1.0, 2.0]
        errors[:] = [StoreError("locked")] * 3
        with pytest.raises(StoreError):
            run.do("lake", pop, retries=2)
        pauses.clear()
        errors[:] = [InputError("no")]
        with pytest.raises(InputError):
            run.do("lake", pop, retries=2)
        assert not pauses


def test_a_blocking_check_ends_the_run_and_another_does_not(home: Home) -> None:
    failed = Check("schema_runs", passed=False, counts={"rows": 2, "rejected": 2}, is_blocking=True)
    with recorded(home, "ingest", {}) as run:
        assert run.do("store", lambda: Step(1, checks=(Check("is_current", passed=False, counts={}),))) == 1
        with pytest.raises(run_record.CheckFailedError, match=r"schema_runs failed \(2 rows, 2 rejected\)"):
            run.do("validated", lambda: Step(1, checks=(failed,)))


def test_so_many_records_wait_and_damaged_ones_stop_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_record, "KEPT", 2)
    ids = []
    for _ in range(3):
        with recorded(home, "ingest", {}) as run:
            ids.append(run.run_id)
    first, second = kept(home)
    assert [json.loads(path.read_text())["run_id"] for path in (first, second)] == ids[1:]
    first.write_text("{")
    with open_instance(home) as instance:
        assert report_runs(instance, home) == 2
        assert [one.dagster_run.run_id for one in instance.get_run_records()] == ids[2:]
    assert steps.CHECKED
