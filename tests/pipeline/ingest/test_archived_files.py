"""Runs in archives: read as if the archive were a folder, and the same runs as those of the folder."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.pipeline.ingest.lake_of_logs import LakeOfLogs, steps


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def sweep(tmp_path: Path) -> LakeOfLogs:
    logs = LakeOfLogs(tmp_path)
    for run in (1, 2, 3):
        logs.write(f"study/tp{run}/train.log", steps(1, 4 + run, run=run))
    return logs


def packed(logs: LakeOfLogs, name: str = "study.tar.gz", kind: str = "gztar") -> None:
    shutil.make_archive(str(logs.folder / name.split(".", maxsplit=1)[0]), kind, logs.folder, "study")
    logs.touch(name)


def test_runs_of_an_archive_are_those_of_its_folder(tmp_path: Path) -> None:
    logs = sweep(tmp_path)
    packed(logs)
    shutil.rmtree(logs.folder / "study")
    logs.ingest()
    assert logs.runs() == [(f"study.tar.gz/study/tp{run}/train.log", 4 + run) for run in (1, 2, 3)]
    assert set(logs.lake.read("runs", ["sweep"])["sweep"]) == {"study"}
    assert logs.statuses()["study.tar.gz"] == "parsed"
    before = logs.run_ids()
    logs.ingest()
    assert logs.run_ids() == before
    shutil.unpack_archive(logs.folder / "study.tar.gz", logs.folder)
    os.remove(logs.folder / "study.tar.gz")
    logs.ingest()
    assert logs.run_ids() == before
    assert logs.runs() == [(f"study/tp{run}/train.log", 4 + run) for run in (1, 2, 3)]


@pytest.mark.parametrize("kind", ["gztar", "zip", "tar"])
def test_a_folder_beside_its_archive_is_read_once(tmp_path: Path, kind: str) -> None:
    logs = sweep(tmp_path)
    logs.write("study/tp9/train.log", "Traceback (most recent call last):\nRuntimeError: no step was made\n")
    packed(logs, {"gztar": "study.tar.gz", "zip": "study.zip", "tar": "study.tar"}[kind], kind)
    logs.ingest()
    assert [path for path, _ in logs.runs()] == [
        *(f"study/tp{run}/train.log" for run in (1, 2, 3)),
        "study/tp9/train.log",
    ]


def test_a_copy_with_other_times_is_no_second_run(tmp_path: Path) -> None:
    logs = sweep(tmp_path)
    packed(logs)
    for run in (1, 2, 3):
        logs.touch(f"study/tp{run}/train.log")
        os.utime(logs.folder / f"study/tp{run}/train.log", (1_800_000_000, 1_800_000_000))
    logs.ingest()
    assert [path for path, _ in logs.runs()] == [f"study/tp{run}/train.log" for run in (1, 2, 3)]


def test_an_archive_that_gains_a_run_is_read_anew(tmp_path: Path) -> None:
    logs = sweep(tmp_path)
    packed(logs)
    shutil.move(logs.folder / "study", tmp_path / "study")
    logs.ingest()
    before = logs.run_ids()
    shutil.move(tmp_path / "study", logs.folder / "study")
    logs.write("study/tp4/train.log", steps(1, 9, run=4))
    packed(logs)
    shutil.rmtree(logs.folder / "study")
    logs.ingest()
    assert len(logs.run_ids()) == 4
    assert before < logs.run_ids()


def test_an_archive_given_by_name_is_read(tmp_path: Path) -> None:
    logs = sweep(tmp_path)
    packed(logs, "study.zip", "zip")
    shutil.rmtree(logs.folder / "study")
    logs.ingest(logs.folder / "study.zip")
    assert len(logs.runs()) == 3


def test_archives_of_single_runs_are_a_sweep(tmp_path: Path) -> None:
    logs = sweep(tmp_path)
    for run in (1, 2, 3):
        shutil.make_archive(str(logs.folder / f"scan/tp{run}"), "gztar", logs.folder / f"study/tp{run}")
        logs.touch(f"scan/tp{run}.tar.gz")
    shutil.rmtree(logs.folder / "study")
    logs.ingest()
    assert len(logs.runs()) == 3
    assert set(logs.lake.read("runs", ["sweep"])["sweep"]) == {"scan"}


def archive_of(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_a_shard_of_a_data_set_is_left_alone(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    files = {f"{number:05}.{kind}": b"step 1 loss 2.0" for number in range(5) for kind in ("jpg", "txt")}
    logs.write("shard-0000.tar", archive_of(files))
    logs.ingest()
    assert logs.statuses() == {"shard-0000.tar": "skipped"}


def test_what_is_no_archive_is_rejected_with_a_remedy(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write("sweep.tar.gz", "no archive")
    logs.write("sweep.7z", "7z")
    logs.ingest()
    rows = logs.lake.read("files", ["path", "status", "error"]).sort("path").rows()
    assert [status for _, status, _ in rows] == ["rejected", "rejected"]
    assert all("npack it beside the others" in error for _, _, error in rows)
