"""A lake on S3 that several homes write to: nothing lost, nothing twice, whoever is killed, late or overtaken."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.errors import StoreError, UsageError
from sweepscope.pipeline.io import remote
from sweepscope.pipeline.io.fault_points import VARIABLE as KILL_AT
from sweepscope.pipeline.store import lake_location, shared_lake
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Change, Lake
from sweepscope.pipeline.store.lake_location import VARIABLE, shared_lake_url
from sweepscope.pipeline.store.maintenance import compact, verify
from sweepscope.pipeline.store.object_folder import ObjectFolder
from sweepscope.pipeline.store.publish import publish
from tests.paths import ROOT
from tests.pipeline.store.lake_rows import accelerators, frame, together, unit
from tests.s3_server import bucket, frozen_endpoint, s3_endpoint

__all__ = ["bucket", "s3_endpoint"]  # fixtures

Homes = Callable[[str], Lake]


@pytest.fixture
def of_home(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Homes:
    """The lake at `bucket`, as a home of some name has it."""
    monkeypatch.setenv(VARIABLE, f"{bucket}/lake")
    return lambda name: Lake(Home.resolve(str(tmp_path / name)))


def run_ids(lake: Lake) -> list[str]:
    return sorted(lake.read("runs", ["run_id"])["run_id"])


def assert_whole(lake: Lake, ids: list[str], *, steps_each: int = 3) -> None:
    """What the lake has now are these runs, with all of their rows, once each."""
    lake.refresh()
    assert run_ids(lake) == ids
    assert lake.read("steps").height == steps_each * len(ids)
    assert lake.read("files").height == 2 * len(ids)
    assert lake.verify() == []


def test_homes_see_what_others_commit(of_home: Homes) -> None:
    ours, theirs = of_home("ours"), of_home("theirs")
    ours.commit(together([unit("a"), accelerators("H100")]))
    assert theirs.release() is None
    theirs.refresh()
    assert theirs.release() == ours.release()
    theirs.commit(unit("b"))
    theirs.commit(unit("a", steps=5))
    ours.refresh()
    assert ours.read("steps", ["run_id"]).to_series().value_counts().sort("run_id").rows() == [("a", 5), ("b", 3)]
    for name in ("files", "runs", "steps", "settings", "rejects", "accelerators"):
        assert ours.read(name).equals(theirs.read(name))


def test_a_commit_that_was_overtaken_is_made_on_top_of_the_other(of_home: Homes) -> None:
    ours, theirs = of_home("ours"), of_home("theirs")
    ours.commit(unit("a"))
    seen = []

    def prepare() -> Change:
        seen.append(run_ids(ours))
        if len(seen) == 1:
            theirs.commit(unit("b"))  # after we have looked, before we write
        return unit("c"), ()

    ours.change(prepare)
    assert seen == [["a"], ["a", "b"]]
    assert_whole(theirs, ["a", "b", "c"])


@pytest.mark.parametrize("entries", [0, 1, 3, 5])
def test_a_writer_that_goes_on_after_it_was_believed_dead_spoils_nothing(
    of_home: Homes, monkeypatch: pytest.MonkeyPatch, entries: int
) -> None:
    """It has written some log entries when another home, which cannot wait, commits; then it goes on."""
    slow, quick = of_home("slow"), of_home("quick")
    slow.commit(unit("a"))
    create, count = ObjectFolder.create, [0]

    def paused(self: ObjectFolder, name: str, content: bytes) -> None:
        if self.folder == slow.home.lake:
            count[0] += 1
            if count[0] == entries + 1:
                quick.commit(unit("b"))
        create(self, name, content)

    monkeypatch.setattr(ObjectFolder, "create", paused)
    slow.commit(unit("c"))
    assert_whole(quick, ["a", "b", "c"])
    assert_whole(slow, ["a", "b", "c"])


_WRITER = """
import sys
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from tests.pipeline.store.lake_rows import unit
for name in sys.argv[2:]:
    Lake(Home.resolve(sys.argv[1])).commit(unit(name))
