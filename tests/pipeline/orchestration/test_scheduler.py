"""A scheduler's table and the logs of a sweep through the real graph, in any order and as either grows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sweepscope.pipeline.orchestration.run import ingest_paths
from sweepscope.pipeline.store.checksum import Digest, digests
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.maintenance import verify
from sweepscope.pipeline.store.published import connect, current
from tests.picotron_runs import picotron_run

pytestmark = pytest.mark.usefixtures("few_views_in_module")

HEADER = "JobID|State|ExitCode|Submit|Start|End|Elapsed|NNodes|NodeList|AllocTRES|MaxRSS\n"
TIMEOUT = (
    "1001|TIMEOUT|0:0|2024-05-27T10:00:00|2024-05-27T11:00:00|2024-05-27T13:00:00|02:00:00|2|gpu[01-02]|"
    "cpu=2,gres/gpu=2,node=2|\n"
    "1001.batch|CANCELLED|0:15|2024-05-27T11:00:00|2024-05-27T11:00:00|2024-05-27T13:00:00|02:00:00|1|gpu01||4G\n"
)
COMPLETED = (
    "1002|COMPLETED|0:0|2024-05-27T10:00:00|2024-05-27T10:30:00|2024-05-27T11:00:00|00:30:00|1|gpu03|"
    "cpu=2,gres/gpu=4,node=1|\n"
)
JOINED = ("runs", "events", "settings", "scheduler_jobs", "steps")


def write_sweep(sweep: Path) -> Path:
    for job, dp, steps in ((1001, 2, 3), (1002, 4, 6), (1003, 8, 6)):
        run = picotron_run(sweep, dp=dp, job=job, steps=steps, status="running")
        for path in run.iterdir():
            os.utime(path, (1_700_000_000, 1_700_000_000))  # long silent
    return sweep


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    return write_sweep(tmp_path / "sweep")


@pytest.fixture(scope="module")
def joined(tmp_path_factory: pytest.TempPathFactory, few_views_in_module: None) -> Path:
    """A folder with a sweep, its scheduler's table and the home into which both were ingested; read-only."""
    folder = tmp_path_factory.mktemp("joined")
    sweep = write_sweep(folder / "sweep")
    (sweep / "sacct.txt").write_text(HEADER + TIMEOUT + COMPLETED)
    summary = ingest_paths(home_of(folder, "home"), [str(sweep)], with_published=False)
    assert summary.runs == {"timeout": 1, "completed": 2}
    return folder


def home_of(tmp_path: Path, name: str) -> Home:
    return Home.resolve(str(tmp_path / name))


def rows(home: Home, sql: str) -> list[tuple[object, ...]]:
    connection = connect(current(home.path))
    try:
        return connection.sql(sql).fetchall()
    finally:
        connection.close()


def content(home: Home) -> dict[str, Digest]:
    connection = connect(current(home.path))
    try:
        return {name: found for name, found in digests(connection).items() if name in JOINED}
    finally:
        connection.close()


OUTCOMES = "select job_id, status, queue_wait_s, hosts, num_nodes, allocated_gpu_hours from runs order by job_id"
OUTCOMES_WITH_TABLE = [
    ("1001", "timeout", 3600, "gpu01, gpu02", 2, 4.0),
    ("1002", "completed", 1800, "gpu03", 1, 2.0),
    ("1003", "completed", None, None, 1, None),
]


def test_one_table_is_joined_to_every_run_it_names(joined: Path) -> None:
    home = home_of(joined, "home")
    assert rows(home, OUTCOMES) == OUTCOMES_WITH_TABLE
    assert rows(home, "select kind, text from events where kind = 'scheduler' order by line_no") == [
        ("scheduler", TIMEOUT.splitlines()[0]),
        ("scheduler", COMPLETED.strip()),
    ]
    assert rows(home, "select kind, parser, rows_parsed, status from files where path like '%sacct.txt'") == [
        ("scheduler", "scheduler", 3, "parsed")
    ]
    assert rows(
        home,
        "select value, is_used from settings where setting_source = 'scheduler' and name = 'num_nodes' order by value",
    ) == [
        ("1", True),
        ("2", True),
    ]
    assert rows(home, "select gpu_hours, gpu_hours_basis, started_at::text from runs where job_id = '1001'") == [
        (4.0, "given", "2024-05-27 11:00:00")
    ]
    assert verify(home).problems == ()


def test_the_order_of_ingests_does_not_matter(tmp_path: Path, joined: Path) -> None:
    sweep, table = joined / "sweep", joined / "sweep" / "sacct.txt"
    stores = {"together": content(home_of(joined, "home"))}
    for name, order in {
        "table first": [[table], [sweep]],
        "logs first": [sorted(path for path in sweep.iterdir() if path.is_dir()), [table]],
    }.items():
        home = home_of(tmp_path, name)
        for paths in order:
            ingest_paths(home, [str(path) for path in paths], with_published=False)
        stores[name] = content(home)
    assert len(stores) == 3
    assert all(found == stores["together"] for found in stores.values())


def test_a_table_that_grows_is_joined_anew_and_one_that_is_read_twice_is_not(tmp_path: Path, sweep: Path) -> None:
    home, table = home_of(tmp_path, "home"), sweep / "sacct.txt"
    ingest_paths(home, [str(sweep)], with_published=False)
    assert rows(home, "select status from runs order by job_id") == [("truncated",), ("completed",), ("completed",)]
    running = TIMEOUT.splitlines()[0].replace("TIMEOUT", "RUNNING").replace("2024-05-27T13:00:00", "Unknown")
    table.write_text(HEADER + running + "\n")
    ingest_paths(home, [str(sweep)], with_published=False)
    assert rows(home, "select status, scheduler_state, queue_wait_s from runs where job_id = '1001'") == [
        ("truncated", "running", 3600)
    ]
    with table.open("a") as appended:
        appended.write(HEADER + TIMEOUT + COMPLETED)
    ingest_paths(home, [str(sweep)], with_published=False)
    assert rows(home, OUTCOMES) == OUTCOMES_WITH_TABLE
    before, path = content(home), current(home.path)
    assert ingest_paths(home, [str(sweep)], with_published=False).files_new == 0
    assert (content(home), current(home.path)) == (before, path)
    table.write_text(HEADER + COMPLETED)
    ingest_paths(home, [str(table)], with_published=False)
    assert rows(home, "select status, hosts, num_nodes from runs where job_id = '1001'") == [("truncated", None, 1)]


def test_what_does_not_parse_is_rejected(tmp_path: Path, sweep: Path) -> None:
    (sweep / "sacct.txt").write_text(HEADER + COMPLETED + "1003|COMPLETED\n")
    home = home_of(tmp_path, "home")
    ingest_paths(home, [str(sweep / "sacct.txt")], with_published=False)
    assert rows(home, 'select line_no, "table", raw from rejects') == [(3, "scheduler_jobs", "1003|COMPLETED")]
    assert rows(home, "select count(*) from runs") == [(0,)]
