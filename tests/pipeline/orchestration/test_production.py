"""What keeps years of scheduled runs in order: retries, limits, tags, checks and backfills of whole sweeps."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.ingest import plan
from sweepscope.pipeline.orchestration.build import build
from sweepscope.pipeline.orchestration.instance import open_instance
from sweepscope.pipeline.orchestration.jobs import new_runs, run_config
from sweepscope.pipeline.orchestration.report_runs import report_runs
from sweepscope.pipeline.orchestration.resources import HomeResource
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.orchestration.run_tags import TRIGGER_TAG, batch_tags, sweep_folders
from sweepscope.pipeline.orchestration.sweep_names import MOST, SWEEPS, add_sweeps
from sweepscope.pipeline.orchestration.watched_paths import PATHS_VARIABLE
from sweepscope.pipeline.simulate.sweep import write_sweep
from sweepscope.pipeline.store.checksum import Digest, digests
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.maintenance import verify
from sweepscope.pipeline.store.published import connect, current
from tests.picotron_runs import picotron_run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name in ("DAGSTER_HOME", "SWEEPSCOPE_HOME"):
        monkeypatch.setenv(name, "")  # opening the instance sets them
    return Home.resolve(str(tmp_path / "home"))


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    for dp in (2, 4):
        picotron_run(tmp_path / "sweep", dp=dp, job=1000 + dp)
    return tmp_path / "sweep"


def content(home: Home, *, without: str) -> dict[str, Digest]:
    connection = connect(current(home.path))
    try:
        return {name: found for name, found in digests(connection).items() if name != without}
    finally:
        connection.close()


def test_a_backfill_reads_a_sweep_again_and_doubles_nothing(home: Home, sweep: Path) -> None:
    ingest_paths(home, [str(sweep)], with_published=False)
    before, files = content(home, without="files"), Lake(home).read("files")
    with open_instance(home) as instance:
        add_sweeps(instance, sweep_folders(plan.find([str(sweep)])))
        assert instance.get_dynamic_partitions(SWEEPS.name) == [str(sweep)]
        job = build(str(home.path)).resolve_job_def("reread_sweep")
        done = job.execute_in_process(instance=instance, partition_key=str(sweep))
        (made,) = (one for one in done.all_events if one.is_successful_output)
        assert made.event_specific_data.metadata["files"].value == files.height
        assert made.event_specific_data.metadata["bytes"].value == files["bytes"].sum()
        report_runs(instance, home)
        tags = [record.dagster_run.tags for record in instance.get_run_records()]
        assert sorted(one[TRIGGER_TAG] for one in tags) == ["backfill", "command", "command"]
        assert {one.get("sweepscope/sweeps") for one in tags} == {None, str(sweep)}
    assert content(home, without="files") == before
    assert verify(home).problems == ()


def test_the_sensor_makes_partitions_of_sweeps_and_tags_its_runs(
    home: Home, sweep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATHS_VARIABLE, str(sweep))
    resources = {"store_home": HomeResource(path=str(home.path))}
    with (
        dg.DagsterInstance.ephemeral() as instance,
        dg.build_sensor_context(instance=instance, resources=resources) as context,
    ):
        (request,) = new_runs.evaluate_tick(context).run_requests or []
        assert instance.get_dynamic_partitions(SWEEPS.name) == [str(sweep)]
    assert request.tags[TRIGGER_TAG] == "sensor"
    assert request.tags["sweepscope/sweeps"] == str(sweep)
    assert request.tags["sweepscope/files"] == "6"


def test_names_that_dagster_does_not_take_and_more_than_it_copes_with_are_left_out() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        folders = ["/data/a...b", "/data/line\nbreak", "", "s3://bucket/sweep", "/data/sweep"]
        assert add_sweeps(instance, folders) == ["/data/sweep", "s3://bucket/sweep"]
        assert add_sweeps(instance, folders) == []
        assert len(add_sweeps(instance, [f"/data/{number:05d}" for number in range(MOST + 5)])) == MOST - 2


@pytest.mark.parametrize("framework", ["megatron", "picotron"])
def test_a_sweep_is_one_whether_its_runs_are_folders_or_logs_in_them(tmp_path: Path, framework: str) -> None:
    landing = write_sweep(tmp_path / "landing", runs=8, seed=3, frameworks=[framework])
    runs = {path.parent for path in landing.rglob("*.out")}
    found = plan.find([str(landing / framework)])
    # A sweep of one run looks like a run of two folders.
    several = {str(one.parent) for one in runs if sum(other.parent == one.parent for other in runs) > 1}
    assert several
    assert several <= set(sweep_folders(found))
    assert not {str(run) for run in runs if str(run.parent) in several} & set(sweep_folders(found))


def test_a_tag_names_a_few_sweeps_and_counts_the_rest() -> None:
    batch = pl.DataFrame(
        {
            "unit": [f"/data/s{number}/run" for number in range(5)],
            "run_dir": [f"/data/s{number}/run" for number in range(5)],
            "sweep": [f"s{number}" for number in range(5)],
        }
    )
    assert batch_tags(batch)["sweepscope/sweeps"] == "/data/s0, /data/s1, /data/s2 and 2 more"


@pytest.mark.parametrize(("step", "method"), [("lake", "change"), ("store", "release")])
def test_a_step_that_fails_once_is_tried_again_and_nothing_is_there_twice(
    home: Home, sweep: Path, monkeypatch: pytest.MonkeyPatch, step: str, method: str
) -> None:
    """The commit had come through when the disk reported an error: the worst time to try again."""
    failures = [StoreError("the file system was away")]
    real = getattr(Lake, method)

    def once(self: Lake, *args: object, **options: object) -> object:
        done = real(self, *args, **options)
        if failures and (step == "lake" or done is not None):
            raise failures.pop()
        return done

    with dg.DagsterInstance.ephemeral() as instance:
        job = build(str(home.path)).resolve_job_def("ingest")
        config = run_config(paths=[str(sweep)], with_published=False)
        with monkeypatch.context() as patch:
            patch.setattr(Lake, method, once)
            done = job.execute_in_process(run_config=config, instance=instance)
        assert done.success
        retried = {one.step_key for one in done.all_events if one.event_type_value == "STEP_UP_FOR_RETRY"}
        assert retried == ({step} if step == "lake" else retried)
        assert len(retried) == 1
    assert Lake(home).read("runs").filter(origin="measured").height == 2
    assert Lake(home).read("steps").height == 12
    assert verify(home).problems == ()


def test_checks_of_the_store_say_what_was_not_read(home: Home, sweep: Path) -> None:
    (sweep / "snapshot.pickle").write_bytes(b"\x80\x04no pickle")
    with dg.DagsterInstance.ephemeral() as instance:
        job = build(str(home.path)).resolve_job_def("ingest")
        done = job.execute_in_process(
            run_config=run_config(paths=[str(sweep)], with_published=False), instance=instance
        )
        found = {one.check_name: one for one in done.get_asset_check_evaluations()}
    assert done.success, "a warning stops nothing"
    assert found["is_current"].passed
    assert not found["inputs_are_read"].passed
    assert found["inputs_are_read"].severity is dg.AssetCheckSeverity.WARN
    assert found["inputs_are_read"].metadata["not_read"].value == 1


def test_at_most_two_runs_work_at_once_and_freshness_is_watched(home: Home) -> None:
    with open_instance(home) as instance:
        assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == 2
        assert instance.freshness_enabled


def test_the_command_reads_again_what_is_known(home: Home, sweep: Path) -> None:
    ingest_paths(home, [str(sweep)], with_published=False)
    assert ingest_paths(home, [str(sweep)], with_published=False).files_new == 0
    done = ingest_paths(home, [str(sweep)], with_published=False, again=True)
    assert (done.files_new, done.files_resumed) == (6, 0)
    assert Lake(home).read("runs").filter(origin="measured").height == 2
