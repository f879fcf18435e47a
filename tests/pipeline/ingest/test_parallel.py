"""One process or several, shards of any size: the same rows, errors and store."""

from __future__ import annotations

import itertools
import os
import pickle
import random
import signal
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sweepscope.pipeline.ingest import isolated_reader, parallel, plan
from sweepscope.pipeline.ingest.batch import Tables, merge_tables, parse_batch
from sweepscope.pipeline.ingest.dialect_files import in_force, remember
from sweepscope.pipeline.ingest.parallel import parse_sharded, shards_of
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.ingest.shard import Shard, parse_shard
from sweepscope.pipeline.io import process_pool, worker_process
from sweepscope.pipeline.io.packed_frames import PackedFrames, packed
from sweepscope.pipeline.simulate.sweep import write_sweep
from sweepscope.pipeline.store.home import Home
from tests.acme import CONFIG, DIALECT, LOG
from tests.picotron_runs import picotron_run
from tests.pipeline.nccl.nccl_logs import Job, render
from tests.properties import stated_examples

NOW = datetime(2035, 1, 1)


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every simulated framework, with noise; NCCL output in a log; a binary; a log of a declared dialect."""
    place = tmp_path_factory.mktemp("landing")
    write_sweep(place / "simulated", runs=12, seed=5)
    log = next(picotron_run(place / "real").glob("log_*.out"))
    log.write_text(render(Job("2.21.5", nodes=1, gpus=2, calls=9)).text() + log.read_text())
    (place / "real" / "core.log").write_bytes(b"\x7fELF" + bytes(range(256)) * 40)
    (place / "in-house").mkdir()
    (place / "in-house" / "train.log").write_text(LOG)
    (place / "in-house" / "launch.json").write_text(CONFIG)
    return place


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    place = tmp_path_factory.mktemp("home")
    (place / "acme.toml").write_text(DIALECT)
    home = Home.resolve(str(place / "home"))
    remember(home, [str(place / "acme.toml")])
    return home


@pytest.fixture(scope="module")
def found(sweep: Path, home: Home) -> pl.DataFrame:
    return plan.find([str(sweep)], dialects=in_force(home).dialects)


@pytest.fixture(scope="module")
def whole(found: pl.DataFrame, home: Home) -> Tables:
    return parse_batch(found, now=NOW, dialects=in_force(home).dialects)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Other processes however little there is to read, ready before the first shard; counts the shards they get."""
    counts: list[int] = []
    enter, submit = process_pool.ProcessPool.__enter__, worker_process.Worker.submit

    def entered(pool: process_pool.ProcessPool[object, object]) -> process_pool.ProcessPool[object, object]:
        enter(pool)
        while not all(worker.is_ready for worker in pool._workers):
            pool._receive(timeout_s=None)
        return pool

    def counted(worker: worker_process.Worker, task: object, pending: worker_process.Pending) -> None:
        counts.append(worker.process.pid)
        submit(worker, task, pending)

    monkeypatch.setattr(process_pool.ProcessPool, "__enter__", entered)
    monkeypatch.setattr(worker_process.Worker, "submit", counted)
    monkeypatch.setattr(parallel, "WORTH_S", 0)
    monkeypatch.setattr(parallel, "_MIN_SHARD_S", 1e-9)
    return counts


def assert_same(tables: Tables, whole: Tables) -> None:
    for name, frame in whole.items():
        if not frame.is_empty():
            columns = sorted(name for name, kind in frame.schema.items() if not kind.is_nested())
            one, other = (part.select(columns).sort(pl.all()) for part in (frame, tables[name]))
            assert one.equals(other), name
    assert all(frame.is_empty() for name, frame in tables.items() if name not in whole)


def parsed(found: pl.DataFrame, home: Home, count: int) -> tuple[Tables, list[str]]:
    seen: list[str] = []
    tables = parse_sharded(
        found,
        now=NOW,
        home=home,
        declared=in_force(home).declared,
        workers=count,
        on_file=lambda path, _size: seen.append(path),
    )
    return tables, seen


@pytest.mark.parametrize("count", [1, 3])
def test_the_rows_are_the_same_whoever_reads(
    found: pl.DataFrame, home: Home, whole: Tables, eager: list[int], count: int
) -> None:
    assert {"acme", "picotron", "megatron"} <= set(whole["runs"]["framework"])
    assert whole["nccl_files"]["coll_calls"].sum() == 18
    assert whole["files"].filter(status="rejected").height == 1
    tables, seen = parsed(found, home, count)
    assert_same(tables, whole)
    assert sorted(seen) == sorted(found["path"])
    assert len(set(eager)) == count - 1