"""


def writer(home: Path, *names: str, kill_at: str = "") -> subprocess.Popen[str]:
    command = ["env", f"{KILL_AT}={kill_at}", sys.executable, "-c", _WRITER, str(home), *names]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(
    ("point", "is_committed"),
    [
        ("lake.table_written:2", False),
        ("lake.tables_written", False),
        ("shared.data_pushed", False),
        ("shared.entry_pushed:1", False),
        ("shared.entry_pushed:4", False),
        ("shared.release_made", True),
    ],
)
def test_the_next_writer_takes_up_what_a_killed_one_left(
    of_home: Homes, tmp_path: Path, point: str, is_committed: bool
) -> None:
    others = of_home("others")
    others.commit(unit("a"))
    killed = writer(tmp_path / "killed", "b", kill_at=point)
    assert killed.wait(timeout=300) == -signal.SIGKILL
    expected = ["a", "b"] if is_committed else ["a"]
    assert_whole(others, expected)
    others.commit(unit("c"))
    assert_whole(others, sorted([*expected, "c"]))
    again = of_home("killed")  # the home of the killed one, with what it has not given to anyone
    again.commit(unit("d"))
    assert_whole(again, sorted([*expected, "c", "d"]))
    assert_whole(others, sorted([*expected, "c", "d"]))


def test_two_who_write_at_the_same_time_lose_and_double_nothing(of_home: Homes, tmp_path: Path) -> None:
    names = [f"{home}{number}" for home in ("x", "y") for number in range(3)]
    both = [writer(tmp_path / home, *(name for name in names if name[0] == home)) for home in ("x", "y")]
    for one in both:
        _, text = one.communicate(timeout=280)
        assert one.returncode == 0, text
    assert_whole(of_home("z"), names)


def test_a_home_of_its_own_lake_can_share_it(of_home: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    url = lake_location.shared_lake_url(of_home("ours").home)
    assert url
    monkeypatch.delenv(VARIABLE)
    own = of_home("ours")
    for number in range(22):  # so that the log has a checkpoint, and entries before it can go
        own.commit(unit("a", steps=number + 1))
    own.commit(unit("b", steps=22))
    own.vacuum()
    monkeypatch.setenv(VARIABLE, url)
    of_home("ours").commit(unit("c", steps=22))
    assert_whole(of_home("theirs"), ["a", "b", "c"], steps_each=22)


def test_a_home_with_a_lake_of_its_own_does_not_take_another(of_home: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    of_home("theirs").commit(unit("a"))
    url = shared_lake_url(of_home("theirs").home)
    assert url
    monkeypatch.delenv(VARIABLE)
    of_home("ours").commit(unit("b"))
    monkeypatch.setenv(VARIABLE, url)
    with pytest.raises(StoreError, match=r"has a lake of its own, and there is another one at s3://.*Use another home"):
        of_home("ours").refresh()
    monkeypatch.setenv(VARIABLE, f"{url}-2")
    with pytest.raises(StoreError, match="is a copy of another lake than the one at s3://"):
        of_home("theirs").refresh()


def test_a_copy_stays_one(of_home: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    of_home("ours").commit(unit("a"))
    monkeypatch.delenv(VARIABLE)
    of_home("ours").commit(unit("b"))  # where nothing names the shared lake any more
    monkeypatch.setenv(VARIABLE, str(shared_lake_url(of_home("ours").home)))
    assert_whole(of_home("theirs"), ["a", "b"])


def test_a_list_that_has_a_release_in_part_only_is_made_again(of_home: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes several requests, and `releases` comes after `files` in it."""
    ours, theirs = of_home("ours"), of_home("theirs")
    ours.commit(unit("a"))
    theirs.refresh()
    listed, torn = ObjectFolder.listed, []

    def in_two_parts(self: ObjectFolder, below: str = "") -> dict[str, Any]:
        found = listed(self, below)
        if self.folder == theirs.home.lake and not below and not torn:
            torn.append(ours.commit(unit("b")))
            later = listed(self, below)
            found |= {name: info for name, info in later.items() if name > "releases"}
        return found

    monkeypatch.setattr(ObjectFolder, "listed", in_two_parts)
    theirs.commit(unit("c"))
    assert torn
    assert_whole(theirs, ["a", "b", "c"])


