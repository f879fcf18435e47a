"""What `make load` measures is what it says: every batch comes to what was there before."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.published import connect, current
from tests.load import growth, lag, places, unit_costs
from tests.load.places import WAYS, long_logs


def test_batches_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "LAST", 3)
    folders = growth.sweeps(tmp_path / "landing", runs=4, batches=2)
    found = list(growth.grown(Home.resolve(str(tmp_path / "home")), folders))
    assert [(one.before, one.new) for one in found] == [(0, 2), (2, 2), (4, 3)]
    assert all(one.files >= one.new and one.seconds > 0 and one.cpu_s > 0 for one in found)


def test_requests_to_s3_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_costs, "COMMITS", 1)
    figures = {what: figure for what, figure, _ in unit_costs.of_commits(tmp_path)}
    assert figures["requests of that commit"] > figures["requests to see that nothing is new"] >= 1


def test_every_way_reads_the_whole_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "WAYS", {"one reader": WAYS["one reader"]})
    folder = long_logs(tmp_path / "long", logs=2, size=30_000)
    assert all(log.stat().st_size >= 30_000 for log in folder.rglob("log.out"))
    found = list(places.places(tmp_path, {"long logs": folder}))
    assert [(one.corpus, one.way) for one in found] == [
        ("long logs", "one reader"),
        ("long logs", "one reader, lake on S3"),
    ]
    assert all(one.seconds > 0 and one.cpu_s > 0 for one in found)
    for home in ("one reader", "S3"):
        with connect(current(tmp_path / "homes of long logs" / home)) as connection:
            ((runs, steps, last),) = connection.execute(
                "SELECT count(DISTINCT run_id), count(*), max(step) FROM steps"
            ).fetchall()
        assert (runs, steps) == (2, 2 * last)


def test_new_runs_show_beside_those_that_were_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "LAST", 2)
    monkeypatch.setattr(lag, "LAST", 2)
    home, landing = Home.resolve(str(tmp_path / "home")), tmp_path / "landing"
    (one,) = lag.lags(home, landing, growth.sweeps(landing, runs=2, batches=1), times=1)
    assert one.seconds > one.publish_s > 0
