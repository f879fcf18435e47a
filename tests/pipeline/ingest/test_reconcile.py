"""Nothing that was read well is lost, and nothing counts twice, whatever becomes of the files."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
import zstandard

from sweepscope.pipeline.errors import UnreadableError
from sweepscope.pipeline.io.reader import Reader
from sweepscope.pipeline.store.lake import Lake
from tests.picotron_runs import picotron_run
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs, losses, steps


@pytest.fixture
def logs(tmp_path: Path) -> LakeOfLogs:
    return LakeOfLogs(tmp_path)


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of files whose reading fails behind their first bytes."""
    names: set[str] = set()
    whole = Reader.chunks

    def chunks(reader: Reader) -> Iterator[bytes]:
        for chunk in whole(reader):
            if os.path.basename(reader.path) in names:
                yield chunk[: len(chunk) // 2]
                raise UnreadableError(f"Cannot read {reader.path}: {os.strerror(errno.EIO)}. Ingest again later.")
            yield chunk

    monkeypatch.setattr(Reader, "chunks", chunks)
    return names


def test_the_ledger_of_a_log_that_grew_is_that_of_one_read_in_one_go(tmp_path: Path) -> None:
    grown, whole = LakeOfLogs(tmp_path / "grown"), LakeOfLogs(tmp_path / "whole")
    grown.write("train.log", steps(1, 20))
    grown.ingest()
    grown.append("train.log", steps(21, 30))
    grown.ingest()
    whole.write("train.log", steps(1, 30))
    whole.ingest()
    content = pl.exclude("path", "unit", "mtime", "batch_id")
    rows = [logs.lake.read("files").filter(kind="log").select(content).row(0, named=True) for logs in (grown, whole)]
    assert rows[0] == rows[1]


class TestFailedAndShrunkReads:
    def test_a_read_error_keeps_what_was_read_and_is_tried_again(self, logs: LakeOfLogs, unreadable: set[str]) -> None:
        logs.write("train.log", steps(1, 20))
        logs.ingest()
        ids = logs.run_ids()
        logs.append("train.log", steps(21, 30))
        unreadable.add("train.log")
        logs.ingest()
        assert logs.runs() == [("train.log", 20)]
        assert logs.statuses() == {"train.log": "failed"}
        assert "Input/output error" in logs.lake.read("files", ["error"]).item()
        unreadable.clear()
        logs.ingest()
        assert logs.runs() == [("train.log", 30)]
        assert logs.statuses() == {"train.log": "parsed"}
        assert logs.run_ids() == ids

    @pytest.mark.parametrize("name", ["log_1001.out", "config.json"])
    def test_a_read_error_leaves_the_run_directory_as_it_was(
        self, logs: LakeOfLogs, unreadable: set[str], name: str
    ) -> None:
        run = picotron_run(logs.folder, name="run")
        logs.ingest()
        before = everything(logs.lake)
        (run / "log_1001.out").open("a").write(picotron_lines(7, 9))
        (run / "config.json").write_text((run / "config.json").read_text() + " ")
        unreadable.add(name)
        logs.ingest()
        assert everything(logs.lake) == before
        assert logs.statuses() == {
            "run/config.json": "unread",
            "run/log_1001.out": "unread",
            "run/status.txt": "unread",
            f"run/{name}": "failed",
        }
        unreadable.clear()
        logs.ingest()
        assert logs.runs() == [("run/log_1001.out", 9)]
        assert set(logs.statuses().values()) == {"parsed"}

    def test_a_log_that_became_binary_keeps_what_was_read(self, logs: LakeOfLogs) -> None:
        logs.write("train.log", steps(1, 5))
        logs.ingest()
        logs.write("train.log", bytes(range(256)) * 99)
        logs.ingest()
        assert logs.runs() == [("train.log", 5)]
        assert logs.statuses() == {"train.log": "failed"}

    @pytest.mark.parametrize("size", [0, 100, 1000])
    def test_a_shrunken_log_keeps_what_was_read(self, logs: LakeOfLogs, size: int) -> None:
        text = steps(1, 20)
        logs.write("train.log", text)
        logs.ingest()
        logs.write("train.log", text[:size])
        logs.ingest()
        logs.ingest()
        assert logs.losses() == losses(text)
        assert logs.statuses() == {"train.log": "shrunk"}
        logs.write("train.log", text + steps(21, 22))
        logs.ingest()
        assert logs.runs() == [("train.log", 22)]
        assert logs.statuses() == {"train.log": "parsed"}

    def test_a_log_that_is_gone_keeps_its_run_when_another_of_its_directory_is_new(self, logs: LakeOfLogs) -> None:
        run = picotron_run(logs.folder, name="run")
        logs.ingest()
        settings = logs.lake.read("settings", predicate=pl.col("source_path").str.ends_with("config.json")).height
        (run / "log_1001.out").unlink()
        logs.write("run/log_1002.out", picotron_lines(1, 4, tokens_per_s=100))
        logs.ingest()
        assert logs.runs() == [("run/log_1001.out", 6), ("run/log_1002.out", 4)]
        assert logs.statuses()["run/log_1001.out"] == "gone"
        after = logs.lake.read("settings", predicate=pl.col("source_path").str.ends_with("config.json")).height
        assert after == 2 * settings

    def test_errors_beside_a_log_that_is_gone_are_no_run(self, logs: LakeOfLogs) -> None:
        logs.write("train.out", steps(1, 5))
        logs.write("train.err", "RuntimeError: CUDA error: an illegal memory access was encountered\n")
        logs.ingest()
        assert logs.runs() == [("train.out", 5)]
        (logs.folder / "train.out").unlink()
        logs.append("train.err", "RuntimeError: NCCL error\n")
        logs.ingest()
        assert logs.runs() == [("train.out", 5)]

    def test_settings_of_another_log_of_the_folder_stay(self, logs: LakeOfLogs) -> None:
        logs.write("tp2_pp1/a.log", steps(1, 5))
        logs.ingest()
        logs.write("tp2_pp1/b.log", steps(1, 5, run=2))
        logs.ingest()
        found = logs.lake.read("settings", ["run_id"], pl.col("setting_source") == "folder_name")
        assert found["run_id"].n_unique() == 2


class TestOverwrittenLogs:
    def test_the_run_before_stays(self, logs: LakeOfLogs) -> None:
        texts = [steps(1, 20), steps(1, 30, run=2), steps(1, 10, run=3)]
        for text in texts:
            logs.write("train.log", text)
            logs.ingest()
        assert logs.runs() == [("train.log", 10), ("train.log#1", 20), ("train.log#2", 30)]
        assert logs.losses() == losses(*texts)
        assert logs.statuses() == {"train.log": "parsed", "train.log#1": "overwritten", "train.log#2": "overwritten"}
        ids = logs.run_ids()
        logs.append("train.log", steps(11, 12, run=3))
        logs.ingest()
        assert logs.run_ids() == ids
        assert logs.runs()[0] == ("train.log", 12)

    def test_in_a_run_directory_it_keeps_its_settings(self, logs: LakeOfLogs) -> None:
        run = picotron_run(logs.folder, name="run", dp=2)
        logs.ingest()
        shutil.rmtree(run)
        picotron_run(logs.folder, name="run", dp=4, tokens_per_s=9000)
        logs.ingest()
        assert logs.lake.read("runs", ["steps_logged", "dp"]).sort("dp").rows() == [(6, 2), (6, 4)]
        logs.append("run/log_1001.out", picotron_lines(7, 8, tokens_per_s=9000, dp=4))
        logs.ingest()
        assert logs.lake.read("runs", ["steps_logged", "dp"]).sort("dp").rows() == [(6, 2), (8, 4)]
        used = logs.lake.read("settings", ["value"], (pl.col("name") == "dp") & pl.col("is_used"))
        assert sorted(used["value"].to_list()) == ["2", "4"]

    def test_an_edited_log_is_the_same_run(self, logs: LakeOfLogs) -> None:
        logs.write("train.log", steps(1, 20))
        logs.ingest()
        logs.write("train.log", "token masked\n" + steps(1, 20))
        logs.ingest()
        assert logs.runs() == [("train.log", 20)]


class TestTheSameContentElsewhere:
    def test_a_moved_log_is_the_same_run(self, logs: LakeOfLogs) -> None:
        logs.write("a/train.log", steps(1, 20))
        logs.ingest()
        ids = logs.run_ids()
        shutil.move(logs.folder / "a", logs.folder / "b")
        logs.ingest()
        assert logs.runs() == [("b/train.log", 20)]
        assert logs.statuses() == {"b/train.log": "parsed"}
        logs.append("b/train.log", steps(21, 30))
        logs.ingest()
        assert logs.runs() == [("b/train.log", 30)]
        shutil.move(logs.folder / "b" / "train.log", logs.folder / "c.log")
        logs.append("c.log", steps(31, 40))
        logs.ingest()
        assert logs.runs() == [("c.log", 40)]
        assert logs.run_ids() == ids
        logs.write("a/train.log", steps(1, 3, run=2))
        logs.ingest()
        assert logs.runs() == [("a/train.log", 3), ("c.log", 40)]

    @pytest.mark.parametrize("suffix", [".gz", ".zst"])
    def test_a_compressed_log_is_the_same_run(self, logs: LakeOfLogs, suffix: str) -> None:
        text = steps(1, 20).encode()
        log = logs.write("train.log", text)
        logs.ingest()
        ids = logs.run_ids()
        log.unlink()
        logs.write(f"train.log{suffix}", gzip.compress(text) if suffix == ".gz" else zstandard.compress(text))
        logs.ingest()
        assert logs.runs() == [(f"train.log{suffix}", 20)]
        assert logs.run_ids() == ids

    def test_a_moved_run_directory_keeps_one_run_with_its_settings(self, logs: LakeOfLogs) -> None:
        run = picotron_run(logs.folder, name="run")
        logs.ingest()
        before = logs.lake.read("settings", ["run_id", "name", "value"]).sort(pl.all())
        run.rename(logs.folder / "archive")
        logs.ingest()
        assert logs.runs() == [("archive/log_1001.out", 6)]
        assert set(logs.statuses()) == {"archive/config.json", "archive/log_1001.out", "archive/status.txt"}
        after = logs.lake.read("settings", ["run_id", "name", "value"]).sort(pl.all())
        assert after.equals(before)

    @pytest.mark.parametrize("at_once", [True, False])
    def test_copies_count_once(self, logs: LakeOfLogs, at_once: bool) -> None:
        run = picotron_run(logs.folder / "sweep", name="run")
        logs.write("train.log", steps(1, 20))
        if not at_once:
            logs.ingest()
        shutil.copytree(logs.folder / "sweep", logs.folder / "zcopy")
        shutil.copy(logs.folder / "train.log", logs.folder / "train_copy.log")
        logs.write("train.log.gz", gzip.compress(steps(1, 20).encode()))
        shutil.copy(run / "log_1001.out", logs.folder / "zlog_1001.out")
        logs.ingest()
        assert logs.runs() == [("sweep/run/log_1001.out", 6), ("train.log", 20)]
        copies = {path for path, status in logs.statuses().items() if status == "duplicate"}
        assert copies == {
            "zcopy/run/log_1001.out", "zcopy/run/config.json", "zcopy/run/status.txt", "train_copy.log", "train.log.gz",
            "zlog_1001.out",
        }  # fmt: skip
        logs.ingest()
        assert len(logs.runs()) == 2

    def test_an_older_copy_counts_once(self, logs: LakeOfLogs) -> None:
        logs.write("backup.log", steps(1, 10))
        logs.write("train.log", steps(1, 20))
        logs.ingest()
        assert logs.runs() == [("train.log", 20)]
        logs.write("earlier.log", steps(1, 5))
        logs.ingest()
        assert logs.runs() == [("train.log", 20)]

    def test_an_older_copy_of_a_log_that_is_gone_counts_once(self, logs: LakeOfLogs) -> None:
        log = logs.write("train.log", steps(1, 20))
        logs.ingest()
        log.unlink()
        logs.write("backup.log", steps(1, 10))
        logs.ingest()
        assert logs.runs() == [("train.log", 20)]
        assert logs.statuses()["backup.log"] == "duplicate"

    def test_a_copy_that_goes_on_takes_the_run_along(self, logs: LakeOfLogs) -> None:
        logs.write("a.log", steps(1, 10))
        logs.ingest()
        logs.write("b.log", steps(1, 20))
        logs.ingest()
        logs.ingest()
        assert logs.runs() == [("b.log", 20)]
        assert logs.statuses() == {"a.log": "duplicate", "b.log": "parsed"}

    def test_other_settings_beside_the_same_log_are_another_run(self, logs: LakeOfLogs) -> None:
        picotron_run(logs.folder, name="one", dp=2)
        copy = picotron_run(logs.folder, name="two", dp=2)
        config = (copy / "config.json").read_text()
        (copy / "config.json").write_text(config.replace('"seq_length": 128', '"seq_length": 256'))
        logs.ingest()
        assert len(logs.runs()) == 2

    def test_a_copy_with_its_settings_replaces_a_bare_one(self, logs: LakeOfLogs) -> None:
        run = picotron_run(logs.path / "elsewhere", name="run", dp=2)
        logs.write("bare.log", (run / "log_1001.out").read_text())
        logs.ingest()
        ids = logs.run_ids()
        shutil.move(run, logs.folder / "run")
        logs.ingest()
        logs.ingest()
        assert logs.runs() == [("run/log_1001.out", 6)]
        assert logs.run_ids() == ids
        assert logs.statuses()["bare.log"] == "duplicate"

    def test_runs_that_died_with_the_same_lines_are_runs(self, logs: LakeOfLogs) -> None:
        for n in range(10):
            logs.write(f"{n}/slurm-{n + 1000}.out", "RuntimeError: CUDA error: no device\nsrun: error: exit code 1\n")
        logs.ingest()
        assert len(logs.runs()) == 10

    def test_a_moved_log_in_place_of_another(self, logs: LakeOfLogs) -> None:
        logs.write("a.log", steps(1, 10))
        logs.write("b.log", steps(1, 20, run=2))
        logs.ingest()
        ids = logs.run_ids()
        os.replace(logs.folder / "b.log", logs.folder / "a.log")
        logs.ingest()
        assert logs.runs() == [("a.log", 20), ("a.log#1", 10)]
        assert logs.run_ids() == ids


def everything(lake: Lake) -> dict[str, list[tuple[object, ...]]]:
    return {name: lake.read(name).sort(pl.all()).rows() for name in ("runs", "steps", "settings", "events", "rejects")}


def picotron_lines(first: int, last: int, *, tokens_per_s: float = 4000, dp: int = 2) -> str:
    return "".join(
        f"[default0]:[rank 0] Step: {step:<5d} | Loss: {8 - step / 100:6.4f} | Global batch size: {dp * 512} | "
        f"Tokens/s: {tokens_per_s:.2f} | Tokens/s/GPU: {tokens_per_s / dp:.2f} | Tokens: {dp * 512 * step} | "
        f"MFU: 1.23% | Memory usage:   1.75GB\n"
        for step in range(first, last + 1)
    )


class TestRotatedLogs:
    def test_rotating_changes_no_run(self, logs: LakeOfLogs) -> None:
        parts = [steps(1, 10), steps(11, 20), steps(21, 30), steps(31, 40)]
        logs.write("train.log", parts[0])
        logs.ingest()
        ids = logs.run_ids()
        rotate(logs, parts[1])
        logs.ingest()
        assert logs.lake.read("runs", ["steps_logged"]).rows() == [(20,)]
        rotate(logs, parts[2])
        pack(logs, "train.log.2")
        logs.ingest()
        rotate(logs, parts[3])
        pack(logs, "train.log.2")
        logs.ingest()
        assert logs.runs() == [("train.log.3.gz", 40)]
        assert logs.run_ids() == ids
        assert logs.losses() == losses(*parts)
        assert logs.lake.read("steps", ["source_path", "line_no"], pl.col("step") == 25).rows() == [
            (str(logs.folder / "train.log.1"), 5)
        ]
        assert set(logs.statuses()) == {"train.log", "train.log.1", "train.log.2.gz", "train.log.3.gz"}
        assert set(logs.statuses().values()) == {"parsed"}

    @pytest.mark.parametrize("name", ["train.log-20260103", "train.log.2026-01-03", "train.log.1"])
    def test_rotated_before_the_first_ingest(self, logs: LakeOfLogs, name: str) -> None:
        logs.write(name, steps(1, 10))
        logs.write("train.log", steps(11, 20))
        logs.write("other.log", steps(1, 20, run=2))
        logs.ingest()
        assert logs.runs() == [("other.log", 20), (name, 20)]

    def test_copied_and_truncated(self, logs: LakeOfLogs) -> None:
        logs.write("train.log", steps(1, 10))
        logs.ingest()
        ids = logs.run_ids()
        logs.write("train.log.1", steps(1, 12))
        logs.write("train.log", b"\0" * len(steps(1, 12)) + steps(13, 15).encode())
        logs.ingest()
        assert logs.runs() == [("train.log.1", 15)]
        assert logs.run_ids() == ids
        assert logs.lake.read("rejects").is_empty()

    def test_parts_that_rotation_deletes_keep_their_rows(self, logs: LakeOfLogs) -> None:
        parts = [steps(n, n + 9) for n in range(1, 60, 10)]
        for n, part in enumerate(parts):
            rotate(logs, part, keep=2) if n else logs.write("train.log", part)
            logs.ingest()
            assert logs.losses() == losses(*parts[: n + 1])
            assert len(logs.run_ids()) == 1
            columns = ["steps_logged", "first_step", "last_step", "started_at"]
            ((count, first, last, begin),) = logs.lake.read("runs", columns).rows()
            assert (count, first, last, begin) == (n * 10 + 10, 1, n * 10 + 10, datetime(2026, 1, 2, 0, 1))
        assert logs.statuses()["train.log.2"] == "parsed"

    def test_attempts_keep_their_ids_when_their_parts_go(self, logs: LakeOfLogs) -> None:
        launches = [steps(1, 10), steps(5, 12, minute=100), steps(9, 20, minute=200), steps(15, 30, minute=300)]
        for n, part in enumerate(launches):
            rotate(logs, part, keep=1) if n else logs.write("train.log", part)
            logs.ingest()
            assert logs.losses() == losses(*launches[: n + 1])
        assert len(logs.run_ids()) == 4

    def test_a_rotation_between_listing_and_reading_is_put_right(self, logs: LakeOfLogs) -> None:
        logs.write("train.log", steps(1, 10))
        logs.ingest()
        ids = logs.run_ids()
        rotate(logs, steps(11, 20))
        logs.ingest(logs.folder / "train.log")
        assert len(logs.runs()) == 2
        logs.ingest()
        assert logs.runs() == [("train.log.1", 20)]
        assert logs.run_ids() == ids

    def test_another_run_after_rotation_is_another_attempt(self, logs: LakeOfLogs) -> None:
        logs.write("train.log", steps(1, 10))
        logs.ingest()
        rotate(logs, steps(1, 5, run=2))
        logs.ingest()
        assert logs.runs() == [("train.log", 5), ("train.log.1", 10)]

    def test_a_moved_or_copied_rotated_log_counts_once(self, logs: LakeOfLogs) -> None:
        logs.write("a/train.log", steps(1, 10))
        logs.write("a/train.log.1", steps(1, 10, run=2))
        logs.ingest()
        ids, before = logs.run_ids(), logs.losses()
        shutil.copytree(logs.folder / "a", logs.folder / "b")
        logs.ingest()
        assert logs.run_ids() == ids
        assert logs.losses() == before
        shutil.rmtree(logs.folder / "b")
        shutil.move(logs.folder / "a", logs.folder / "c")
        logs.ingest()
        assert logs.run_ids() == ids
        assert logs.losses() == before

    def test_a_read_error_of_a_part_keeps_what_was_read(self, logs: LakeOfLogs, unreadable: set[str]) -> None:
        logs.write("train.log", steps(1, 10))
        logs.ingest()
        rotate(logs, steps(11, 20))
        unreadable.add("train.log.1")
        logs.ingest()
        assert logs.losses() == losses(steps(1, 10))
        unreadable.clear()
        logs.ingest()
        assert logs.runs() == [("train.log.1", 20)]


def rotate(logs: LakeOfLogs, text: str, *, keep: int = 9) -> None:
    """As logrotate does: every part gets the next number, and the log begins anew."""
    for number in range(keep, -1, -1):
        for suffix in ("", ".gz"):
            path = logs.folder / (f"train.log.{number}{suffix}" if number else f"train.log{suffix}")
            if path.exists():
                if number == keep:
                    path.unlink()
                else:
                    path.rename(logs.folder / f"train.log.{number + 1}{suffix}")
    logs.write("train.log", text)


def pack(logs: LakeOfLogs, name: str) -> None:
    path = logs.folder / name
    logs.write(f"{name}.gz", gzip.compress(path.read_bytes()))
    path.unlink()
