"""`sweepscope next` on a store: proposals with reasons, and one line where there is nothing to propose from."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.commands.next_run import entries
from sweepscope.pipeline.estimate.advice.cell import Cell
from sweepscope.pipeline.estimate.advice.next_runs import NextRuns


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the bundled simulated sweep, without the published tables."""
    from sweepscope.pipeline.simulate.sweep import write_sweep

    folder = tmp_path_factory.mktemp("next")
    sweep = write_sweep(folder / "sweep", runs=24, seed=1)
    assert main(["ingest", "--home", str(folder / "home"), "--no-published", str(sweep)]) == 0
    return folder / "home"


def test_proposals_are_ranked_and_say_why(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["next", "--home", str(home), "--min-runs", "1", "--top", "3", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert len(value["next"]) == 3
    gains = [entry["gain_per_gpu_hour"] for entry in value["next"]]
    assert gains == sorted(gains, reverse=True)
    assert all(entry["why"].endswith(".") and entry["best"]["run_id"] for entry in value["next"])
    monkeypatch.setattr("sweepscope.pipeline.commands.next_run._MANY_CELLS", 0)
    assert main(["next", "--home", str(home), "--min-runs", "1", "--top", "1"]) == 0
    told = capsys.readouterr()
    assert value["next"][0]["layout"] in told.out
    assert "left out: already measured" in told.out
    assert f"{len(value['cells'])} cells" in told.err, "a long search is announced"


@pytest.mark.parametrize(
    ("args", "code", "line"),
    [
        (["--model", "Llama 9T"], 2, "The store has no runs with model Llama 9T."),
        (["--nodes", "4097"], 2, "The store has no runs with nodes 4097."),
        (["--top", "0"], 2, "--top must be at least 1, not 0."),
        (["--startup-s", "-1"], 2, "--startup-s must not be negative"),
        (["--min-runs", "99"], 1, "has 99 measured runs. Ingest more, or lower --min-runs."),
    ],
)
def test_what_cannot_be_is_one_line(
    home: Path, args: list[str], code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["next", "--home", str(home), *args]) == code
    said = capsys.readouterr().err.strip().splitlines()
    assert line in said[-1]
    assert len(said) == 1


def test_without_a_store_it_says_how_to_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["next", "--home", str(tmp_path)]) == 1
    assert "ingest" in capsys.readouterr().err


def test_a_gain_that_rounds_to_nothing_is_not_proposed() -> None:
    candidates = pl.DataFrame(
        {"layout": ["a", "b", "c"], "gain": [0.02, 0.0005, None], "gain_per_gpu_hour": [0.1, 0.9, None]}
    )
    cell = Cell({"model": "m"}, pl.DataFrame(), None, "")
    proposed = NextRuns(candidates, {"run_id": "r"}, 3, {}, "basis", None)
    assert [entry["layout"] for entry in entries([(cell, proposed)])] == ["a", "c"]


def test_each_cell_proposes_its_first_test_before_any_proposes_a_second() -> None:
    def cell(model: str, gains: list[float]) -> tuple[Cell, NextRuns]:
        names = [f"{model}{place}" for place in range(len(gains))]
        candidates = pl.DataFrame({"layout": names, "gain": gains, "gain_per_gpu_hour": gains})
        return Cell({"model": model}, pl.DataFrame(), None, ""), NextRuns(candidates, {}, 3, {}, "basis", None)

    found = entries([cell("a", [0.30, 0.29]), cell("b", [0.05]), cell("c", [0.10, 0.02])])
    assert [entry["layout"] for entry in found] == ["a0", "c0", "b0", "a1", "c1"]
