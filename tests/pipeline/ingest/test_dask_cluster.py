"""Shards read by Dask workers: the rows of one process, whatever is killed meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import distributed
import polars as pl
import pytest

from sweepscope.pipeline.errors import InputError, UsageError, WorkerError
from sweepscope.pipeline.ingest import dask_cluster as dask
from sweepscope.pipeline.ingest import isolated_reader, parallel, plan
from sweepscope.pipeline.ingest.batch import Tables, merge_tables, parse_batch
from sweepscope.pipeline.ingest.dask_worker import Task, read_task
from sweepscope.pipeline.ingest.dialect_files import Declared, in_force, remember
from sweepscope.pipeline.ingest.engine import Engine
from sweepscope.pipeline.ingest.parallel import parse_sharded
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.ingest.shard import Shard
from sweepscope.pipeline.io.fault_points import VARIABLE
from sweepscope.pipeline.io.packed_frames import PackedFrames, unpacked
from sweepscope.pipeline.simulate.sweep import write_sweep
from sweepscope.pipeline.store.home import Home
from tests.acme import CONFIG, DIALECT, LOG
from tests.paths import ROOT
from tests.picotron_runs import picotron_run

NOW = datetime(2035, 1, 1)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    place = tmp_path_factory.mktemp("home")
    (place / "acme.toml").write_text(DIALECT)
    home = Home.resolve(str(place / "home"))
    remember(home, [str(place / "acme.toml")])
    return home


@pytest.fixture(scope="module")
def found(home: Home, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """Runs of every simulated framework, one of a declared dialect, and a binary."""
    place = tmp_path_factory.mktemp("landing")
    write_sweep(place / "simulated", runs=8, seed=3)
    (place / "in-house").mkdir()
    (place / "in-house" / "train.log").write_text(LOG)
    (place / "in-house" / "launch.json").write_text(CONFIG)
    (place / "in-house" / "core.log").write_bytes(b"\x7fELF" + bytes(range(256)) * 40)
    return plan.find([str(place)], dialects=in_force(home).dialects)


@pytest.fixture(scope="module")
def whole(found: pl.DataFrame, home: Home) -> Tables:
    return parse_batch(found, now=NOW, dialects=in_force(home).dialects)


@pytest.fixture(scope="module")
def cluster(home: Home) -> Iterator[dask.DaskCluster]:
    with dask.dask_cluster(home, processes=2) as cluster:
        yield cluster


@pytest.fixture
def many_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "WORTH_S", 0)
    monkeypatch.setattr(parallel, "_MIN_SHARD_S", 0.002)


def assert_same(tables: Tables, whole: Tables) -> None:
    for name, frame in whole.items():
        columns = sorted(name for name, kind in frame.schema.items() if not kind.is_nested())
        one, other = (part.select(columns).sort(pl.all()) for part in (frame, tables[name]))
        assert one.equals(other), name


def read(found: pl.DataFrame, home: Home, cluster: dask.DaskCluster) -> Tables:
    declared = in_force(home).declared
    return parse_sharded(found, now=NOW, home=home, declared=declared, workers=1, cluster=cluster)


def shard_of(found: pl.DataFrame, home: Home) -> Shard:
    return Shard(found, NOW, str(home.path), in_force(home).declared)


def task_of(found: pl.DataFrame, home: Home, *, version: int | None = None) -> Task:
    version = current_versions()[""] if version is None else version
    return Task(shard_of(found, home), version, seen=str(home.path), beside=1)


def read_by_worker(task: Task) -> Tables:
    """Here, in place of a worker, so that this process's environment and doubles hold."""
    try:
        return unpacked(read_task(task))
    finally:
        isolated_reader.end_idle_readers()


def process_id() -> int:
    return os.getpid()


@pytest.mark.usefixtures("many_shards")
def test_the_rows_are_those_of_one_process(
    found: pl.DataFrame, home: Home, whole: Tables, cluster: dask.DaskCluster
) -> None:
    assert len(parallel.shards_of(found, cluster.number)) > 4
    assert {"acme", "picotron", "megatron"} <= set(whole["runs"]["framework"])
    assert_same(read(found, home, cluster), whole)


