"""Publishing: a whole new version or none, and readers that never notice how it came about."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import polars as pl
import pytest

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.checksum import Digest, digests
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.pipeline.store.publish import VIEW_FOLDER, publish
from sweepscope.pipeline.store.published import connect, current, store_info, versions
from sweepscope.schemas.core import ddl
from sweepscope.schemas.registry import ALL, TABLES, VIEWS
from tests.pipeline.store.lake_rows import accelerators, together, unit


def content(home: Home) -> dict[str, Digest]:
    with connect(current(home.path)) as connection:
        return digests(connection)


def changed_at(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_publishes_what_the_lake_holds(home: Home, lake: Lake) -> None:
    lake.commit(together([unit("a", steps=5, started_at=None), unit("b", loss=float("nan")), accelerators("H100")]))
    done = publish(home)
    assert (done.version, done.release, done.is_new) == (1, 1, True)
    assert done.path == current(home.path) == home.store / "results-1.duckdb"
    with connect(done.path) as connection:
        for name, table in TABLES.items():
            assert done.rows[name] == lake.read(name).height
            key = ", ".join(map(ddl.quote, table.primary_key))
            found = connection.sql(f"SELECT * FROM {ddl.quote(name)}").pl()
            assert found.equals(table.conform(found))
            assert found.equals(lake.read(name).sort(table.primary_key)), f"not in the order of {key}"


def test_what_a_file_of_steps_and_a_log_elsewhere_tell_of_counts_once(home: Home, lake: Lake) -> None:
    log, again = (
        unit("log", run_dir="/sweep/logs", steps_logged=3),
        unit("again", run_dir="/sweep/a/out", steps_logged=3),
    )
    again["files"] = again["files"].with_columns(kind=pl.when(pl.col("kind") == "log").then(pl.lit("history")))
    for part in (again, log):
        lake.commit(together([part]))
        publish(home)
    with connect(current(home.path)) as connection:
        rows = connection.sql("SELECT run_id, duplicate_of FROM runs ORDER BY run_id").fetchall()
    assert rows == [("again", "log"), ("log", None)]


def test_a_store_explains_itself(shown: Home) -> None:
    with connect(current(shown.path)) as connection:
        info = store_info(connection)
        tables = dict(
            connection.sql(
                "SELECT table_name, comment FROM duckdb_tables() UNION ALL "
                "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"
            ).fetchall()
        )
        bare = connection.sql(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal AND comment IS NULL"
        ).fetchall()
    assert (info.version, info.release, info.row_count) == (1, 1, 17)
    assert set(tables) == set(ALL)
    assert all(tables.values())
    assert bare == []


def test_views_answer_in_the_published_file(shown: Home) -> None:
    with connect(current(shown.path)) as connection:
        for name, view in VIEWS.items():
            assert tuple(connection.sql(f"SELECT * FROM {name}").columns) == view.column_names
        assert connection.sql("SELECT run_id FROM best_configs").fetchall() == [("a",)]


def test_older_clients_can_read_the_file_format(shown: Home) -> None:
    header = current(shown.path).read_bytes()[:4096]
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH {ddl.literal(str(current(shown.path)))} AS store (READ_ONLY)")
        tags = connection.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'store'").fetchone()
    assert header[8:12] == b"DUCK"
    assert tags is not None
    assert "v1.2.0" in str(tags[0])


def test_publishing_twice_is_publishing_once(published: Home) -> None:
    path = current(published.path)
    before = changed_at(path)
    second = publish(published)
    assert (second.version, second.path, second.is_new) == (1, path, False)
    assert second.rows == {name: Lake(published).read(name).height for name in TABLES}
    assert changed_at(path) == before


@pytest.mark.usefixtures("few_views")
def test_the_same_rows_have_the_same_content_however_they_got_there(home: Home, lake: Lake) -> None:
    lake.commit(together([unit("a"), unit("b")]))
    publish(home)
    before = content(home)
    lake.commit(unit("a"))
    lake.commit(unit("b"))
    lake.compact()
    assert publish(home).version == 2
    assert content(home) == before
    lake.commit(unit("b", loss=2.000001))
    publish(home)
    assert content(home) != before


def test_publishes_anew_when_a_view_changes(published: Home, tmp_path: Path) -> None:
    views = shutil.copytree(VIEW_FOLDER, tmp_path / "views")
    assert publish(published, view_folder=views).version == 1
    with (views / "frontier.sql").open("a") as file:
        file.write("LIMIT 0\n")
    changed = publish(published, view_folder=views)
    assert (changed.version, changed.release, changed.is_new) == (2, 1, True)


@pytest.mark.usefixtures("few_views")
def test_keeps_three_versions_and_what_a_reader_has_open(home: Home, lake: Lake) -> None:
    lake.commit(unit("a"))
    old = connect(publish(home).path)
    for number in range(4, 8):
        lake.commit(unit("a", steps=number))
        publish(home)
    assert names_in(home.store) == [
        "publications.json",
        "publish.lock",
        "results-3.duckdb",
        "results-4.duckdb",
        "results-5.duckdb",
        "results.duckdb",
    ]
    assert [(row.version, row.is_current) for row in versions(home.path)] == [(5, True), (4, False), (3, False)]
    assert old.execute("SELECT count(*) FROM steps").fetchone() == (3,)
    assert (home.link.readlink(), home.link.resolve()) == (Path("results-5.duckdb"), current(home.path))


def test_there_has_to_be_something_to_publish(home: Home) -> None:
    with pytest.raises(StoreError, match=r"nothing to publish in .*home\. Run `sweepscope ingest PATH` first"):
        publish(home)


def test_a_missing_view_is_named(home: Home, lake: Lake, tmp_path: Path) -> None:
    lake.commit(unit("a"))
    with pytest.raises(StoreError, match=r"The view run_outcomes has no definition: .*run_outcomes\.sql is missing"):
        publish(home, view_folder=tmp_path)


def test_a_failing_build_leaves_the_old_version(published: Home, tmp_path: Path) -> None:
    first = current(published.path)
    Lake(published).commit(unit("c"))
    views = shutil.copytree(VIEW_FOLDER, tmp_path / "views")
    (views / "frontier.sql").write_text("CREATE VIEW frontier AS SELECT nothing FROM nowhere")
    with pytest.raises(StoreError, match=r"Cannot publish to .*nowhere.* What was there before is untouched"):
        publish(published, view_folder=views)
    assert current(published.path) == first
    assert names_in(published.store) == ["publications.json", "publish.lock", "results-1.duckdb", "results.duckdb"]


@pytest.mark.usefixtures("few_views")
@pytest.mark.parametrize("damage", ["not a database", None], ids=["damaged", "gone"])
def test_a_damaged_store_is_built_again(published: Home, damage: str | None) -> None:
    path = current(published.path)
    path.unlink() if damage is None else path.write_text(damage)
    again = publish(published)
    assert again.is_new
    with connect(again.path) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchone() == (2,)


_PUBLISHER = """
import resource, sys
from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.publish import publish
limit = int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    publish(Home.resolve(sys.argv[1]))
except StoreError as error:
    print(error)
    sys.exit(7)
