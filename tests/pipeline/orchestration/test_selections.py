"""Every set of assets that can be selected in Dagster's page either works or says in one sentence what to do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import dagster as dg
import pytest

from sweepscope.pipeline.ingest.plan import batches
from sweepscope.pipeline.orchestration.assets import ASSETS
from sweepscope.pipeline.orchestration.build import build
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.orchestration.watched_paths import NOTHING_WATCHED, OWN_ONLY_VARIABLE, PATHS_VARIABLE
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import connect, current
from tests.picotron_runs import picotron_run

pytestmark = pytest.mark.usefixtures("few_views_in_module")

NAMES = [asset.key.to_user_string() for asset in ASSETS]
IN_MEMORY = {"parsed": "discovered", "validated": "parsed", "lake": "validated"}
"""Asset to the one whose value it takes from the memory of the run."""

SUBSETS = [names for size in range(1, len(NAMES) + 1) for names in itertools.combinations(NAMES, size)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with one run, and a second run that has not been read."""
    folder = tmp_path_factory.mktemp("selections")
    picotron_run(folder / "sweep", dp=2)
    home = Home.resolve(str(folder / "home"))
    ingest_paths(home, [str(folder / "sweep")], with_published=False)
    picotron_run(folder / "sweep", dp=4)
    return home


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        instance.event_log_storage.store_event = lambda _event: None  # type: ignore[method-assign]  # nobody reads them
        yield instance


@pytest.fixture(autouse=True)
def watched(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATHS_VARIABLE, str(home.path.parent / "sweep"))
    monkeypatch.setenv(OWN_ONLY_VARIABLE, "1")


def materialize(
    home: Home, instance: dg.DagsterInstance, names: tuple[str, ...], config: dict[str, object] | None = None
) -> dg.ExecuteInProcessResult:
    """What a click on Materialize launches: the job of all assets, without configuration."""
    return _job(home).execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey(name) for name in names],
        raise_on_error=False,
        run_config=config,
    )


@cache
def _job(home: Home) -> dg.JobDefinition:
    return build(str(home.path)).resolve_implicit_global_asset_job_def()


def reasons(result: dg.ExecuteInProcessResult) -> list[str]:
    """What the failed steps say, as Dagster's page shows it."""
    failed = [event.step_failure_data for event in result.all_events if event.is_step_failure]
    return [data.user_failure_data.description for data in failed if data.user_failure_data]


@pytest.mark.parametrize("names", SUBSETS, ids="-".join)
def test_a_selection_works_or_says_why_not(home: Home, instance: dg.DagsterInstance, names: tuple[str, ...]) -> None:
    lacking = [(name, before) for name, before in IN_MEMORY.items() if name in names and before not in names]
    result = materialize(home, instance, names)
    assert result.success is (not lacking)
    for (name, before), reason in zip(sorted(lacking), sorted(reasons(result)), strict=True):
        assert reason.startswith(f"{name} takes the rows of {before} from the memory of one run")
        assert f"{before} and {name} together" in reason


def test_all_read_what_is_new_and_publish_it(home: Home, instance: dg.DagsterInstance) -> None:
    new = picotron_run(home.path.parent / "sweep", dp=16)
    assert materialize(home, instance, tuple(NAMES)).success
    connection = connect(current(home.path))
    try:
        runs = connection.execute("SELECT run_dir FROM runs").fetchall()
    finally:
        connection.close()
    assert (str(new),) in runs


def test_without_paths_or_a_batch_the_remedy_is_named(
    home: Home, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PATHS_VARIABLE)
    assert reasons(materialize(home, instance, ("discovered",))) == [NOTHING_WATCHED]
    config = {"ops": {"discovered": {"config": {"batch_id": "0123"}}}}
    (reason,) = reasons(materialize(home, instance, ("discovered",), config))
    assert reason.startswith("Batch 0123 is gone: batches are kept for 7 days.")


def test_an_empty_lake_has_nothing_to_publish(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    (reason,) = reasons(materialize(Home.resolve(str(tmp_path)), instance, ("store",)))
    assert reason == f"There is nothing to publish in {tmp_path}. Run `sweepscope ingest PATH` first."


def test_one_click_reads_one_batch(home: Home, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    for dp in (32, 64):
        picotron_run(home.path.parent / "sweep", dp=dp)
    monkeypatch.setattr("sweepscope.pipeline.ingest.plan.batches", partial(batches, units=1))
    found = materialize(home, instance, ("discovered",)).output_for_node("discovered")
    assert found["unit"].n_unique() == 1


def test_every_asset_tells_what_it_is_made_with_and_whose_it_is() -> None:
    for spec in (spec for asset in ASSETS for spec in asset.specs):
        assert spec.kinds, spec.key
        assert spec.owners, spec.key
        assert spec.description, spec.key
