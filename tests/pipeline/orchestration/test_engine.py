"""The graph with a Dask cluster as its readers: the same store."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import distributed
import pytest

from sweepscope.pipeline.ingest.engine import Engine
from sweepscope.pipeline.orchestration.build import build
from sweepscope.pipeline.orchestration.instance import open_instance
from sweepscope.pipeline.orchestration.jobs import run_config
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.simulate.sweep import write_sweep
from sweepscope.pipeline.store.checksum import Digest, digests
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import connect, current

VARIES = {"files"}
"""Ledger rows name their batch."""


def digests_of(home: Home) -> dict[str, Digest]:
    connection = connect(current(home.path))
    try:
        return {name: found for name, found in digests(connection).items() if name not in VARIES}
    finally:
        connection.close()


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("landing")
    write_sweep(place, runs=6, seed=8)
    return place


@pytest.fixture(scope="module")
def plain(sweep: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Digest]:
    home = Home.resolve(str(tmp_path_factory.mktemp("plain")))
    ingest_paths(home, [str(sweep)], with_published=False)
    return digests_of(home)


def test_an_ingest_by_a_cluster_at_an_address_gives_the_same_store(
    sweep: Path, plain: dict[str, Digest], tmp_path: Path
) -> None:
    home = Home.resolve(str(tmp_path / "home"))
    told: list[str] = []
    with distributed.LocalCluster(  # type: ignore[no-untyped-call]  # Dask annotates in part only
        n_workers=1, threads_per_worker=2, host="127.0.0.1", dashboard_address="127.0.0.1:0", memory_limit=0
    ) as cluster:
        engine = Engine("dask", cluster.scheduler_address)
        summary = ingest_paths(
            home,
            [str(sweep)],
            with_published=False,
            engine=engine,
            batch_units=3,
            on_file=lambda path, _size: told.append(path),
        )
    assert summary.files_new == len(told) > 6
    assert plain["runs"].rows == 6
    assert digests_of(home) == plain
    assert not list(home.path.glob(".dask-*"))


def test_a_run_of_dagster_starts_workers_of_its_own(
    sweep: Path, plain: dict[str, Digest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the watcher's runs do, whose processes know the engine by their environment."""
    home = Home.resolve(str(tmp_path / "home"))
    for name, value in Engine("dask").to_environment().items():
        monkeypatch.setenv(name, value)
    with open_instance(home) as instance:
        job = build(str(home.path)).resolve_job_def("ingest")
        config: dg.RunConfig = run_config(paths=[str(sweep)], with_published=False, workers=1)
        assert job.execute_in_process(instance=instance, run_config=config).success
    assert digests_of(home) == plain
