"""The lake: many tables change at once or not at all, and a unit is replaced as a whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.delta_table import LakeTable
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from sweepscope.schemas.registry import TABLES
from tests.pipeline.store.lake_rows import accelerators, frame, together, unit


def run_ids(lake: Lake) -> list[str]:
    return sorted(lake.read("runs", ["run_id"])["run_id"])


def counts(lake: Lake) -> dict[str, int]:
    """Rows of every table that has any."""
    return {name: rows for name in TABLES if (rows := lake.read(name).height)}


def test_an_empty_lake_reads_as_empty_tables(lake: Lake) -> None:
    assert lake.release() is None
    assert lake.read("runs").schema == TABLES["runs"].polars_schema
    assert lake.read("steps", ["run_id"]).columns == ["run_id"]
    assert lake.verify() == []


def test_a_commit_shows_all_its_tables(lake: Lake) -> None:
    release = lake.commit(together([unit("a"), unit("b", batch_id="b2")]))
    assert (release.number, release.batch_ids) == (1, ("b1", "b2"))
    assert lake.release() == release
    assert counts(lake) == {"files": 4, "runs": 2, "steps": 6, "settings": 2, "rejects": 2}
    assert lake.verify() == []


def test_rows_come_back_as_they_went_in(lake: Lake) -> None:
    tables = unit("a", loss=float("nan"), status_evidence="ünï\x00code")
    lake.commit(tables)
    for name, rows in tables.items():
        assert lake.read(name).equals(rows)


def test_reads_chosen_columns_and_rows(lake: Lake) -> None:
    lake.commit(unit("a", steps=5))
    found = lake.read("steps", ["loss", "step"], pl.col("line_no") > 3)
    assert found.columns == ["loss", "step"]
    assert found["step"].to_list() == [4, 5]


def test_new_units_are_added(lake: Lake) -> None:
    lake.commit(unit("a"))
    lake.commit(unit("b"))
    assert run_ids(lake) == ["a", "b"]


def test_an_ingested_unit_replaces_what_it_had(lake: Lake) -> None:
    lake.commit(together([unit("a", steps=5), unit("b")]))
    again = unit("a", steps=2, loss=9.0, status="oom")
    del again["rejects"]  # the new reading rejects nothing, so the old rejects have to go
    lake.commit(again)
    assert run_ids(lake) == ["a", "b"]
    assert lake.read("runs", ["status"], pl.col("run_id") == "a")["status"].to_list() == ["oom"]
    assert lake.read("steps", ["loss"], pl.col("run_id") == "a")["loss"].to_list() == [9.0, 4.5]
    assert lake.read("rejects")["file"].to_list() == ["/sweep/b/log.out"]
    assert lake.verify() == []


def test_a_file_that_left_its_unit_takes_its_rows_along(lake: Lake) -> None:
    lake.commit(unit("a"))
    without_config = unit("a")
    without_config["files"] = without_config["files"].filter(pl.col("kind") == "log")
    del without_config["settings"]
    lake.commit(without_config)
    assert lake.read("files").height == 1
    assert lake.read("settings").is_empty()


def test_a_file_can_move_to_another_unit(lake: Lake) -> None:
    lake.commit(unit("a"))
    alone = unit("a", steps=1)
    alone["files"] = alone["files"].filter(pl.col("kind") == "log").with_columns(unit="path")
    lake.commit(alone)
    assert lake.read("runs").height == 1
    assert lake.read("steps").height == 1
    assert lake.verify() == []


def test_replaces_many_units_at_once(lake: Lake) -> None:
    names = [f"run{number}" for number in range(150)]  # more keys than an IN list takes
    lake.commit(together(unit(name) for name in [*names, "other"]))
    lake.commit(together(unit(name, steps=1) for name in names))
    assert lake.read("runs").height == 151
    assert lake.read("steps").height == 150 + 3
    assert lake.verify() == []


def test_the_same_commit_twice_changes_no_row(lake: Lake) -> None:
    lake.commit(unit("a"))
    before = {name: lake.read(name).sort(TABLES[name].primary_key) for name in TABLES}
    lake.commit(unit("a"))
    assert all(lake.read(name).sort(TABLES[name].primary_key).equals(before[name]) for name in TABLES)


def test_rows_of_files_that_the_ledger_does_not_list_are_replaced_too(lake: Lake) -> None:
    steps = {"steps": unit("a")["steps"]}
    lake.commit(steps)
    lake.commit(steps)
    assert lake.read("steps").height == 3


def test_a_reference_table_is_replaced_as_a_whole_and_only_when_it_changed(lake: Lake) -> None:
    first = lake.commit(accelerators("H100", "A100"))
    assert lake.commit(accelerators("A100", "H100")) == first
    lake.commit(accelerators("H100", "B200"))
    assert sorted(lake.read("accelerators")["accelerator"]) == ["B200", "H100"]


def test_committing_nothing_gives_no_new_release(lake: Lake) -> None:
    first = lake.commit({})
    assert first.number == 1
    assert lake.commit({"runs": TABLES["runs"].empty()}) == first


def test_refuses_a_table_that_does_not_exist(lake: Lake) -> None:
    with pytest.raises(ValueError, match="no such table: walks"):
        lake.commit({"walks": pl.DataFrame()})


def test_an_older_release_can_still_be_read(lake: Lake) -> None:
    first = lake.commit(unit("a", steps=5))
    lake.commit(unit("a", steps=1))
    assert lake.read("steps", release=first).height == 5


# A writer that dies, wherever it dies.

_DYING_WRITER = """
import os, signal, sys
from sweepscope.pipeline.store import lake, release
from sweepscope.pipeline.store.delta_table import LakeTable
from sweepscope.pipeline.store.home import Home
from tests.pipeline.store.lake_rows import together, unit

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

