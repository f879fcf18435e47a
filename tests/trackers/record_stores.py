"""Write the stores beside this file anew, with MLflow and trackio themselves.

    python -m venv build/stores
    build/stores/bin/pip install mlflow trackio
    build/stores/bin/python tests/trackers/record_stores.py

`stores/NAME.db.gz` is a database (MLflow's schema alone takes 900 KB, packed 30), `stores/NAME.mlruns.zip` a file
store, and `NAME.json` what the tool's own API gives: runs with status, parameters and the history of each metric.
Recorded with mlflow 3.17.2 and trackio 0.43.0; `old.db.gz` with mlflow 2.22.0.
"""

# mypy: ignore-errors

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

HERE = Path(__file__).parent / "stores"
STEPS = 12
START_MS = 1_790_000_000_000


def losses(name: str) -> list[float]:
    return [9.0 / step + len(name) for step in range(1, STEPS + 1)]


def tp(name: str, size: int) -> tuple[str, dict, dict]:
    """Name, configuration and metrics by step of a run."""
    config = {"tp": size, "pp": 1, "dp": 8 // size, "seq_len": 4096, "micro_batch_size": 2, "optimizer": "adamw"}
    logged = {
        step: {"loss": loss, "step_time_s": 0.5 + size / 100, "tokens_per_sec": 65536.0, "accuracy": 0.25}
        for step, loss in enumerate(losses(name), 1)
    }
    return name, config, logged


def trainer(name: str) -> tuple[str, dict, dict]:
    """As transformers' callback logs: every tenth step, and an evaluation between."""
    config = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "bf16": True, "model_type": "llama"}
    logged = {
        10 * step: {"train/loss": loss, "train/learning_rate": 1e-4, "train/epoch": step / 12}
        | ({"eval/loss": 3.5} if step % 4 == 0 else {})
        for step, loss in enumerate(losses(name), 1)
    }
    return name, config, logged


def diverged(name: str) -> tuple[str, dict, dict]:
    name, config, logged = tp(name, 2)
    return name, config, {**logged, 11: {"loss": float("inf")}, 12: {"loss": float("nan")}}


CASES = {
    "sweep": [tp("tp2", 2), tp("tp4", 4), tp("tp8", 8)],
    "trainer": [trainer("hf-a"), trainer("hf-longer-name")],
    "diverged": [diverged("nan")],
    "ended": [tp("ok", 2), tp("failed", 2), tp("killed", 2), tp("running", 2), tp("deleted", 2)],
    "nothing": [("empty", {"tp": 2}, {}), ("accuracy", {}, {1: {"accuracy": 0.5}})],
}
STATUS = {"failed": "FAILED", "killed": "KILLED", "running": None}


def write_mlflow(uri: str, case: str) -> list:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, ViewType

    client = MlflowClient(uri)
    experiment = client.create_experiment(case, artifact_location="artifacts")
    for name, config, logged in CASES[case]:
        run = client.create_run(
            experiment, start_time=START_MS, run_name=name, tags={"mlflow.user": "user"}
        ).info.run_id
        metrics = [
            Metric(key, value, START_MS + 500 * step, step)
            for step, row in logged.items()
            for key, value in row.items()
        ]
        client.log_batch(run, metrics=metrics, params=[Param(key, str(value)) for key, value in config.items()])
        if STATUS.get(name, "FINISHED"):
            client.set_terminated(run, STATUS.get(name, "FINISHED"), end_time=START_MS + 500 * STEPS)
        if name == "deleted":
            client.delete_run(run)
    found = []
    for run in client.search_runs([experiment], run_view_type=ViewType.ACTIVE_ONLY):
        history = {
            key: [[one.step, one.timestamp, one.value] for one in client.get_metric_history(run.info.run_id, key)]
            for key in run.data.metrics
        }
        about = {"name": run.info.run_name, "status": run.info.status, "params": run.data.params}
        found.append(about | {"metrics": history})
    return sorted(found, key=lambda one: one["name"])


def record_mlflow(target: str, case: str) -> None:
    folder = Path(tempfile.mkdtemp())
    expected = write_mlflow(f"sqlite:///{folder}/mlflow.db", case)
    packed(folder / "mlflow.db", target, expected)


def record_folder(case: str) -> None:
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # in maintenance since 3.0
    folder = Path(tempfile.mkdtemp())
    expected = write_mlflow(f"file://{folder}/mlruns", case)
    with zipfile.ZipFile(HERE / f"{case}.mlruns.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                text = path.read_text().replace(str(folder), "/store")
                archive.writestr(str(path.relative_to(folder)), text)
    written(f"{case}.mlruns", expected)


def record_trackio(case: str, *, keep_log: bool = False) -> None:
    folder = Path(tempfile.mkdtemp())
    quiet = {"TRACKIO_DIR": str(folder), "HF_HUB_OFFLINE": "1", "TRACKIO_CASE": case, "USER": "user"}
    subprocess.run(
        [sys.executable, __file__, "trackio", "live" if keep_log else ""], env={**os.environ, **quiet}, check=True
    )
    target = f"trackio-{case}{'-live' if keep_log else ''}"
    expected = json.loads((folder / "expected.json").read_text())
    packed(folder / "kept.db" if keep_log else folder / f"{case}.db", target, expected)
    if keep_log:
        (HERE / f"{target}.db-wal.gz").write_bytes(gzip.compress((folder / "kept.db-wal").read_bytes(), mtime=0))


def write_trackio(*, keep_log: bool) -> None:
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    case, folder = os.environ["TRACKIO_CASE"], Path(os.environ["TRACKIO_DIR"])
    reader = None
    for name, config, logged in CASES[case]:
        run = trackio.init(project=case, name=name, config=config, embed=False)
        for step, row in logged.items():
            run.log(row, step=step)
        run.finish()
        if keep_log and reader is None:
            import sqlite3

            reader = sqlite3.connect(folder / f"{case}.db")  # as long as somebody reads, no log is taken in
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM metrics").fetchone()
    if keep_log:
        shutil.copyfile(folder / f"{case}.db", folder / "kept.db")
        shutil.copyfile(folder / f"{case}.db-wal", folder / "kept.db-wal")
    found = []
    for name, _, logged in CASES[case]:
        if logged:
            config = {key: value for key, value in SQLiteStorage.get_run_config(case, name).items() if key[:1] != "_"}
            rows = [{key: one[key] for key in one if key != "timestamp"} for one in SQLiteStorage.get_logs(case, name)]
            found.append({"name": name, "config": config, "rows": rows})
    (folder / "expected.json").write_text(json.dumps(found))


def packed(database: Path, target: str, expected: list) -> None:
    (HERE / f"{target}.db.gz").write_bytes(gzip.compress(database.read_bytes(), mtime=0))
    written(target, expected)


def written(target: str, expected: list) -> None:
    (HERE / f"{target}.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    if sys.argv[1:2] == ["trackio"]:
        write_trackio(keep_log=sys.argv[2] == "live")
    elif sys.argv[1:]:  # `old`, with an older MLflow
        record_mlflow(sys.argv[1], "sweep")
    else:
        for one in CASES:
            record_mlflow(one, one)
            with contextlib.suppress(ImportError):
                record_folder(one)
            record_trackio(one)
        record_trackio("sweep", keep_log=True)