def test_workers_here_take_work_from_this_process_only(cluster: dask.DaskCluster) -> None:
    address = cluster.client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    with pytest.raises((OSError, TypeError, ValueError)):
        distributed.Client(address.replace("tls://", "tcp://"), timeout=2, set_as_default=False)  # type: ignore[no-untyped-call]  # Dask annotates in part only


@pytest.mark.usefixtures("many_shards")
def test_workers_that_are_killed_lose_no_row(
    found: pl.DataFrame, home: Home, whole: Tables, cluster: dask.DaskCluster
) -> None:
    shards = [shard_of(part, home) for part in parallel.shards_of(found, cluster.number)]
    results = cluster.read(shards)
    parts = [next(results)]
    killed = cluster.client.run(process_id)
    os.kill(next(iter(killed.values())), signal.SIGKILL)
    parts += results
    assert_same(merge_tables(*parts), whole)
    assert set(cluster.client.run(process_id).values()) != set(killed.values())


def kills_its_reader(shard: Shard) -> PackedFrames:
    """Reads, but for one run directory, over which the process ends: as where memory runs out, or native code fails."""
    if shard.found["unit"].str.ends_with("run2").any():
        os.kill(os.getpid(), signal.SIGKILL)
    return isolated_reader.read_packed(shard)


def test_a_file_that_kills_its_reader_is_rejected_and_no_other(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolated_reader, "_READ", f"{__name__}:kills_its_reader")
    for number in range(4):
        picotron_run(tmp_path, name=f"run{number}", job=number, tokens_per_s=4000.0 + number)
    tables = read_by_worker(task_of(plan.find([str(tmp_path)]), home))
    rejected = tables["files"].filter(status="rejected")
    assert set(rejected["unit"]) == {str(tmp_path / "run2")}
    assert set(rejected["error"].str.contains(r"its reader failed \(.*killed \(SIGKILL\)")) == {True}
    assert tables["runs"]["run_dir"].sort().to_list() == [str(tmp_path / f"run{number}") for number in (0, 1, 3)]


