"""Records of growing logs: found again only by the same parsers, bounded, and never half a one."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.io.stream import ResumePoint
from sweepscope.pipeline.store import checkpoints as module
from sweepscope.pipeline.store import maintenance
from sweepscope.pipeline.store.checkpoints import Record, Records
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from tests.pipeline.store.lake_rows import unit

NOW = datetime(2030, 1, 1)
RECORD = Record(
    ResumePoint(10, "aa"),
    ResumePoint(12, "bb"),
    None,
    can_grow=True,
    next_line=3,
    cut_lines=((2, 99),),
    frames={"readings/picotron/steps": pl.DataFrame({"source": [0], "step": [7]})},
    nccl={"env": pl.DataFrame({"name": ["NCCL_DEBUG"]})},
)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    records = Records(tmp_path / "records", NOW)
    records.save("/a.log", "v1", RECORD)
    found = records.load("/a.log", "v1")
    assert found is not None
    assert {**vars(found), "frames": 0, "nccl": 0} == {**vars(RECORD), "frames": 0, "nccl": 0}
    assert found.frames["readings/picotron/steps"].equals(RECORD.frames["readings/picotron/steps"])
    assert found.nccl["env"].equals(RECORD.nccl["env"])


def test_other_parsers_another_path_and_a_torn_file_find_none(tmp_path: Path) -> None:
    records = Records(tmp_path / "records", NOW)
    assert records.load("/a.log", "v1") is None
    records.save("/a.log", "v1", RECORD)
    assert records.load("/a.log", "v2") is None
    assert records.load("/b.log", "v1") is None
    (file,) = (tmp_path / "records").iterdir()
    whole = file.read_bytes()
    for size in range(0, len(whole), 97):
        file.write_bytes(whole[:size])
        assert records.load("/a.log", "v1") is None
    records.forget("/a.log")
    assert not file.exists()


def test_too_large_a_record_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = Records(tmp_path / "records", NOW)
    records.save("/a.log", "v1", RECORD)
    monkeypatch.setattr(module, "_MAX_RECORD_BYTES", 100)
    records.save("/a.log", "v1", RECORD)
    assert records.load("/a.log", "v1") is None


def test_the_unused_and_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    days = {"/old.log": 8, "/older.log": 9, "/recent.log": 3, "/new.log": 0}
    for path, age in days.items():
        Records(tmp_path / "records", NOW - timedelta(days=age)).save(path, "v1", RECORD)
    records = Records(tmp_path / "records", NOW)
    assert records.tidy()[0] == 2
    assert [path for path in days if records.load(path, "v1")] == ["/recent.log", "/new.log"]
    size = max(file.stat().st_size for file in (tmp_path / "records").iterdir())
    monkeypatch.setattr(module, "_MAX_FOLDER_BYTES", size)
    assert records.tidy()[0] == 1
    assert records.load("/new.log", "v1")


def test_use_keeps_a_record(tmp_path: Path) -> None:
    Records(tmp_path / "records", NOW - timedelta(days=8)).save("/a.log", "v1", RECORD)
    records = Records(tmp_path / "records", NOW)
    records.keep("/a.log")
    records.keep("/never.log")
    assert records.tidy() == (0, 0)


def test_compaction_drops_records_of_logs_at_rest(home: Home, lake: Lake) -> None:
    lake.commit(unit("a"))
    now = datetime.now()
    Records(home.records, now - timedelta(days=1)).save("/a.log", "v1", RECORD)
    Records(home.records, now).save("/b.log", "v1", RECORD)
    assert maintenance.compact(home).records_removed == 1