def test_sharing_that_was_killed_half_way_begins_anew(of_home: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    url = str(shared_lake_url(of_home("ours").home))
    monkeypatch.delenv(VARIABLE)
    of_home("ours").commit(together([unit("a"), unit("b")]))
    monkeypatch.setenv(VARIABLE, url)
    killed = writer(of_home("ours").home.path, "c", kill_at="shared.entry_pushed:2")
    assert killed.wait(timeout=300) == -signal.SIGKILL
    of_home("ours").commit(unit("d"))
    assert_whole(of_home("theirs"), ["a", "b", "d"])


def test_a_second_engine_reads_the_lake_as_it_is(of_home: Homes) -> None:
    lake = of_home("ours")
    lake.commit(together([unit("a"), unit("b")]))
    release = lake.commit(unit("a", steps=7))
    url = shared_lake_url(lake.home)
    for name in ("runs", "steps", "files"):
        found = pl.read_delta(f"{url}/{name}", version=release.versions[name])
        assert found.select(lake.read(name).columns).sort(pl.all()).equals(lake.read(name).sort(pl.all()))


def test_old_files_go_from_the_shared_lake_and_a_new_home_reads_the_rest(
    of_home: Homes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = of_home("ours"), of_home("theirs")
    ours.commit(unit("a"))
    theirs.refresh()
    for number in range(21):
        ours.commit(unit("a", steps=number + 1))
    ours.commit(unit("b", steps=21))
    system, root = remote.file_system(str(shared_lake_url(ours.home)))
    before = set(system.find(root))
    compact(ours.home)
    assert before <= set(_listed(system, root)), "young files may belong to a commit under way"
    monkeypatch.setattr(shared_lake, "YOUNG_S", -3600.0)
    compact(ours.home)
    after = set(_listed(system, root))
    assert len(after) < 0.7 * len(before)
    assert len([name for name in after if "/releases/" in name]) == 3
    assert_whole(of_home("new"), ["a", "b"], steps_each=21)
    theirs.commit(unit("c", steps=21))  # which knew the lake as it was long ago
    assert_whole(ours, ["a", "b", "c"], steps_each=21)


def _listed(system: Any, root: str) -> list[str]:
    system.invalidate_cache()
    found: list[str] = system.find(root)
    return found


def test_an_object_store_that_overwrites_is_refused(of_home: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    system, _ = remote.file_system(str(shared_lake_url(of_home("ours").home)))
    pipe = system.pipe_file
    monkeypatch.setattr(system, "pipe_file", lambda path, value, **_conditions: pipe(path, value))
    with pytest.raises(StoreError, match=r"overwrites objects that are there already.*two who write at a time"):
        of_home("ours").commit(unit("a"))


def test_a_frozen_endpoint_ends_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "READ_S", 0.5)
    monkeypatch.setenv(VARIABLE, "s3://bucket/frozen")
    begin = time.monotonic()
    with (
        frozen_endpoint() as endpoint,
        pytest.raises(StoreError, match=rf"Cannot read the lake at s3://bucket/frozen: .*{endpoint}.*Check the URL"),
    ):
        Lake(Home.resolve(str(tmp_path))).commit(unit("a"))
    assert time.monotonic() - begin < 60


def test_a_store_is_published_from_what_others_committed(of_home: Homes) -> None:
    of_home("ours").commit(together([unit("a"), accelerators("H100")]))
    home = of_home("theirs").home
    publish(home)
    assert verify(home).problems == ()


def test_rows_kept_as_a_whole_are_merged_where_two_add_to_them(of_home: Homes) -> None:
    ours, theirs = of_home("ours"), of_home("theirs")

    def added(lake: Lake, name: str, meanwhile: Callable[[], object]) -> None:
        calls = []

        def prepare() -> Change:
            rows = pl.concat([lake.read("accelerators"), frame("accelerators", [{"accelerator": name}])])
            if not calls:
                meanwhile()
            calls.append(name)
            return {"accelerators": rows}, ()

        lake.change(prepare)

    added(ours, "A100", lambda: added(theirs, "H100", lambda: None))
    assert sorted(ours.read("accelerators")["accelerator"]) == ["A100", "H100"]


def test_where_the_lake_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    home = Home.resolve(str(tmp_path))
    assert shared_lake_url(home) is None
    home.settings.parent.mkdir()
    home.settings.write_text('lake = "s3://bucket/of-file/"\n')
    assert shared_lake_url(home) == "s3://bucket/of-file"
    monkeypatch.setenv(VARIABLE, "s3://bucket/of-variable")
    assert shared_lake_url(home) == "s3://bucket/of-variable"
    monkeypatch.setenv(VARIABLE, "/mnt/lake")
    with pytest.raises(UsageError, match="SWEEPSCOPE_LAKE names the lake '/mnt/lake', which is no URL"):
        shared_lake_url(home)
    monkeypatch.delenv(VARIABLE)
    home.settings.write_text("lake = s3://\n")
    with pytest.raises(UsageError, match=r"sweepscope.toml cannot be read: .*Write it as TOML"):
        shared_lake_url(home)
