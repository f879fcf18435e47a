"""`sweepscope plan`: a plan in the store, which stays when logs are read again, and one line for what cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sweepscope.pipeline.commands.query import run_query
from sweepscope.pipeline.store.home import Home
from tests.pipeline.commands.calls import assert_one_line_error, called

pytestmark = pytest.mark.usefixtures("dagster_in_memory")

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
