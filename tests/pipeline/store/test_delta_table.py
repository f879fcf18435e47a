"""One Delta table: drop, rewind, schema growth, pruning."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from sweepscope.pipeline.store.delta_table import LakeTable, added_files
from sweepscope.schemas.tables.ledger import REJECTS
from sweepscope.schemas.tables.runs import EVENTS
from tests.pipeline.store.lake_rows import frame


def events(*paths: str) -> pl.DataFrame:
    return frame("events", [{"source_path": path, "line_no": 1, "kind": "launch", "text": "x"} for path in paths])


@pytest.fixture
def table(tmp_path: Path) -> LakeTable:
    return LakeTable(tmp_path / "with blank é" / "events", EVENTS)


def paths_of(table: LakeTable, version: int | None = None) -> list[str]:
    newest = table.newest()
    assert newest is not None
    return sorted(table.read(newest if version is None else version, ["source_path"], None)["source_path"])


def test_is_a_plain_delta_table_for_others(table: LakeTable) -> None:
    table.append(events("a", "b"))
    delta = DeltaTable(table.folder)
    assert delta.metadata().name == "events"
    assert pl.DataFrame(delta.to_pyarrow_table())["source_path"].to_list() == ["a", "b"]


def test_append_drop_and_replace_make_versions(table: LakeTable) -> None:
    assert table.newest() is None
    table.append(events("a", "b"))
    table.append(events("c"))
    table.drop(pl.Series(["a"]))
    table.replace_all(events("z"))
    assert [paths_of(table, version) for version in range(4)] == [["a", "b"], ["a", "b", "c"], ["b", "c"], ["z"]]


@pytest.mark.parametrize("others", [0, 300], ids=["few keys", "many keys"])
def test_drops_exactly_the_keys(table: LakeTable, others: int) -> None:
    odd = ["it's", 'say "x"', "back\\slash", "new\nline", "ünï", "50% [x]*", "a", "A", " a"]
    table.append(events(*odd, "stays"))
    table.drop(pl.Series([*odd[:-2], *(f"unknown{number}" for number in range(others))]))
    assert paths_of(table) == [" a", "A", "stays"]


def test_dropping_unknown_keys_changes_no_row(table: LakeTable) -> None:
    table.append(events("a"))
    table.drop(pl.Series(["b"]))
    assert paths_of(table) == ["a"]


def test_a_column_added_later_is_null_in_old_rows(tmp_path: Path) -> None:
    before = replace(REJECTS, columns=REJECTS.columns[:-1])
    row = frame("rejects", [{"file": "a", "reason": "odd", "raw": "text"}])
    LakeTable(tmp_path, before).append(row.drop("raw"))
    table = LakeTable(tmp_path, REJECTS)
    assert table.read(0, None, None).select("file", "raw").rows() == [("a", None)]
    table.append(row.with_columns(file=pl.lit("b")))
    assert table.read(1, ["file", "raw"], None).sort("file").rows() == [("a", None), ("b", "text")]
    table.drop(pl.Series(["a"]))
    table.compact()
    assert table.read(3 if table.newest() == 3 else 2, ["raw"], None).rows() == [("text",)]


def test_a_column_that_the_registry_dropped_is_not_read(tmp_path: Path) -> None:
    LakeTable(tmp_path, REJECTS).append(frame("rejects", [{"file": "a", "reason": "odd"}]))
    after = LakeTable(tmp_path, replace(REJECTS, columns=REJECTS.columns[:-1]))
    after.append(frame("rejects", [{"file": "b", "reason": "odd"}]).drop("raw"))
    assert after.read(1, None, None).columns == ["file", "line_no", "table", "column", "reason"]


def test_rewinds_to_a_version_and_goes_on_from_there(table: LakeTable) -> None:
    for path in "abcd":
        table.append(events(path))
    table.rewind(1)
    assert (table.newest(), paths_of(table)) == (1, ["a", "b"])
    table.append(events("e"))
    assert (table.newest(), paths_of(table)) == (2, ["a", "b", "e"])


def test_rewinds_past_a_checkpoint(table: LakeTable) -> None:
    for number in range(45):
        table.append(events(f"{number:02}"))
    assert len(list((table.folder / "_delta_log").glob("*.checkpoint.parquet"))) == 2
    table.rewind(30)
    assert len(paths_of(table)) == 31
    table.append(events("new"))
    assert len(paths_of(table)) == 32


def test_rewinds_from_a_torn_log(table: LakeTable) -> None:
    """After a power failure the newest entries can be empty: then delta-rs cannot open the newest version."""
    table.append(events("a"))
    table.append(events("b"))
    for name in ("00000000000000000001.json", "_last_checkpoint"):
        (table.folder / "_delta_log" / name).write_text("")
    table.rewind(0)
    table.append(events("c"))
    assert paths_of(table) == ["a", "c"]


def test_rewinds_to_nothing(table: LakeTable) -> None:
    table.append(events("a"))
    table.rewind(None)
    assert table.newest() is None
    table.append(events("b"))
    assert paths_of(table) == ["b"]


def test_prunes_what_no_kept_version_needs(table: LakeTable) -> None:
    for number in range(45):
        table.append(events(f"{number:02}"))
    table.compact()
    table.append(events("last"))
    stray = table.folder / "part-00000-of-a-killed-writer.parquet"
    stray.write_text("half a file")
    newest = table.newest()
    assert newest == 46
    expected = paths_of(table)
    files, size = table.prune([44, newest])
    assert files > 0
    assert size > 0
    assert not stray.exists()
    assert len(paths_of(table, 44)) == 45
    assert paths_of(table) == expected
    assert table.prune([newest])[0] >= 45  # the small files behind version 44
    assert paths_of(table) == expected
    assert table.prune([newest]) == (0, 0)
    table.append(events("after"))
    assert paths_of(table) == sorted([*expected, "after"])


def test_texts_with_separators_of_lines_do_not_end_an_entry_of_the_log(tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "events", EVENTS)
    odd = "a\u2028b\x85c\x1cd"
    table.append(frame("events", [{"source_path": odd, "line_no": 1, "kind": "launch", "text": odd}]))
    names = [Path(uri).name for uri in DeltaTable(table.folder).file_uris()]
    assert added_files(table.folder / "_delta_log" / f"{0:020}.json") == names
    table.sync(None)
    assert table.read(0, ["source_path"], None)["source_path"].to_list() == [odd]
