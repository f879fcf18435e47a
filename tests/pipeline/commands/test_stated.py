"""`ingest --set`, `--unset`, `--override` and `sweepscope stated`, as a user meets them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sweepscope.pipeline.__main__ import main
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.lake import Lake
from tests.acme import LOG

pytestmark = pytest.mark.usefixtures("few_views_in_module")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "sweep" / "a" / "train.log"
    path.parent.mkdir(parents=True)
    path.write_text("step: 1/2 | loss: 9.1\nstep: 2/2 | loss: 8.2\n" + LOG)
    return path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_statement_is_kept_applied_listed_and_withdrawn(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, sweep = str(tmp_path / "home"), str(tmp_path / "sweep")
    ingest = ("ingest", sweep, "--no-published", "--home", home)
    runs = lambda: Lake(Home(Path(home))).read("runs").sort("run_id")  # noqa: E731  # named for what it returns
    assert answer(capsys, "stated", "--home", home) == []
    assert answer(capsys, *ingest)["stated"] == []
    before = runs()
    read = answer(capsys, *ingest, "--set", "cluster=alps", "--set", "torch_version=2.7")
    assert {row["name"]: row["used"] for row in read["stated"]} == {"cluster": 1, "torch_version": 1}
    assert runs()["cluster"].to_list() == ["alps"]
    assert answer(capsys, *ingest)["files"]["new"] == 0
    (listed,) = answer(capsys, "stated", "--home", home)
    assert (listed["folder"], listed["cluster"], listed["override"]) == (sweep, "alps", False)
    assert main(["stated", "--home", home]) == 0
    assert "cluster = alps, torch_version = 2.7" in capsys.readouterr().out
    assert answer(capsys, *ingest, "--unset", "cluster", "--unset", "torch_version")["stated"] == []
    assert runs().equals(before)
    assert answer(capsys, "stated", "--home", home) == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--set", "clutser=alps"], "Did you mean cluster or recompute?"),
        (["--set", "accelerator=H1OO-SXM-80GB"], "Did you mean H100-SXM-80GB or "),
        (["--set", "num_gpus"], "Write --set NAME=VALUE"),
        (["--unset", "clster"], "Did you mean cluster?"),
        (["--override"], "Give --set NAME=VALUE, too"),
    ],
)
def test_what_cannot_be_stated_is_refused_and_nothing_is_kept(
    arguments: list[str], reason: str, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ingest", str(log), "--home", str(tmp_path / "home"), *arguments]) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "home" / "stated").exists()


def test_nothing_is_stated_of_a_mistyped_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "home"
    assert main(["ingest", str(tmp_path / "sweeep"), "--home", str(home), "--set", "cluster=alps"]) == 2
    assert "No such file or directory" in capsys.readouterr().err
    assert answer(capsys, "stated", "--home", str(home)) == []