home, survived = Home.resolve(sys.argv[1]), int(sys.argv[2])
if survived < 0:
    release.write = die
else:
    calls = iter(range(1000))
    for name in ("append", "drop"):
        def call(self, argument, original=getattr(LakeTable, name)):
            original(self, argument)
            if next(calls) >= survived:
                die()
        setattr(LakeTable, name, call)
lake.Lake(home).commit(together([unit("a", steps=1, status="oom"), unit("new")]))
"""


def die_while_committing(home: Home, survived: int) -> None:
    ended = subprocess.run([sys.executable, "-c", _DYING_WRITER, str(home.path), str(survived)], check=False)
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    "survived", [-1, 0, 1, 3, 6], ids=lambda count: f"after {count} writes" if count >= 0 else "at the end"
)
def test_a_writer_killed_before_its_release_changes_nothing(home: Home, lake: Lake, survived: int) -> None:
    first = lake.commit(together([unit("a"), unit("b")]))
    before = counts(lake)
    die_while_committing(home, survived)
    assert any(
        LakeTable(home.table(name), TABLES[name]).newest() != version for name, version in first.versions.items()
    )
    assert lake.release() == first
    assert counts(lake) == before
    lake.commit(unit("c"))
    assert run_ids(lake) == ["a", "b", "c"]
    assert lake.read("steps").height == 9
    assert lake.verify() == []


def test_a_writer_killed_in_the_very_first_commit_leaves_no_rows(home: Home, lake: Lake) -> None:
    die_while_committing(home, 2)
    assert lake.release() is None
    lake.commit(unit("c"))
    assert run_ids(lake) == ["c"]
    assert lake.read("files").height == 2


def test_compacting_also_repairs(home: Home, lake: Lake) -> None:
    lake.commit(unit("a"))
    lake.commit(unit("b"))
    die_while_committing(home, 3)
    lake.compact()
    assert run_ids(lake) == ["a", "b"]


_LIMITED_WRITER = """
import resource, sys
from sweepscope.pipeline.errors import StoreError
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from tests.pipeline.store.lake_rows import unit
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
try:
    Lake(Home.resolve(sys.argv[1])).commit(unit("big", steps=50_000))
except StoreError as error:
    print(error)
    sys.exit(7)