"""


@pytest.mark.usefixtures("few_views")
def test_a_file_size_limit_is_said_and_changes_nothing(published: Home) -> None:
    first = current(published.path)
    Lake(published).commit(unit("c", steps=50_000))
    command = [sys.executable, "-c", _PUBLISHER, str(published.path), "500000"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 7, ended.stderr
    assert f"Cannot publish to {published.store}: the file would be larger than the limit." in ended.stdout
    assert current(published.path) == first
    assert names_in(published.store) == ["publications.json", "publish.lock", "results-1.duckdb", "results.duckdb"]
    assert publish(published).rows["steps"] == 50_006


_FULL_DISK = """
set -e
mount -t tmpfs -o size=6m tmpfs "$2/store"
cp -a "$2/before/." "$2/store"
"$1" -c "$3" "$2" 0 || code=$?
ls -A "$2/store"
exit $code
"""


def test_a_full_disk_is_said_and_changes_nothing(published: Home) -> None:
    """A real ENOSPC: the store's folder is a file system of 3 MB, mounted where nobody else sees it."""
    isolated = ["unshare", "--mount", "--map-root-user"]
    probe = (
        subprocess.run([*isolated, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
        if shutil.which("unshare")
        else None
    )
    if probe is None or probe.returncode:
        pytest.skip("no private mount namespace here; the file size limit stands for the full disk")
    Lake(published).commit(unit("c", steps=300_000))
    shutil.copytree(published.store, published.path / "before", symlinks=True)
    command = [*isolated, "sh", "-c", _FULL_DISK, "sh", sys.executable, str(published.path), _PUBLISHER]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 7, ended.stderr
    message, *left = ended.stdout.splitlines()
    assert f"Cannot publish to {published.store}: the disk is full. Free space on it" in message
    assert left == ["publications.json", "publish.lock", "results-1.duckdb", "results.duckdb"]


@pytest.mark.usefixtures("few_views")
def test_a_killed_publisher_leaves_the_old_version_and_its_leftovers_go(published: Home) -> None:
    first = current(published.path)
    Lake(published).commit(unit("c", steps=200_000))
    process = subprocess.Popen([sys.executable, "-c", _PUBLISHER, str(published.path), "0"])
    deadline = time.monotonic() + 60
    while not list(published.store.glob(".results-2*")):
        assert process.poll() is None, "it was faster than we could look"
        assert time.monotonic() < deadline
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert list(published.store.glob(".results-2*"))
    assert current(published.path) == first
    second = publish(published)
    assert second.rows["steps"] == 200_006
    assert not list(published.store.glob(".results-*"))


_READER = """
import sys, time
from sweepscope.pipeline.store.published import connect, current
print("ready", flush=True)
seen, deadline = [], time.monotonic() + 240
while time.monotonic() < deadline and (not seen or seen[-1] != int(sys.argv[2])):
    connection = connect(current(sys.argv[1]))
    (units, runs, steps), = connection.sql(
        "SELECT (SELECT count(DISTINCT unit) FROM files), (SELECT count(*) FROM runs), (SELECT count(*) FROM steps)"
    ).fetchall()
    connection.close()
    assert units == runs and steps == 3 * runs, (units, runs, steps)
    seen.append(runs)
    time.sleep(0.05)  # leave the publisher some of the processor
assert seen == sorted(seen), seen
print(len(seen), len(set(seen)), seen[-1])
"""


@pytest.mark.usefixtures("few_views")
def test_readers_see_whole_versions_while_others_are_published(home: Home, lake: Lake) -> None:
    lake.commit(unit("run1"))
    publish(home)
    readers = [
        subprocess.Popen([sys.executable, "-c", _READER, str(home.path), "4"], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
    for number in range(2, 5):
        lake.commit(unit(f"run{number}"))
        publish(home)
    for reader in readers:
        output, _ = reader.communicate(timeout=270)
        assert reader.returncode == 0
        looks, different, last = map(int, output.split())
        assert looks >= different >= 2
        assert last == 4
