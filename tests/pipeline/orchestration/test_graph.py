from __future__ import annotations

import os
import shutil
import signal
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import dagster as dg
import duckdb
import polars as pl
import pytest

from sweepscope.pipeline.ingest.batch import parse_batch
from sweepscope.pipeline.ingest.discover import FOUND
from sweepscope.pipeline.ingest.plan import batches
from sweepscope.pipeline.ingest.summary import Summary
from sweepscope.pipeline.orchestration.batch_files import write_batch
from sweepscope.pipeline.orchestration.build import build
from sweepscope.pipeline.orchestration.jobs import hourly, new_runs
from sweepscope.pipeline.orchestration.resources import HomeResource
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.orchestration.run_record import CheckFailedError
from sweepscope.pipeline.orchestration.watched_paths import OWN_ONLY_VARIABLE, PATHS_VARIABLE, watched_paths
from sweepscope.pipeline.reference.accelerators import load_accelerator_links, load_accelerators
from sweepscope.pipeline.store.checksum import Digest, digests
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.published import connect, current
from sweepscope.schemas.registry import TABLES
from tests.picotron_runs import OOM_TAIL, picotron_run

pytestmark = pytest.mark.usefixtures("few_views_in_module")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(str(tmp_path / "home"))


def write_sweep(sweep: Path) -> Path:
    picotron_run(sweep, dp=2)
    picotron_run(sweep, dp=4, tokens_per_s=9000.0)
    picotron_run(sweep, dp=8, mbs=8, steps=1, status="oom", tail=OOM_TAIL)
    return sweep


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    return write_sweep(tmp_path / "sweep")


@dataclass(frozen=True)
class Ingested:
    """A sweep, the home it was ingested into, and what the ingest said."""

    folder: Path
    summary: Summary

    @property
    def sweep(self) -> Path:
        return self.folder / "sweep"

    @property
    def home(self) -> Home:
        return Home(self.folder / "home")

    def again(self) -> Summary:
        return ingest_paths(self.home, [str(self.sweep)], with_published=False)


@pytest.fixture(scope="module")
def _ingested_once(tmp_path_factory: pytest.TempPathFactory, few_views_in_module: None) -> Ingested:
    folder = tmp_path_factory.mktemp("graph") / "used"
    sweep = write_sweep(folder / "sweep")
    home = Home.resolve(str(folder / "home"))
    summary = ingest_paths(home, [str(sweep)], with_published=False, workers=1)
    shutil.copytree(folder, folder.with_name("kept"), symlinks=True)
    return Ingested(folder, summary)


@pytest.fixture
def ingested(_ingested_once: Ingested) -> Ingested:
    """As it was after the ingest, under the paths that the store knows."""
    folder = _ingested_once.folder
    shutil.rmtree(folder)
    shutil.copytree(folder.with_name("kept"), folder, symlinks=True)
    return _ingested_once


def rows(home: Home, sql: str) -> list[tuple[object, ...]]:
    connection = connect(current(home.path))
    try:
        return connection.sql(sql).fetchall()
    finally:
        connection.close()


def content(home: Home) -> dict[str, Digest]:
    connection = connect(current(home.path))
    try:
        return digests(connection)
    finally:
        connection.close()


def test_every_table_has_a_blocking_schema_check(home: Home) -> None:
    checks = build(str(home.path)).resolve_asset_graph().asset_check_keys
    named = {key.name for key in checks}
    assert {f"schema_{name}" for name in TABLES if name != "rejects"} <= named


def test_every_column_of_what_was_discovered_says_what_it_is(home: Home) -> None:
    spec = build(str(home.path)).get_assets_def("discovered").specs_by_key[dg.AssetKey("discovered")]
    columns = spec.metadata["dagster/column_schema"].columns
    assert [column.name for column in columns] == list(FOUND)
    assert all(column.description for column in columns)


def test_a_sweep_goes_through_the_graph_into_the_store(ingested: Ingested) -> None:
    assert ingested.summary.runs == {"completed": 2, "oom": 1}
    statuses = rows(ingested.home, "select status, count(*) from runs group by 1 order by 1")
    assert statuses == [("completed", 2), ("oom", 1)]
    assert rows(ingested.home, "select count(*) from steps") == [(13,)]
    assert rows(ingested.home, "select count(*) from files where status = 'parsed'") == [(9,)]


def test_ingesting_twice_changes_nothing(ingested: Ingested) -> None:
    first, path = content(ingested.home), current(ingested.home.path)
    assert ingested.again().files_new == 0
    assert current(ingested.home.path) == path
    assert content(ingested.home) == first


