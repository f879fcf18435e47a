"""Dialect files through the real graph: given once, in force until forgotten, read again when edited."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from sweepscope.pipeline.errors import InputError, UsageError
from sweepscope.pipeline.ingest.dialect_files import forget, in_force, remember
from sweepscope.pipeline.ingest.plan import pending
from sweepscope.pipeline.orchestration.build import build
from sweepscope.pipeline.orchestration.jobs import new_runs, run_config
from sweepscope.pipeline.orchestration.resources import HomeResource
from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.orchestration.watched_paths import PATHS_VARIABLE
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.published import connect, current
from tests.acme import CONFIG, DIALECT, LOG
from tests.picotron_runs import picotron_run

pytestmark = pytest.mark.usefixtures("few_views_in_module")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.resolve(str(tmp_path / "home"))


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    run = tmp_path / "sweep" / "tp8"
    run.mkdir(parents=True)
    (run / "train.log").write_text(LOG)
    (run / "run.yaml").write_text(CONFIG)
    return run.parent


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    path = tmp_path / "acme.toml"
    path.write_text(DIALECT)
    return path


def rows(home: Home, sql: str) -> list[tuple[object, ...]]:
    connection = connect(current(home.path))
    try:
        return connection.sql(sql).fetchall()
    finally:
        connection.close()


def ingest(home: Home, sweep: Path, *files: Path) -> int:
    return ingest_paths(home, [str(sweep)], dialect_files=[str(f) for f in files], with_published=False).files_new


def planned(home: Home, sweep: Path, *files: Path) -> int:
    """How many files an ingest would read."""
    remember(home, [str(file) for file in files])
    return pending(Lake(home), [str(sweep)], dialects=in_force(home).dialects).height


RUNS = "select framework, status, tp, pp, mbs, model, last_step, last_loss from runs where framework = 'acme'"


def test_a_file_given_once_reads_now_and_later(home: Home, sweep: Path, acme: Path) -> None:
    picotron_run(sweep, dp=2)
    assert ingest(home, sweep) == 5
    assert rows(home, RUNS) == []
    # Any file may turn out to be the new dialect's, so all are read again; afterwards nothing is new.
    assert ingest(home, sweep, acme) == 5
    assert rows(home, RUNS) == [("acme", "completed", 8, 2, 4, "acme-7B", 3, 7.5)]
    assert rows(home, "select distinct parser from files order by 1") == [("acme",), ("picotron",)]
    path = current(home.path)
    assert ingest(home, sweep, acme) == 0
    assert current(home.path) == path
    (sweep / "tp16").mkdir()
    (sweep / "tp16" / "train.log").write_text(LOG.replace("parallel = 8", "parallel = 16"))
    assert ingest(home, sweep) == 1
    assert rows(home, "select tp from runs where framework = 'acme' order by 1") == [(8,), (16,)]


def test_an_edited_file_reads_its_own_logs_again_and_no_others(home: Home, sweep: Path, acme: Path) -> None:
    picotron_run(sweep, dp=2)
    ingest(home, sweep, acme)
    acme.write_text(DIALECT.replace("loss {loss}", "{_} {loss}"))
    assert planned(home, sweep) == 0  # the home has a copy of its own
    assert planned(home, sweep, acme) == 2
    acme.write_text(DIALECT)
    assert planned(home, sweep, acme) == 2  # back again is a change, too
    acme.write_text(DIALECT.replace("[acme-trainer]", "starting on 16 GPUs"))
    assert planned(home, sweep, acme) == 5  # with another signature it may know other files
    copy = home.dialects / "acme.toml"
    copy.write_text(DIALECT.replace("tensor parallel", "tensor_parallel"))
    assert ingest(home, sweep) == 5
    assert rows(home, "select count(*) from settings where name = 'tp' and setting_source = 'log_line'") == [(0,)]


def test_what_a_forgotten_file_has_read_stays(home: Home, sweep: Path, acme: Path) -> None:
    ingest(home, sweep, acme)
    before = rows(home, RUNS)
    forget(home, "acme")
    assert planned(home, sweep) == 0
    assert rows(home, RUNS) == before != []
    with pytest.raises(UsageError, match=r"No dialect file called 'acme'.*There are: none\."):
        forget(home, "acme")
    assert planned(home, sweep, acme) == 2  # it may know its files better than before


def test_the_sensor_reads_with_the_remembered_files(
    home: Home, sweep: Path, acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATHS_VARIABLE, str(sweep))
    remember(home, [str(acme)])

    def requests(instance: dg.DagsterInstance) -> list[dg.RunRequest]:
        resources = {"store_home": HomeResource(path=str(home.path))}
        with dg.build_sensor_context(instance=instance, resources=resources) as context:
            return [one for one in new_runs(context) if isinstance(one, dg.RunRequest)]  # type: ignore[union-attr]

    with dg.DagsterInstance.ephemeral() as instance:
        (request,) = requests(instance)
        asked = request.run_config["ops"]["parsed"]["config"]["dialects"]
        assert asked == in_force(home).files
        assert list(asked) == [str(home.dialects / "acme.toml")]
        defs = build(str(home.path))
        assert (
            defs.resolve_job_def("ingest").execute_in_process(instance=instance, run_config=request.run_config).success
        )
        assert rows(home, RUNS)[0][:3] == ("acme", "completed", 8)
        assert requests(instance) == []
        acme.write_text(DIALECT.replace("training done", "finished"))
        remember(home, [str(acme)])
        (again,) = requests(instance)
        assert again.tags != request.tags


def test_a_run_asked_for_with_another_file_is_refused(home: Home, sweep: Path, acme: Path) -> None:
    remember(home, [str(acme)])
    config = run_config(in_force(home), paths=[str(sweep)], with_published=False)
    acme.write_text(DIALECT + "\n# another\n")
    remember(home, [str(acme)])
    with pytest.raises(InputError, match="have changed since this run was asked for"):
        in_force(home, config.ops["parsed"].dialects)  # type: ignore[union-attr]
    assert in_force(home, {**in_force(home).files}).remembered[0].revision == 2
