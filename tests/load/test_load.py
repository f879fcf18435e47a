"""What `make load` measures is what it says: every batch comes to what was there before."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.store.home import Home
from tests.load import growth, unit_costs


def test_batches_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "LAST", 3)
    folders = growth.sweeps(tmp_path / "landing", runs=4, batches=2)
    found = list(growth.grown(Home.resolve(str(tmp_path / "home")), folders))
    assert [(one.before, one.new) for one in found] == [(0, 2), (2, 2), (4, 3)]
    assert all(one.files >= one.new and one.seconds > 0 for one in found)


def test_requests_to_s3_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unit_costs, "COMMITS", 1)
    figures = {what: figure for what, figure, _ in unit_costs.of_commits(tmp_path)}
    assert figures["requests of that commit"] > figures["requests to see that nothing is new"] >= 1