def test_a_store_of_ones_own_runs_knows_their_accelerators(ingested: Ingested) -> None:
    home, sweep = ingested.home, ingested.sweep
    counts = "select (select count(*) from {}), (select count(*) from published_runs)"
    assert rows(home, counts.format("accelerators")) == [(load_accelerators().height, 0)]
    assert rows(home, counts.format("accelerator_links")) == [(load_accelerator_links().height, 0)]
    versions = Lake(home).release().versions  # type: ignore[union-attr]  # there is one
    (next(sweep.glob("dp2_*")) / "status.txt").write_text("fail")
    assert ingested.again().files_new == 3
    again = Lake(home).release().versions  # type: ignore[union-attr]  # there is one
    assert again["accelerators"] == versions["accelerators"]
    assert again["runs"] != versions["runs"]


def test_a_home_inside_the_sweep_is_not_read(tmp_path: Path) -> None:
    picotron_run(tmp_path)
    home = Home.resolve(str(tmp_path / "results"))
    assert ingest_paths(home, [str(tmp_path)], with_published=False).files_seen == 3
    logs = home.dagster / "storage" / "a-run" / "compute_logs"  # where Dagster keeps what its steps print
    logs.mkdir(parents=True)
    (logs / "abc.err").write_text("2024-05-27 11:00:00 dagster started\n")
    again = ingest_paths(home, [str(tmp_path)], with_published=False)
    assert (again.files_seen, again.files_new) == (3, 0)


def test_a_log_that_was_named_once_stays_one_as_it_grows(home: Home, tmp_path: Path) -> None:
    text = (picotron_run(tmp_path / "elsewhere") / "log_1001.out").read_text()
    log = tmp_path / "lone" / "train.dat"
    log.parent.mkdir()
    log.write_text("".join(text.splitlines(keepends=True)[:4]))
    ingest_paths(home, [str(log)], with_published=False)
    log.write_text(text)
    ingest_paths(home, [str(log.parent)], with_published=False)
    assert rows(home, "select last_step from runs") == [(6,)]


def test_a_changed_run_directory_replaces_its_own_rows_only(ingested: Ingested) -> None:
    log = next(ingested.sweep.glob("dp2_*/log_1001.out"))
    log.write_text(log.read_text().replace("Loss: 7.99", "Loss: 6.99"))
    assert ingested.again().files_new == 3
    assert rows(ingested.home, "select count(*), count(distinct run_id) from runs") == [(3, 3)]
    assert rows(ingested.home, "select count(*) from steps") == [(13,)]
    assert rows(ingested.home, "select min(loss) from steps where step = 1") == [(6.99,)]


def test_batches_give_the_same_store_as_one_run(ingested: Ingested, home: Home) -> None:
    assert ingest_paths(home, [str(ingested.sweep)], with_published=False, batch_units=1).batches == 3
    tables = ("runs", "steps", "events", "settings", "rejects")
    one, many = content(ingested.home), content(home)
    assert {name: one[name] for name in tables} == {name: many[name] for name in tables}


def test_bundled_results_load_once_through_the_same_graph(home: Home, sweep: Path) -> None:
    summary = ingest_paths(home, [str(sweep)])
    assert summary.published == rows(home, "select count(*) from published_runs")[0][0]
    assert rows(home, "select count(*) from runs where origin = 'published'")[0][0] == summary.published
    assert rows(home, "select count(*) from rejects") == [(0,)]
    assert ingest_paths(home, [str(sweep)]).published == 0


def test_the_sensor_asks_for_new_runs_once(home: Home, sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATHS_VARIABLE, str(sweep))
    definitions = build(str(home.path))

    def tick() -> dg.SensorExecutionData:
        resources = {"store_home": HomeResource(path=str(home.path))}
        with (
            dg.DagsterInstance.ephemeral() as instance,
            dg.build_sensor_context(instance=instance, resources=resources) as context,
        ):
            return new_runs.evaluate_tick(context)

    requests = tick().run_requests
    assert len(requests) == 1
    assert tick().run_requests[0].tags == requests[0].tags
    job = definitions.resolve_job_def("ingest")
    with dg.DagsterInstance.ephemeral() as instance:
        assert job.execute_in_process(run_config=requests[0].run_config, instance=instance).success
    assert not tick().run_requests
    assert Lake(home).read("runs").filter(pl.col("origin") == "measured").height == 3


