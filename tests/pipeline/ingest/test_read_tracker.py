"""Files in which trackers keep several runs, from discovery to the rows of the tables and into a home."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.ingest.batch import Tables, parse_batch, validate_batch
from sweepscope.pipeline.ingest.discover import discover
from sweepscope.pipeline.io.files import list_files
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect, current
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs
from tests.pipeline.ingest_in_memory import LATER
from tests.pipeline.logs.trackers.test_histories import WANDB
from tests.pipeline.logs.trackers.test_wandb_exports import RUNS, csv_of, history_of

STORES = Path(__file__).parents[2] / "trackers" / "stores"


def put(name: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(gzip.decompress((STORES / name).read_bytes()))


def put_folder(name: str, target: Path) -> None:
    with zipfile.ZipFile(STORES / name) as archive:
        archive.extractall(target)


def read(root: Path) -> Tables:
    found = discover(list_files(str(root)), is_simulated=lambda _place: False)
    return validate_batch(parse_batch(found, now=LATER))


def runs_of(tables: Tables) -> list[dict[str, Any]]:
    return tables["runs"].sort("source_path", "line_no").to_dicts()


def test_the_runs_of_a_database_are_rows_of_it(tmp_path: Path) -> None:
    put("sweep.db.gz", tmp_path / "sweep" / "mlflow.db")
    tables = read(tmp_path)
    path = str(tmp_path / "sweep" / "mlflow.db")
    runs = runs_of(tables)
    assert [(run["tp"], run["dp"], run["mbs"], run["seq_len"]) for run in runs] == [
        (2, 4, 2, 4096),
        (4, 2, 2, 4096),
        (8, 1, 2, 4096),
    ]
    assert [(run["source_path"], run["line_no"], run["status"]) for run in runs] == [
        (path, number, "completed") for number in (1, 2, 3)
    ]
    assert [(run["steps_logged"], run["step_time_s"]) for run in runs] == [(12, 0.52), (12, 0.54), (12, 0.58)]
    assert {run["framework"] for run in runs} == {"other"}
    assert set(tables["steps"]["source_path"]) == {path}
    assert tables["steps"]["run_id"].n_unique() == 3
    assert set(tables["settings"]["source_path"].drop_nulls()) == {path}
    (file,) = tables["files"].to_dicts()
    assert (file["kind"], file["status"], file["parser"]) == ("tracker", "parsed", "other")
    assert file["rows_parsed"] >= 36 + 3
    assert tables["arguments"].filter(name="optimizer")["value"].unique().to_list() == ["adamw"]


def test_how_runs_ended_is_what_the_tracker_says(tmp_path: Path) -> None:
    put("ended.db.gz", tmp_path / "mlflow.db")
    by_dir = {run["run_dir"].rpartition("-")[2]: run["status"] for run in runs_of(read(tmp_path))}
    assert by_dir == {"ok": "completed", "failed": "crash", "killed": "cancelled", "running": "truncated"}


def test_runs_without_steps_are_rejects_with_their_reason(tmp_path: Path) -> None:
    put("nothing.db.gz", tmp_path / "mlflow.db")
    tables = read(tmp_path)
    assert tables["runs"].is_empty()
    rejects = tables["rejects"].sort("line_no")
    assert rejects["raw"].to_list() == ["empty", "accuracy"]
    assert rejects["reason"].str.contains("a run without steps: no loss").all()


def test_a_diverged_run_keeps_its_last_losses(tmp_path: Path) -> None:
    put("diverged.db.gz", tmp_path / "mlflow.db")
    tables = read(tmp_path)
    (run,) = runs_of(tables)
    assert run["steps_logged"] == 12
    assert "nan_loss" in set(tables["events"]["kind"])


def test_folders_and_databases_of_the_same_runs_are_alike(tmp_path: Path) -> None:
    wanted = ["tp", "dp", "mbs", "seq_len", "status", "steps_logged", "step_time_s", "last_loss"]
    put("sweep.db.gz", tmp_path / "a" / "mlflow.db")
    put_folder("sweep.mlruns.zip", tmp_path / "b")
    tables = read(tmp_path)
    by_place = tables["runs"].with_columns(pl.col("source_path").str.contains("/b/mlruns/").alias("in_folder"))
    folders, database = (
        by_place.filter(pl.col("in_folder") == which).sort("tp").select(wanted) for which in (True, False)
    )
    assert folders.height == 3
    assert folders.equals(database)
    assert set(tables["runs"]["source_path"].str.extract(r"([^/]+)$")) == {"mlflow.db", "meta.yaml"}
    of_metrics = tables["files"].filter(pl.col("path").str.contains("/metrics/"))
    assert set(of_metrics["status"]) == {"parsed"}


def test_a_database_of_trackio_is_read_with_its_log(tmp_path: Path) -> None:
    put("trackio-sweep-live.db.gz", tmp_path / "sweep.db")
    put("trackio-sweep-live.db-wal.gz", tmp_path / "sweep.db-wal")
    tables = read(tmp_path)
    assert [run["tp"] for run in runs_of(tables)] == [2, 4, 8]
    assert tables["files"].sort("path")["status"].to_list() == ["parsed", "skipped"]
    assert tables["files"]["unit"].n_unique() == 1


@pytest.mark.parametrize(
    ("data", "status", "why"),
    [
        (b"", "rejected", "empty"),
        (b"\x00" * 100, "rejected", "no database"),
        (gzip.decompress((STORES / "sweep.db.gz").read_bytes())[:300_000], "rejected", "cut, damaged"),
    ],
    ids=["empty", "zeros", "cut"],
)
def test_a_file_that_cannot_be_read_is_a_reject_and_the_others_are_read(
    tmp_path: Path, data: bytes, status: str, why: str
) -> None:
    put("sweep.db.gz", tmp_path / "good.db")
    (tmp_path / "bad.db").write_bytes(data)
    tables = read(tmp_path)
    assert tables["runs"].height == 3
    bad = tables["files"].filter(pl.col("path").str.ends_with("bad.db")).row(0, named=True)
    assert bad["status"] == status
    assert why in bad["error"]


def test_a_damaged_file_of_a_folder_is_a_reject_and_its_run_stays(tmp_path: Path) -> None:
    put_folder("sweep.mlruns.zip", tmp_path)
    (damaged,) = list(tmp_path.rglob("metrics/accuracy"))[:1]
    damaged.write_text("no metric at all\n")
    shutil.rmtree(next(tmp_path.rglob("params")))
    tables = read(tmp_path)
    assert tables["runs"].height == 3
    status = dict(tables["files"].select("path", "status").iter_rows())
    assert status[str(damaged)] == "rejected"


@pytest.fixture
def logs(tmp_path: Path) -> LakeOfLogs:
    return LakeOfLogs(tmp_path)


def database_of(*statements: str) -> bytes:
    """The database of runs that ended in several ways, changed."""
    connection = sqlite3.connect(":memory:")
    connection.deserialize(gzip.decompress((STORES / "ended.db.gz").read_bytes()))
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    return bytes(connection.serialize())


def known(logs: LakeOfLogs) -> pl.DataFrame:
    return logs.lake.read("runs").select("run_id", "line_no", "status", "source_path", "steps_logged").sort("line_no")


def test_a_database_that_changes_and_moves_keeps_its_runs_and_their_ids(logs: LakeOfLogs) -> None:
    logs.write("s/mlflow.db", database_of())
    logs.ingest()
    first = known(logs)
    logs.write("s/mlflow.db", database_of("UPDATE runs SET status = 'FINISHED' WHERE name = 'running'"))
    logs.ingest()
    assert known(logs)["run_id"].to_list() == first["run_id"].to_list()
    assert known(logs)["status"].to_list() == ["completed", "crash", "cancelled", "completed"]
    (logs.folder / "s/mlflow.db").rename(logs.folder / "s/moved.db")
    logs.touch("s/moved.db")
    logs.ingest()
    moved = known(logs)
    assert moved["run_id"].to_list() == first["run_id"].to_list()
    assert moved["source_path"].unique().to_list() == [str(logs.folder / "s/moved.db")]
    (logs.folder / "s/moved.db").unlink()
    logs.write("s/train.log", "nothing\n")
    logs.ingest()
    assert known(logs).height == 4  # what was read stays


def test_exports_of_wandb_are_runs_of_their_file(tmp_path: Path) -> None:
    for path in WANDB:
        write = tmp_path / f"{path.stem}.csv"
        write.write_text(csv_of(history_of(path)))
    (tmp_path / "runs.csv").write_text(RUNS)
    (tmp_path / "history").mkdir()
    pl.DataFrame(history_of(WANDB[0]), infer_schema_length=None).write_parquet(tmp_path / "history" / "0000.parquet")
    (tmp_path / "history" / "cut.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    tables = read(tmp_path)
    count = tables["runs"].group_by(pl.col("source_path").str.extract(r"([^/]+)$")).len()
    assert dict(count.iter_rows()) == {
        **{f"{path.stem}.csv": 1 for path in WANDB},
        "0000.parquet": 1,
        "runs.csv": 3,
    }
    files = {
        path.rpartition("/")[2]: row for path, *row in tables["files"].select("path", "kind", "status").iter_rows()
    }
    assert files["other.csv"] == ["bench_csv", "skipped"]
    assert files["cut.parquet"] == ["tracker", "rejected"]
    assert (files["runs.csv"], files["0000.parquet"]) == (["bench_csv", "parsed"], ["tracker", "parsed"])
    listed = tables["runs"].filter(pl.col("source_path").str.ends_with("runs.csv")).sort("line_no")
    assert listed["status"].to_list() == ["completed", "failed", "crash"]
    assert listed["tp"].to_list() == [2, 4, 8]
    assert tables["rejects"].filter(pl.col("file").str.ends_with("runs.csv")).is_empty()


def test_a_table_of_runs_lends_a_chart_of_wandb_its_settings(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    logs.write(
        "wandb_export_chart.csv",
        '"Step","tp2 - train/loss","tp4 - train/loss"\n'
        + "".join(f'"{step}","{9 - step / 10}","{9.01 - step / 10}"\n' for step in range(30)),
    )
    logs.write(
        "wandb_export_runs.csv",
        '"Name","State","Created","Runtime","parallel.tp","train.micro_batch_size","train.global_batch_size",'
        '"perf/step_time (s)"\n'
        '"tp2","finished","2026-01-01","100","2","1","256","2.5"\n"tp4","crashed","2026-01-01","5","4","2","256","2.25"\n',
    )
    logs.ingest()
    home = Home.resolve(str(logs.path / "home"))
    publish(home)
    with connect(current(home.path)) as store:
        rows = store.sql(
            "SELECT tp, mbs, gbs, step_time_s, last_step, status FROM runs WHERE duplicate_of IS NULL ORDER BY tp"
        )
        assert rows.fetchall() == [(2, 1, 256, 2.5, 29, "completed"), (4, 2, 256, 2.25, 29, "crash")]
