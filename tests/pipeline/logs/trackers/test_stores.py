"""Stores that MLflow and trackio wrote: every run, parameter and value as their own APIs give them, and runs of them."""

from __future__ import annotations

import gzip
import json
import math
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.logs.trackers import mlflow_folder, mlflow_store
from sweepscope.pipeline.logs.trackers.databases import read_database
from sweepscope.pipeline.logs.trackers.entries import from_bytes, to_bytes
from sweepscope.pipeline.logs.trackers.sqlite_image import opened
from sweepscope.pipeline.logs.trackers.tracked_run import TrackedRun

RECORDED = Path(__file__).parents[3] / "trackers" / "stores"
MLFLOW = sorted(path for path in RECORDED.glob("*.db.gz") if not path.name.startswith("trackio"))
FOLDERS = sorted(RECORDED.glob("*.mlruns.zip"))
TRACKIO = sorted(RECORDED.glob("trackio-*.db.gz"))


def unpacked(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.exists() else b""


def runs_of(path: Path) -> list[TrackedRun]:
    found = read_database(unpacked(path), unpacked(path.with_name(path.name.replace(".db", ".db-wal"))), wanted=_any)
    assert found is not None
    return sorted(found, key=lambda run: run.name)


def _any(_name: str) -> bool:
    return True


def expected(path: Path) -> list[dict[str, Any]]:
    name = path.name.removesuffix(".gz").removesuffix(".zip").removesuffix(".db")
    found: list[dict[str, Any]] = json.loads((path.parent / f"{name}.json").read_text(encoding="utf-8"))
    return sorted(found, key=lambda run: run["name"])


def files_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def folders_of(path: Path) -> list[TrackedRun]:
    folders: dict[str, dict[str, str]] = {}
    for name, data in files_of(path).items():
        if folder := mlflow_folder.run_folder(name):
            folders.setdefault(folder, {})[mlflow_folder.part_of(name)] = data.decode()
    found = [mlflow_folder.read(parts, folder, wanted=_any) for folder, parts in folders.items()]
    return sorted((run for run in found if run), key=lambda run: run.name)


def test_there_are_five_files_of_each_tool() -> None:
    assert min(len(MLFLOW), len(FOLDERS), len(TRACKIO)) >= 5


def history(run: TrackedRun) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {}
    for row in run.rows:
        for name, value in row.scalars.items():
            found.setdefault(name, []).append([row.step or 0, round((row.seconds or 0) * 1e3), _plain(value)])
    return found


def _plain(value: float) -> float:
    """Infinite values as MLflow's database has them, and NaN as something that equals itself."""
    return -1e308 if math.isnan(value) else max(min(value, 1.7976931348623157e308), -1.7976931348623157e308)


@pytest.mark.parametrize("path", [*MLFLOW, *FOLDERS], ids=lambda path: path.name)
def test_a_store_of_mlflow_is_read_as_its_client_reads_it(path: Path) -> None:
    runs, own = folders_of(path) if path in FOLDERS else runs_of(path), expected(path)
    assert [run.name for run in runs] == [run["name"] for run in own]
    for run, truth in zip(runs, own, strict=True):
        assert {key: str(value) for key, value in run.config.items()} == truth["params"]
        assert run.ended == mlflow_store.ended(truth["status"])
        metrics = {
            key: [[step, moment, _plain(value)] for step, moment, value in rows]
            for key, rows in truth["metrics"].items()
        }
        assert history(run) == metrics


@pytest.mark.parametrize("path", TRACKIO, ids=lambda path: path.name)
def test_a_database_of_trackio_is_read_as_trackio_reads_it(path: Path) -> None:
    runs, own = runs_of(path), expected(path)
    assert [(run.name, run.config) for run in runs] == [(run["name"], run["config"]) for run in own]
    for run, truth in zip(runs, own, strict=True):
        rows = [{**{name: _plain(value) for name, value in row.scalars.items()}, "step": row.step} for row in run.rows]
        assert rows == [{name: _plain(value) for name, value in row.items()} for row in truth["rows"]]


def test_only_what_may_be_a_column_is_read_of_metrics() -> None:
    runs = read_database(unpacked(RECORDED / "sweep.db.gz"))
    assert runs is not None
    assert {name for run in runs for row in run.rows for name in row.scalars} == {
        "loss",
        "step_time_s",
        "tokens_per_sec",
    }


def test_runs_are_numbered_as_they_were_begun_deleted_ones_too() -> None:
    assert {run.name: run.number for run in runs_of(RECORDED / "ended.db.gz")} == {
        "ok": 1,
        "failed": 2,
        "killed": 3,
        "running": 4,
    }


def test_runs_go_through_the_bytes_of_a_sandbox_unchanged() -> None:
    runs = [*runs_of(RECORDED / "sweep.db.gz"), *runs_of(RECORDED / "nothing.db.gz")]
    assert from_bytes(to_bytes(runs)) == runs
    assert from_bytes(to_bytes([])) == []
    (diverged,) = from_bytes(to_bytes(runs_of(RECORDED / "diverged.db.gz")))
    assert math.isnan(diverged.rows[-1].scalars["loss"])


def database(*statements: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    return bytes(connection.serialize())


MARKS = ("CREATE TABLE alembic_version (x)", "CREATE TABLE params (x)", "CREATE TABLE metrics (x)")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "it is empty"),
        (b"plain text", "no database of SQLite"),
        (unpacked(RECORDED / "sweep.db.gz")[:200_000], "cut, damaged"),
        (unpacked(RECORDED / "sweep.db.gz")[:50], "cut, damaged"),
        (b"SQLite format 3\0" + b"\xff" * 5000, "cut, damaged"),
        (database(*MARKS, "CREATE TABLE runs (run_uuid, name, status)"), "unknown version.*metrics.is_nan"),
        (database("CREATE TABLE metrics (run_name)", "CREATE TABLE configs (x)"), "unknown version.*configs.config"),
    ],
    ids=["empty", "text", "half", "head", "noise", "mlflow", "trackio"],
)
def test_what_cannot_be_read_says_why(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_database(data)


def test_another_programs_database_is_none() -> None:
    assert read_database(database("CREATE TABLE thumbnails (x)")) is None


def test_views_with_the_names_of_tables_are_not_computed() -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS run_uuid FROM n"
    assert read_database(database(*MARKS, f"CREATE VIEW runs AS {endless}")) is None


def test_pages_that_are_only_in_the_log_count_up_to_the_last_commit() -> None:
    data, log = unpacked(RECORDED / "trackio-sweep-live.db.gz"), unpacked(RECORDED / "trackio-sweep-live.db-wal.gz")
    assert log
    whole = len(read_database(data, log) or [])
    counts = []
    for end in range(0, len(log), len(log) // 40):
        with opened(data, log[:end]) as connection:
            tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'metrics'").fetchone()[0]
            counts.append(connection.execute("SELECT count(*) FROM metrics").fetchone()[0] if tables else 0)
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]
    assert whole == 3
    damaged = log[:5000] + bytes([log[5000] ^ 0x55]) + log[5001:]
    with opened(data, damaged) as connection:  # what follows a damaged page is not taken in
        assert connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)


def test_a_line_that_is_being_written_waits() -> None:
    whole = "1790000000000 9.5 1\n1790000000500 9.0 2\n"
    assert mlflow_folder.read_metric("loss", whole + "17900000") == mlflow_folder.read_metric("loss", whole)
    with pytest.raises(ValueError, match=r"."):
        mlflow_folder.read_metric("loss", "no metric\n")
