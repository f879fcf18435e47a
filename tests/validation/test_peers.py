"""Other estimators are asked plain questions in a process of their own, and their refusals are told apart."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.validation.peers import ask as asking
from tests.validation.peers.ask import ask, missing
from tests.validation.peers.beside import OURS, asked_of, balanced, beside
from tests.validation.peers.questions import questions

RUNNER = """
from answering import serve
def answer(asked):
    if asked["pp"] > 8:
        raise ValueError("too deep")
    return asked["gas"] * 1.0, asked["peak_flops"]
serve(answer)
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a peer that counts accumulation steps and refuses deep pipelines."""
    (tmp_path / "calculon").mkdir()
    runner = tmp_path / "runner.py"
    runner.write_text(RUNNER)
    monkeypatch.setenv(asking.VARIABLE, str(tmp_path))
    monkeypatch.setitem(asking.PEERS, "Calculon", str(runner))
    return tmp_path


def test_a_peer_that_is_absent_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(asking.VARIABLE, raising=False)
    assert "SWEEPSCOPE_PEERS" in missing("SimuMax")
    monkeypatch.setenv(asking.VARIABLE, str(tmp_path))
    assert str(tmp_path) in missing("SimuMax")


def test_a_peer_answers_in_a_process_of_its_own(checkout: Path) -> None:
    assert not missing("Calculon")
    rows = asked_of("selene_megatron")
    asked = [row for batch in rows.batches for row in questions(batch)]
    found = ask("Calculon", asked)
    deep = np.array([row["pp"] > 8 for row in asked])
    assert (np.isnan(found.seconds) == deep).all()
    assert found.reason == "ValueError: too deep"
    assert found.seconds[~deep].tolist() == [row["gas"] for row in asked if row["pp"] <= 8]
    assert "calculon" not in sys.modules


def test_balanced_accuracy_weighs_both_outcomes_alike() -> None:
    ran = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    assert balanced(np.array([1.0, 1.0, 1.0, 0.0, 1.0]), ran) == pytest.approx(37.5)
    assert balanced(np.ones(5), np.ones(5)) is None


def test_peers_stand_beside_ours_on_the_rows_that_they_answer(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.validation.peers.beside.TABLES", ("selene_megatron",))
    found = beside()
    same = found.filter(who=f"{OURS}, the same rows")
    theirs = found.filter(who="Calculon")
    assert same["rows"].to_list() == theirs["rows"].to_list()
    assert theirs["rows"][0] < found.filter(who=OURS)["rows"][0]
    assert found.filter(who="SimuMax")["note"][0].startswith("skipped: no ")