"""


def test_a_full_disk_is_said_and_changes_nothing(home: Home, lake: Lake) -> None:
    """RLIMIT_FSIZE makes real writes fail in the kernel, as a full disk does."""
    lake.commit(unit("a"))
    ended = subprocess.run(
        [sys.executable, "-c", _LIMITED_WRITER, str(home.path)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 7, ended.stderr
    assert f"Cannot write to {home.lake}: the file would be larger than the limit. Raise the limit" in ended.stdout
    assert ended.stdout.endswith("What was there before is untouched.\n")
    assert run_ids(lake) == ["a"]
    lake.commit(unit("b"))
    assert run_ids(lake) == ["a", "b"]
    assert lake.verify() == []


def test_lost_release_files_are_not_taken_for_an_empty_lake(home: Home, lake: Lake) -> None:
    lake.commit(unit("a"))
    lake.commit(unit("b"))
    for path in home.releases.iterdir():
        path.unlink()
    with pytest.raises(StoreError, match=r"has no release, but .* has rows of several"):
        lake.commit(unit("c"))


def test_a_missing_data_file_is_found(home: Home, lake: Lake) -> None:
    lake.commit(unit("a"))
    next(home.table("steps").glob("*.parquet")).unlink()
    (problem,) = lake.verify()
    assert problem.startswith(f"Cannot read {home.table('steps')}")
    with pytest.raises(StoreError, match="Cannot read"):
        lake.read("steps")


def test_repeated_and_empty_keys_are_found(lake: Lake) -> None:
    rows = frame("steps", [{"run_id": "a", "step": 1, "source_path": "x"}] * 2 + [{"run_id": "b", "source_path": "x"}])
    lake.commit({"steps": rows})
    assert lake.verify() == ["steps: 1 rows repeat a key (run_id, step)", "steps: 1 rows without step"]


def test_writers_take_turns(home: Home) -> None:
    errors: list[Exception] = []

    def write(name: str) -> None:
        try:
            for number in range(3):
                Lake(home).commit(unit(f"{name}{number}"))
        except StoreError as error:
            errors.append(error)

    writers = [threading.Thread(target=write, args=(name,)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert errors == []
    assert Lake(home).read("runs").height == 9
    assert Lake(home).verify() == []


def test_compacting_keeps_the_rows_and_vacuum_the_last_three_releases(home: Home, lake: Lake) -> None:
    committed = [lake.commit(together([unit("a", steps=number), unit(f"run{number}")])) for number in range(1, 6)]
    compacted = lake.compact()
    assert compacted is not None
    assert compacted.number == 6
    files, size = lake.vacuum()
    assert files > 0
    assert size > 0
    assert [lake.read("steps", release=release).height for release in committed[-2:]] == [4 + 4 * 3, 5 + 5 * 3]
    with pytest.raises(StoreError):
        lake.read("steps", release=committed[0])
    assert lake.read("steps").height == 5 + 5 * 3
    assert sorted(path.name for path in home.releases.iterdir()) == ["000004.json", "000005.json", "000006.json"]
    lake.commit(unit("b"))
    assert lake.read("runs").height == 7
    assert lake.verify() == []


def test_compacting_an_empty_or_compact_lake_does_nothing(lake: Lake) -> None:
    assert lake.compact() is None
    assert lake.vacuum() == (0, 0)
    release = lake.commit(unit("a"))
    assert lake.compact() == release


_CHANGE = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), min_size=1)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_CHANGE, min_size=1, max_size=5))
def test_any_order_of_commits_ends_with_the_last_of_each_unit(tmp_path: Path, changes: list[dict[str, int]]) -> None:
    lake = Lake(Home.resolve(str(tmp_path / os.urandom(4).hex())))
    expected: dict[str, int] = {}
    for change in changes:
        lake.commit(together(unit(name, steps=steps) for name, steps in change.items()))
        expected |= change
    found = lake.read("steps").group_by("run_id").len()
    assert run_ids(lake) == sorted(expected)
    assert dict(found.rows()) == {k: n for k, n in expected.items() if n}
    assert lake.verify() == []
