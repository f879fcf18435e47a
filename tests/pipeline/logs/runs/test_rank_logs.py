"""Logs of the processes of one launch, whose names say nothing of ranks and whose losses are their own."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.logs.runs.rank_logs import rank_logs
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect, current
from sweepscope.schemas.tables.runs import RUNS
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs

BEGIN = datetime(2026, 10, 28, 16, 12)


def log(rank: int, *, begin: datetime = BEGIN, port: int = 29500, world: int = 2, name: str = "rank") -> str:
    """What a trainer prints below the command that it was started by: the losses are those of the rank's own batches."""
    lines = [f"+ python train.py --{name} {rank} --world_size {world} --master_addr 10.0.0.1 --master_port {port}"]
    for step in range(1, 41):
        at = begin + timedelta(seconds=10 * step)
        lines.append(
            f"[{at:%Y-%m-%d %H:%M:%S}] step={step}/40 train_loss={9 - step / 10 + rank / 7:.4f} step_time=9.8s"
        )
    return "\n".join(lines) + "\n"


def counted(directory: Path, **texts: str) -> list[str]:
    """Names of the logs whose runs count."""
    logs = LakeOfLogs(directory)
    for name, text in texts.items():
        logs.write(f"sweep/{name.replace('_', '.')}.log", text)
    logs.ingest()
    home = Home.resolve(str(logs.path / "home"))
    publish(home)
    with connect(current(home.path)) as store:
        rows = store.sql("SELECT source_path FROM runs WHERE duplicate_of IS NULL ORDER BY source_path").fetchall()
    return [Path(path).stem for (path,) in rows]


def test_ranks_of_one_launch_are_one_run(tmp_path: Path) -> None:
    assert counted(tmp_path, tp2_1=log(1), tp2_0=log(0)) == ["tp2.0"]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(log(1, port=29501), id="another address"),
        pytest.param(log(1, begin=BEGIN + timedelta(hours=2)), id="another time"),
        pytest.param(log(1, world=4), id="another size"),
        pytest.param(log(1, name="local_rank"), id="a rank within a node"),
        pytest.param(log(0, begin=BEGIN + timedelta(seconds=3)), id="the same rank"),
    ],
)
def test_logs_of_launches_of_their_own_count_each(other: str, tmp_path: Path) -> None:
    assert counted(tmp_path, tp2_0=log(0), tp2_1=other) == ["tp2.0", "tp2.1"]


def frames(*stated: dict[str, str], hours: tuple[int, ...] = ()) -> tuple[pl.DataFrame, pl.DataFrame]:
    begins = [BEGIN + timedelta(hours=hour) for hour in hours or [0] * len(stated)]
    rows = [
        {"run_id": f"r{at}", "run_dir": "/s", "started_at": begin, "ended_at": begin + timedelta(hours=1)}
        for at, begin in enumerate(begins)
    ]
    arguments = [(f"r{at}", name, value) for at, one in enumerate(stated) for name, value in one.items()]
    return RUNS.conform(pl.DataFrame(rows)), pl.DataFrame(arguments, schema=["run_id", "name", "value"], orient="row")


def test_nodes_are_known_by_torchruns_options_too() -> None:
    at = {"nnodes": "3", "master-addr": "n0", "master-port": "6000"}
    runs, arguments = frames(*({**at, "node-rank": str(node)} for node in (2, 0, 1)))
    assert dict(rank_logs(runs, arguments).iter_rows()) == {"r0": "r1", "r2": "r1"}


def test_nodes_and_processes_are_counted_apart() -> None:
    at = {"num_processes": "16", "num_machines": "2", "main_process_ip": "n0"}  # accelerate launch
    runs, arguments = frames(*({**at, "machine_rank": rank} for rank in ("1", "0")))
    assert dict(rank_logs(runs, arguments).iter_rows()) == {"r0": "r1"}


def test_each_attempt_of_the_other_ranks_belongs_to_that_of_the_first() -> None:
    at = {"world_size": "2", "master_addr": "n0"}
    stated = [{**at, "rank": rank} for rank in ("0", "0", "1", "1")]
    runs, arguments = frames(*stated, hours=(0, 5, 0, 5))
    assert dict(rank_logs(runs, arguments).iter_rows()) == {"r2": "r0", "r3": "r1"}


def test_nothing_is_joined_where_a_rank_seems_to_have_two_logs() -> None:
    at = {"world_size": "2", "master_addr": "n0"}
    runs, arguments = frames(*({**at, "rank": rank} for rank in ("0", "1", "1")))
    assert rank_logs(runs, arguments).is_empty()


def test_a_rank_outside_of_the_world_is_none() -> None:
    runs, arguments = frames(*({"world_size": "1", "rank": rank, "master_addr": "n0"} for rank in ("0", "1")))
    assert rank_logs(runs, arguments).is_empty()
