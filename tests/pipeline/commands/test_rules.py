"""`sweepscope rules` and the recipe of `search` on a store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.simulate.sweep import write_sweep


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the bundled published tables and a small simulated sweep."""
    folder = tmp_path_factory.mktemp("rules")
    sweep = write_sweep(folder / "sweep", runs=8, seed=1)
    assert main(["ingest", "--home", str(folder / "home"), str(sweep)]) == 0
    return folder / "home"


def test_rules_are_scored_on_the_playbook(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--home", str(home), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    scores = {row["rule"]: row for row in value["rules"]}
    # The playbook's own sweep: TP over nodes loses nearly everywhere, TP as large as the node seldom wins.
    assert scores["chapter-tp-inside"]["tested"] >= 20
    assert scores["chapter-tp-inside"]["hit_rate"] > 0.85
    assert scores["chapter-tp-first"]["hit_rate"] < 0.3
    assert len(scores["chapter-tp-first"]["runs_against"]) == sum(
        row["verdict"] == "against" for row in value["evidence"] if row["rule"] == "chapter-tp-first"
    )
    assert main(["rules", "--home", str(home), "--document", "heuristics", "--evidence"]) == 0
    said = capsys.readouterr().out
    assert "heuristics-topology" in said
    assert "chapter-tp-inside" not in said
    assert "loses" in said


def test_an_unknown_document_is_one_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", "--home", str(home), "--document", "bible"]) == 2
    assert "Known: chapter, playbook, notes, heuristics, slides." in capsys.readouterr().err


def test_search_tells_the_recipe_with_rules_and_their_record(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["search", "--home", str(home), "--model", "Llama 2 7B", "--nodes", "2", "--accelerator", "H100-SXM-80GB"]
    assert main([*args, "--seq-len", "4096", "--gbs-tokens", "1048576", "--top", "2", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert len(value["layouts"]) == 2
    assert [stop["step"]["id"] for stop in value["recipe"]] == ["fit", "batch", "throughput"]
    advice = {one["rule"]["id"]: one for stop in value["recipe"] for one in stop["advice"]}
    assert advice["chapter-tp-inside"]["tested"] >= 20
    assert advice["chapter-tp-inside"]["runs_for"]
