"""Files that hold steps and nothing else, and where the others of their sweep ended."""

from __future__ import annotations

import json
from pathlib import Path

from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.publish import publish
from sweepscope.pipeline.store.published import connect, current
from tests.pipeline.ingest.lake_of_logs import LakeOfLogs


def records(steps: int, run: int = 0) -> str:
    """Steps of a run, whose losses are its own."""
    rows = (
        {"iteration": at, "train": {"loss": 2 + run / 7 + 8 / at}, "perf": {"iter_ms": 812.5}}
        for at in range(1, steps + 1)
    )
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def statuses(logs: LakeOfLogs) -> dict[str, tuple[str, str]]:
    """Status and confidence by the folder of each run, as the newest store has them."""
    home = Home.resolve(str(logs.path / "home"))
    publish(home)
    with connect(current(home.path)) as store:
        rows = store.sql("SELECT source_path, status, status_confidence FROM runs ORDER BY source_path").fetchall()
    return {Path(path).parent.name: (status, confidence) for path, status, confidence in rows}


def test_records_that_end_together_are_those_of_completed_runs(tmp_path: Path) -> None:
    logs = LakeOfLogs(tmp_path)
    for run, (name, steps) in enumerate({"a": 40, "b": 40, "died": 17}.items(), 1):
        logs.write(f"sweep/{name}/metrics.jsonl", records(steps, run))
    logs.write("other/c/metrics.jsonl", records(40))
    logs.ingest()
    assert {status for status, _ in statuses(logs).values()} == {"unknown"}
    logs.write("sweep/late/metrics.jsonl", records(40, 5))
    logs.ingest()
    done = ("completed", "low")
    unknown = ("unknown", "low")
    assert statuses(logs) == {"a": done, "b": done, "late": done, "died": unknown, "c": unknown}
    logs.write("sweep/longer/metrics.jsonl", records(60, 6))
    logs.ingest()
    assert {status for status, _ in statuses(logs).values()} == {"unknown"}