@stated_examples()
@given(cuts=st.lists(st.integers(1, 14), max_size=6), seed=st.integers(0, 10_000))
@example(cuts=[], seed=1)
@example(cuts=[1, 2, 5, 9, 13], seed=2)
def test_the_rows_are_the_same_however_a_batch_is_cut(
    found: pl.DataFrame, home: Home, whole: Tables, cuts: list[int], seed: int
) -> None:
    units = found["unit"].unique(maintain_order=True).to_list()
    random.Random(seed).shuffle(units)  # noqa: S311 - an order, no secret
    bounds = [0, *sorted({cut for cut in cuts if cut < len(units)}), len(units)]
    declared = in_force(home).declared
    parts = [
        parse_shard(Shard(found.filter(pl.col("unit").is_in(units[begin:end])), NOW, str(home.path), declared))
        for begin, end in itertools.pairwise(bounds)
    ]
    assert_same(merge_tables(*parts), whole)


def listing(sizes: list[int], suffix: str = ".out") -> pl.DataFrame:
    """Two files per unit."""
    return pl.DataFrame(
        [(f"/s/r{at:05d}", f"/s/r{at:05d}/{name}{suffix}", size) for at, size in enumerate(sizes) for name in "ab"],
        schema={"unit": pl.String, "path": pl.String, "bytes": pl.Int64},
        orient="row",
    )


class TestShards:
    def test_little_is_one_share(self) -> None:
        assert len(shards_of(listing([10_000_000] * 8), 4)) == 1

    def test_one_process_reads_everything_at_once(self) -> None:
        assert len(shards_of(listing([10_000_000_000] * 8), 1)) == 1

    def test_compressed_files_count_for_what_they_unpack_to(self) -> None:
        assert len(shards_of(listing([10_000_000] * 8, ".zst"), 4)) > 1

    def test_many_small_directories_are_worth_it(self) -> None:
        assert 4 <= len(shards_of(listing([1_000] * 3_000), 2)) <= 17

    def test_a_batch_of_small_directories_keeps_all_workers_equally_busy(self) -> None:
        found = listing([1_000] * 1_000)
        for workers in (2, 3, 4, 8):
            shards = shards_of(found, workers)
            assert len(shards) % workers == 0
            sizes = [shard["unit"].n_unique() for shard in shards]
            assert max(sizes) - min(sizes) <= len(shards)

    @given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40), st.integers(1, 8))
    def test_nothing_is_lost_and_units_stay_whole(self, sizes: list[int], count: int) -> None:
        found = listing(sizes)
        shards = shards_of(found, count)
        assert pl.concat(shards).equals(found)
        of_unit = [unit for shard in shards for unit in shard["unit"].unique()]
        assert len(of_unit) == len(set(of_unit))
        assert len(shards) <= 2 * count * 8 + 1


def test_dialects_travel_as_what_was_declared_and_not_as_functions(home: Home) -> None:
    declared = in_force(home).declared
    assert "acme" in {dialect.name for dialect in declared.dialects}  # compiled, which it travels without
    there = pickle.loads(pickle.dumps(declared))  # noqa: S301 -- what this process has just written
    assert there == declared
    assert "dialects" not in vars(there)
    assert current_versions(there.dialects) == current_versions(declared.dialects)


def test_a_process_that_is_killed_loses_no_row(
    found: pl.DataFrame, home: Home, whole: Tables, eager: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = worker_process.Worker.submit
    killed: list[int] = []

    def kill_once(worker: worker_process.Worker, task: object, pending: worker_process.Pending) -> None:
        submit(worker, task, pending)
        if not killed:
            killed.append(worker.process.pid)
            os.kill(worker.process.pid, signal.SIGKILL)

    monkeypatch.setattr(worker_process.Worker, "submit", kill_once)
    tables, seen = parsed(found, home, 2)
    assert killed
    assert_same(tables, whole)
    assert sorted(seen) == sorted(found["path"])


_ASKS = "TEST_PARALLEL_ASKS"


def kills_its_reader(shard: Shard) -> Tables:
    """Reads, but for one run directory, over which a process ends that is not the one that asks."""
    if shard.found["unit"].str.ends_with("run0").any() and os.environ[_ASKS] != str(os.getpid()):
        os.kill(os.getpid(), signal.SIGKILL)
    return parse_shard(shard)


def packed_by_it(shard: Shard) -> PackedFrames:
    return packed(kills_its_reader(shard))


def test_the_file_that_kills_its_reader_is_rejected_and_no_other(
    tmp_path: Path, home: Home, eager: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(_ASKS, str(os.getpid()))
    monkeypatch.setattr(parallel, "parse_shard", kills_its_reader)
    monkeypatch.setattr(isolated_reader, "_READ", f"{__name__}:packed_by_it")
    for number in range(4):
        picotron_run(tmp_path, name=f"run{number}", job=number, tokens_per_s=4000.0 + number)
    tables, _ = parsed(plan.find([str(tmp_path)]), home, 2)
    assert eager, "no other process has read"
    rejected = tables["files"].filter(status="rejected")
    assert set(rejected["unit"]) == {str(tmp_path / "run0")}
    assert set(rejected["error"].str.contains(r"/run0/.*its reader failed \(.*killed \(SIGKILL\)")) == {True}
    assert tables["runs"]["run_dir"].sort().to_list() == [str(tmp_path / f"run{number}") for number in (1, 2, 3)]
    assert not isolated_reader._idle, "a process is left"