def test_the_sensor_waits_for_paths_that_are_not_there_yet(
    home: Home, sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later, resources = tmp_path / "later", {"store_home": HomeResource(path=str(home.path))}

    def tick(*paths: Path) -> dg.SensorExecutionData:
        monkeypatch.setenv(PATHS_VARIABLE, "\n".join(map(str, paths)))
        with (
            dg.DagsterInstance.ephemeral() as instance,
            dg.build_sensor_context(instance=instance, resources=resources) as context,
        ):
            return new_runs.evaluate_tick(context)

    assert tick(later).skip_message == f"Nothing new under {later}. No file yet at {later}."
    assert len(tick(later, sweep).run_requests or []) == 1
    later.mkdir()
    assert f"No file yet at {later}" in str(tick(later).skip_message)
    picotron_run(later)
    assert len(tick(later).run_requests or []) == 1


@pytest.mark.parametrize("own_only", ["", "1"])
def test_the_sensor_leaves_the_bundled_results_out_if_told(
    home: Home, sweep: Path, monkeypatch: pytest.MonkeyPatch, own_only: str
) -> None:
    monkeypatch.setenv(PATHS_VARIABLE, str(sweep))
    monkeypatch.setenv(OWN_ONLY_VARIABLE, own_only)
    resources = {"store_home": HomeResource(path=str(home.path))}
    with (
        dg.DagsterInstance.ephemeral() as instance,
        dg.build_sensor_context(instance=instance, resources=resources) as context,
    ):
        (request,) = new_runs.evaluate_tick(context).run_requests
    assert request.run_config["ops"]["discovered"]["config"]["with_published"] is not bool(own_only)


def test_the_schedule_asks_for_the_same_batches_as_the_sensor(
    home: Home, sweep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATHS_VARIABLE, str(sweep))
    monkeypatch.setattr("sweepscope.pipeline.ingest.plan.batches", partial(batches, units=1))
    resources = {"store_home": HomeResource(path=str(home.path))}
    with dg.instance_for_test() as instance:  # a schedule's context wants one that stands on disk
        with dg.build_schedule_context(instance=instance, resources=resources) as context:
            scheduled = hourly.evaluate_tick(context).run_requests or []
        with dg.build_sensor_context(instance=instance, resources=resources) as context:
            sensed = new_runs.evaluate_tick(context).run_requests or []
    assert len(scheduled) == 3
    assert [one.run_config for one in scheduled] == [one.run_config for one in sensed]


def test_the_sensor_asks_again_for_a_batch_whose_run_failed_but_not_at_once(
    home: Home, sweep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATHS_VARIABLE, str(sweep))
    resources = {"store_home": HomeResource(path=str(home.path))}
    with dg.DagsterInstance.ephemeral() as instance:

        def requests() -> list[dg.RunRequest]:
            with dg.build_sensor_context(instance=instance, resources=resources) as context:
                return list(new_runs.evaluate_tick(context).run_requests or [])

        job = build(str(home.path)).resolve_job_def("ingest")
        run = instance.create_run_for_job(job, tags=requests()[0].tags)
        assert not requests(), "it waits in the queue"
        instance.report_run_failed(run)
        assert not requests(), "it has only just failed"
        monkeypatch.setattr("sweepscope.pipeline.orchestration.jobs._AFTER_FAILURE_S", 0.0)
        assert len(requests()) == 1


def test_the_sensor_picks_up_growth_once_nobody_reads_the_run_any_more(
    home: Home, sweep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATHS_VARIABLE, str(sweep))
    resources = {"store_home": HomeResource(path=str(home.path))}
    with dg.DagsterInstance.ephemeral() as instance:

        def requests() -> list[dg.RunRequest]:
            with dg.build_sensor_context(instance=instance, resources=resources) as context:
                return list(new_runs.evaluate_tick(context).run_requests or [])

        job = build(str(home.path)).resolve_job_def("ingest")
        run = instance.create_run_for_job(job, tags=requests()[0].tags)
        log = next(sweep.glob("dp2_*/log_1001.out"))
        log.write_text(log.read_text() + "one more line\n")
        assert not requests(), "a run that waits will read it"
        other = picotron_run(sweep, dp=16)
        (asked,) = requests()
        batch = pl.read_parquet(home.batches / f"{asked.tags['sweepscope/batch']}.parquet")
        assert batch["unit"].unique().to_list() == [str(other)]
        instance.report_run_canceled(run)
        (asked,) = requests()
        batch = pl.read_parquet(home.batches / f"{asked.tags['sweepscope/batch']}.parquet")
        assert batch["unit"].n_unique() == 4


def test_a_growing_log_is_read_on_and_the_summary_says_so(home: Home, tmp_path: Path) -> None:
    run = picotron_run(tmp_path / "sweep", dp=2, planned=9_000, steps=8_000, status="running")
    log = run / "log_1001.out"
    whole = log.read_text()
    log.write_text(whole[: len(whole) // 10 * 9])
    first = ingest_paths(home, [str(run)], with_published=False)
    assert (first.files_resumed, first.bytes_read, first.runs) == (0, first.bytes, {"running": 1})
    log.write_text(whole)
    second = ingest_paths(home, [str(run)], with_published=False)
    assert second.files_resumed == 1
    assert len(whole) // 10 < second.bytes_read < len(whole) // 2 < second.bytes
    assert rows(home, "select count(*), max(step) from steps") == [(8_000, 8_000)]
    assert rows(home, "select sha256, read_bytes < bytes, offset_bytes = bytes from files where kind = 'log'") == [
        (None, True, True)
    ]


def test_the_sensor_says_why_it_skips(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for watched in ("", str(tmp_path / "missing")):
        monkeypatch.setenv(PATHS_VARIABLE, watched)
        resources = {"store_home": HomeResource(path=str(home.path))}
        with (
            dg.DagsterInstance.ephemeral() as instance,
            dg.build_sensor_context(instance=instance, resources=resources) as context,
        ):
            tick = new_runs.evaluate_tick(context)
        assert tick.skip_message
        assert not tick.run_requests


def test_a_batch_of_broken_rows_stops_before_the_lake(home: Home, sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **options: object) -> dict[str, pl.DataFrame]:
        tables = parse_batch(*args, **options)
        return {**tables, "runs": tables["runs"].with_columns(status=pl.lit("exploded"))}

    monkeypatch.setattr("sweepscope.pipeline.ingest.shard.parse_batch", broken)
    with pytest.raises(CheckFailedError, match="schema_runs"):
        ingest_paths(home, [str(sweep)], with_published=False)
    assert Lake(home).release() is None


def test_batches_of_runs_long_over_are_removed(home: Home, tmp_path: Path) -> None:
    batch = pl.DataFrame({"path": ["/a.log"], "bytes": [1], "mtime": [0.0], "stated": [None]})
    home.batches.mkdir(parents=True)
    old, recent = home.batches / "old.parquet", home.batches / "recent.parquet"
    for path, days in ((old, 8), (recent, 6)):
        batch.write_parquet(path)
        os.utime(path, times=(time.time() - days * 86_400,) * 2)
    written = home.batches / f"{write_batch(home, batch)}.parquet"
    assert sorted(home.batches.iterdir()) == sorted([recent, written])


def test_a_failed_run_starts_again_from_its_first_step() -> None:
    # Values travel between steps in memory: a retry from the failed step would find none of them.
    assert new_runs.job.tags["dagster/retry_strategy"] == "ALL_STEPS"


def test_watched_paths_take_lines_and_separators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATHS_VARIABLE, "/a:/b\ns3://bucket/runs\n")
    assert watched_paths() == ["/a", "/b", "s3://bucket/runs"]


def test_processes_give_the_same_store_as_one(ingested: Ingested, home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    from sweepscope.pipeline.ingest import parallel

    monkeypatch.setattr(parallel, "WORTH_S", 0)
    monkeypatch.setattr(parallel, "_MIN_SHARD_S", 1e-9)
    sweep = str(ingested.sweep)
    ingest_paths(home, [sweep], with_published=False, workers=3)
    tables = ("runs", "steps", "events", "settings", "rejects")
    one, many = content(ingested.home), content(home)
    assert {name: one[name] for name in tables} == {name: many[name] for name in tables}
    assert ingest_paths(home, [sweep], with_published=False, workers=2).files_new == 0


def test_an_interrupt_is_one_and_nothing_is_stored(home: Home, sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    def interrupted(*_: object, **__: object) -> dict[str, pl.DataFrame]:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(30)
        raise AssertionError("the signal was lost")

    monkeypatch.setattr("sweepscope.pipeline.ingest.shard.parse_batch", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # xdist's workers ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            ingest_paths(home, [str(sweep)], with_published=False)
    finally:
        signal.signal(signal.SIGINT, before)
    assert Lake(home).release() is None


@pytest.mark.timeout(120)
def test_a_failure_of_our_own_ends_the_ingest(home: Home, sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sweepscope.pipeline.orchestration import steps

    def failing(*_: object, **__: object) -> None:
        raise duckdb.ConversionException("out of range")

    monkeypatch.setattr(steps, "connect", failing)
    with pytest.raises(duckdb.ConversionException, match="out of range"):
        ingest_paths(home, [str(sweep)], with_published=False)
