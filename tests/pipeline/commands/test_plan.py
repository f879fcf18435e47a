"""`sweepscope plan`: a plan in the store, which stays when logs are read again, and one line for what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweepscope.pipeline.__main__ import build_parser
from sweepscope.pipeline.commands.query import run_query
from sweepscope.pipeline.store.home import Home
from tests.pipeline.commands.calls import assert_one_line_error, called

QUESTION = (
    *("--model", "Llama 3 8B", "--nodes", "2", "--accelerator", "H100-SXM-80GB"),
    *("--seq-len", "4096", "--gbs-tokens", "1048576"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plan") / "home"


def test_a_plan_is_rows_of_the_store_and_survives_an_ingest(home: Path, tmp_path: Path) -> None:
    done = called("plan", *QUESTION, "--budget-gpu-hours", "6", "--framework", "nanotron", "--json", home=home)
    assert done.returncode == 0, done.stderr
    value = json.loads(done.stdout)
    assert 0 < value["planned_gpu_hours"] <= 6
    name = value["plan_id"]
    log = tmp_path / "run" / "train.log"
    log.parent.mkdir()
    log.write_text("nothing of any trainer\n")
    assert called("ingest", "--no-published", log.parent, home=home).returncode == 0
    rows = run_query(Home(home), "SELECT planned_run_id, plan_outcome, position FROM plan_status ORDER BY position")
    assert rows["planned_run_id"].to_list() == [row["planned_run_id"] for row in value["planned_runs"]]
    assert set(rows["plan_outcome"]) == {"missing"}
    assert all(run.startswith(f"{name}-") for run in rows["planned_run_id"])


def test_text_has_layouts_reasons_and_what_comes_next(home: Path) -> None:
    done = called("plan", *QUESTION, "--budget-gpu-hours", "6", "--for", "scaling", "--dry-run", home=home)
    assert done.returncode == 0
    assert "1 node " in done.stdout
    assert "2 nodes" in done.stdout
    assert "GPU-hours" in done.stdout
    assert "not kept" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("args", "code", "part"),
    [
        ((), 2, "the following arguments are required: --model, --nodes"),
        ((*QUESTION,), 2, "required: --budget-gpu-hours"),
        ((*QUESTION, "--budget-gpu-hours", "-1"), 2, "--budget-gpu-hours must be positive"),
        ((*QUESTION, "--budget-gpu-hours", "nan"), 2, "--budget-gpu-hours must be positive"),
        ((*QUESTION, "--budget-gpu-hours", "0.01"), 2, "the cheapest takes"),
        ((*QUESTION, "--budget-gpu-hours", "9", "--steps", "0"), 2, "--steps must be at least 1"),
        ((*QUESTION, "--budget-gpu-hours", "9", "--startup-s", "-3"), 2, "--startup-s must not be negative"),
        ((*QUESTION, "--budget-gpu-hours", "9", "--margin", "2"), 2, "--margin"),
        ((*QUESTION, "--budget-gpu-hours", "9", "--model", "Llama 9T"), 2, "Unknown model: Llama 9T"),
    ],
)
def test_what_cannot_be_is_one_line(home: Path, args: tuple[str, ...], code: int, part: str) -> None:
    assert_one_line_error(called("plan", *args, home=home), part, code=code)


def made(home: Path, *args: str) -> str:
    done = called("plan", *QUESTION, "--budget-gpu-hours", "4", *args, "--json", home=home)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["plan_id"])


def test_a_framework_gets_layouts_that_it_can_run(home: Path) -> None:
    done = called(
        "plan", *QUESTION, "--budget-gpu-hours", "9", "--framework", "hf-trainer", "--dry-run", "--json", home=home
    )
    rows = json.loads(done.stdout)["planned_runs"]
    assert rows
    assert all(row["tp"] == row["pp"] == row["cp"] == 1 for row in rows)


def test_launch_files_are_not_overwritten_unless_asked(home: Path, tmp_path: Path) -> None:
    name = made(home, "--framework", "nanotron")
    args = ("plan", "launch", name, "--framework", "nanotron", "--out", tmp_path)
    done = called(*args, "--json", home=home)
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert all("nanotron.yaml" in files for files in runs.values())
    assert (tmp_path / "submit.sh").read_text().count("&& sbatch") == len(runs)
    assert called(*args, home=home).returncode == 0, "the same again changes nothing"
    config = tmp_path / next(iter(runs)) / "nanotron.yaml"
    config.write_text("mine")
    assert_one_line_error(called(*args, home=home), "Will not overwrite", "--force", code=2)
    assert config.read_text() == "mine"
    assert called(*args, "--force", home=home).returncode == 0
    assert config.read_text() != "mine"


def test_a_plan_without_a_framework_gets_that_of_its_launch_files(home: Path, tmp_path: Path) -> None:
    name = made(home)
    assert called("plan", "launch", name, "--framework", "megatron", "--out", tmp_path, home=home).returncode == 0
    rows = run_query(Home(home), f"SELECT DISTINCT framework FROM planned_runs WHERE plan_id = '{name}'")
    assert rows["framework"].to_list() == ["megatron"]


@pytest.mark.parametrize(
    ("args", "part"),
    [
        (("launch", "plan-ffffff", "--framework", "nanotron", "--out", "x"), "No plan plan-ffffff in "),
        (("launch", "plan-ffffff", "--framework", "nanotrn", "--out", "x"), "Did you mean nanotron?"),
        (("launch", "plan-ffffff", "--out", "x"), "required: --framework"),
        (("launch", "plan-ffffff", "--framework", "nanotron"), "required: --out"),
        (("status", "plan-ffffff"), "No plan plan-ffffff in "),
        (("next", "plan-ffffff", "--budget-gpu-hours", "4"), "No plan plan-ffffff in "),
        (("next", "plan-ffffff"), "--budget-gpu-hours is required"),
    ],
)
def test_actions_on_what_is_not_there_are_one_line(home: Path, args: tuple[str, ...], part: str) -> None:
    assert_one_line_error(called("plan", *args, home=home), part, code=2)


def test_status_of_a_home_without_plans_says_how_to_make_one(tmp_path: Path) -> None:
    assert_one_line_error(called("plan", "status", "plan-0a0a0a", home=tmp_path), "There are none yet", code=2)


@pytest.mark.parametrize("action", [(), ("launch",), ("status",), ("next",)])
def test_every_action_has_an_example(action: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        build_parser(["plan"]).parse_args(["plan", *action, "--help"])
    assert "Example: sweepscope plan" in capsys.readouterr().out