def test_a_reader_that_is_killed_once_loses_nothing(
    tmp_path: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its log is being written: what was read of it is kept, and there it is killed. The next one reads on."""
    log = next(picotron_run(tmp_path).glob("log_*.out"))
    with log.open("a") as file:
        file.write("a line that says nothing\n" * 50_000)
    found, now = plan.find([str(tmp_path)]), plan.utc_now()
    whole = parse_batch(found, now=now)
    monkeypatch.setenv(VARIABLE, "record.saved:1")
    tables = read_by_worker(replace(task_of(found, home), shard=Shard(found, now, str(home.path), Declared())))
    assert tables["runs"].equals(whole["runs"])
    assert tables["steps"].equals(whole["steps"])
    assert list(home.records.iterdir()), "nothing was killed"


def kills_its_worker(task: Task) -> PackedFrames:
    """Reads, but for one run directory, over which the worker itself ends: as where a batch system kills the job."""
    if task.shard.found["unit"].str.contains("in-house").any():
        os.kill(os.getpid(), signal.SIGKILL)
    return read_task(task)


def test_files_over_which_worker_after_worker_is_lost_are_rejected(
    found: pl.DataFrame, home: Home, cluster: dask.DaskCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "read_task", kills_its_worker)
    train = found.filter(pl.col("path").str.ends_with("in-house/train.log"))
    some = found.filter(pl.col("unit") == found.filter(pl.col("unit").str.contains("simulated"))["unit"][0])
    tables = read(pl.concat([some, train]), home, cluster)
    rejected = tables["files"].filter(status="rejected")
    assert rejected["path"].to_list() == train["path"].to_list()
    assert "worker after worker was lost over it" in rejected["error"][0]
    assert tables["runs"].height == 1


def test_what_reading_raises_reaches_the_user(found: pl.DataFrame, home: Home) -> None:
    with pytest.raises(WorkerError, match=r"another version of sweepscope\. Install the same on all machines"):
        read_task(task_of(found, home, version=1))
    gone = found.with_columns(path=pl.lit("/elsewhere/train.log"))
    with pytest.raises(InputError, match=r"does not see /elsewhere/train.log. Put the run directories on a disk"):
        read_task(task_of(gone, home))


@pytest.mark.usefixtures("many_shards")
def test_errors_come_from_workers(found: pl.DataFrame, home: Home, cluster: dask.DaskCluster) -> None:
    gone = found.with_columns(path=pl.format("/elsewhere/{}", pl.int_range(pl.len())))
    with pytest.raises(InputError, match="does not see /elsewhere/"):
        read(gone, home, cluster)


def test_without_the_home_in_sight_the_rows_are_the_same(found: pl.DataFrame, home: Home, whole: Tables) -> None:
    assert_same(read_by_worker(replace(task_of(found, home), seen="/nowhere/.dask-1")), whole)


def test_nothing_at_the_address_is_an_error_within_bounds(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "CONNECT_S", 1.0)
    begin = time.monotonic()
    with (
        pytest.raises(WorkerError, match=r"The Dask cluster at 127.0.0.1:9 cannot be used: .*scheduler running"),
        dask.dask_cluster(home, address="127.0.0.1:9"),
    ):
        pass
    assert time.monotonic() - begin < 60


def test_a_worker_that_is_killed_while_it_starts_costs_a_second_start(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, failed = dask._start_cluster, []

    def fails_once(processes: int) -> object:
        if not failed:
            failed.append(processes)
            raise RuntimeError("Nanny failed to start.")
        return start(processes)

    monkeypatch.setattr(dask, "_start_cluster", fails_once)
    with dask.dask_cluster(home, processes=1) as cluster:
        assert cluster.number == 1
    assert failed == [1]


def test_an_engine_is_what_was_asked_for() -> None:
    assert Engine.asked(None, None) == Engine("local")
    assert Engine.asked(None, "head:8786") == Engine("dask", "head:8786")
    with pytest.raises(UsageError, match="--engine local does not use"):
        Engine.asked("local", "head:8786")
    with pytest.raises(UsageError, match="no engine 'spark'"):
        Engine.asked("spark", None)


def test_the_engine_travels_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Engine.of_environment() == Engine()
    for name, value in Engine("dask", "head:8786").to_environment().items():
        monkeypatch.setenv(name, value)
    assert Engine.of_environment() == Engine("dask", "head:8786")


_PLAIN = """
import sys
from sweepscope.pipeline.__main__ import main
code = main(["ingest", sys.argv[1], "--home", sys.argv[2], "--no-published"])
assert not {"dask", "distributed", "tornado"} & set(sys.modules), "imported without need"
sys.exit(code)
"""
_MISSING = """
import sys
from importlib import util
found = util.find_spec
util.find_spec = lambda name, *rest: None if name == "distributed" else found(name, *rest)
from sweepscope.pipeline.__main__ import main
sys.exit(main(["ingest", sys.argv[1], "--home", sys.argv[2], "--engine", "dask"]))
"""


def test_who_does_not_ask_for_dask_does_not_import_it(tmp_path: Path) -> None:
    picotron_run(tmp_path / "runs")
    command = [sys.executable, "-c", _PLAIN, str(tmp_path / "runs"), str(tmp_path / "home")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_missing_extra_is_an_error_that_names_it(tmp_path: Path) -> None:
    picotron_run(tmp_path / "runs")
    command = [sys.executable, "-c", _MISSING, str(tmp_path / "runs"), str(tmp_path / "home")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "pip install 'sweepscope[dask]'" in done.stderr


def test_workers_of_this_machine_that_dask_does_not_replace_are_started_again(
    found: pl.DataFrame, whole: Tables, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask, "_LOOK_S", 0.2)
    monkeypatch.setattr(dask, "_REPLACE_S", 0.5)
    with dask.dask_cluster(home, processes=1) as cluster:
        cluster.client.cluster.scale(0)
        while cluster.client.nthreads():
            time.sleep(0.05)
        assert_same(read(found, home, cluster), whole)
