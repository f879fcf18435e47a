"""Files of a version from a log's entries and checkpoints: those that delta-rs lists, in its order."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake

from sweepscope.pipeline.store.delta_log import added_files, file_names
from sweepscope.pipeline.store.delta_table import LakeTable
from sweepscope.schemas.tables.runs import EVENTS
from tests.pipeline.store.lake_rows import frame


def as_listed(folder: Path, version: int) -> list[str]:
    return [Path(uri).name for uri in DeltaTable(folder, version=version).file_uris()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table of 31 versions with a checkpoint every ten, some of which have removed rows or merged files."""
    folder = tmp_path / "a b é"
    settings: dict[str, str | None] = {"delta.checkpointInterval": "10", "delta.enableExpiredLogCleanup": "false"}
    write_deltalake(folder, pl.DataFrame({"key": [0]}), configuration=settings)
    for number in range(1, 29):
        if number % 7 == 3:
            DeltaTable(folder).delete(f"key IN ({number - 2})")
        else:
            write_deltalake(folder, pl.DataFrame({"key": [number]}), mode="append")
    DeltaTable(folder).optimize.compact()
    write_deltalake(folder, pl.DataFrame({"key": [30]}), mode="append")
    return folder


def test_lists_the_files_of_every_version_as_delta_does(folder: Path) -> None:
    versions = range(DeltaTable(folder).version() + 1)
    assert len(list((folder / "_delta_log").glob("*.checkpoint.parquet"))) >= 2
    assert [file_names(folder / "_delta_log", version) for version in versions] == [
        as_listed(folder, version) for version in versions
    ]


def test_needs_no_entries_before_a_checkpoint(folder: Path) -> None:
    log = folder / "_delta_log"
    wanted = as_listed(folder, 25)
    for number in range(20):
        (log / f"{number:020}.json").unlink()
    assert file_names(log, 25) == wanted


def test_a_missing_and_a_torn_entry_raise(folder: Path) -> None:
    log = folder / "_delta_log"
    entry = log / f"{25:020}.json"
    entry.write_bytes(entry.read_bytes()[:-20])
    with pytest.raises(json.JSONDecodeError):
        file_names(log, 26)
    entry.unlink()
    with pytest.raises(FileNotFoundError):
        file_names(log, 26)


def test_texts_with_separators_of_lines_do_not_end_an_entry(tmp_path: Path) -> None:
    table = LakeTable(tmp_path / "events", EVENTS)
    odd = "a\u2028b\x85c\x1cd"
    table.append(frame("events", [{"source_path": odd, "line_no": 1, "kind": "launch", "text": odd}]))
    assert added_files(table.folder / "_delta_log" / f"{0:020}.json") == as_listed(table.folder, 0)
    table.sync(None)
    assert table.read(0, ["source_path"], None)["source_path"].to_list() == [odd]
