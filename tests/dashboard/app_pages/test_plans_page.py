"""The page on plans and the cells that planned runs wait in, headless over small stores with the real views."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from sweepscope.dashboard.text import plans as texts
from tests.dashboard.app_pages.test_data_pages import look_at, text_of
from tests.dashboard.store_rows import make_real_home, run_row
from tests.pipeline.commands.calls import called
from tests.pipeline.store.test_plan_status import planned_row

INTERVAL = {"believed_lo_s": 3.0, "believed_hi_s": 5.0, "planned_gpu_hours": 2.0, "walltime_s": 600, "why": "it leads"}


def _text(home: Path, page: str, **query: str) -> str:
    return text_of(look_at(home, page, **query)).replace("\xa0", " ")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = "/sweep/plan-0a1b2c-00{}/train.log"
    runs = [
        run_row("done", source_path=path.format(1), step_time_s=4.5),
        run_row(
            "dead", source_path=path.format(2), status="oom", tokens_per_s_per_gpu=None, mfu=None, step_time_s=None
        ),
    ]
    planned = [
        planned_row(1, **INTERVAL),
        planned_row(2, **INTERVAL),
        planned_row(3, **INTERVAL, num_nodes=2, num_gpus=16, dp=16, gas=8),
        planned_row(1, plan_id="plan-ffffff", planned_run_id="plan-ffffff-001", num_nodes=4, num_gpus=32, dp=32, gas=4),
    ]
    return make_real_home(tmp_path_factory.mktemp("plans") / "home", runs=runs, planned_runs=planned)


def test_all_plans_are_listed_with_how_far_they_are(home: Path) -> None:
    text = _text(home, "plans")
    assert "<b>1 of 4 planned runs completed</b>, 2 not run yet, 1 failed." in text


def test_a_plan_has_its_runs_beside_what_was_predicted(home: Path) -> None:
    text = _text(home, "plans", plan="plan-0a1b2c")
    assert "<b>1 of 3 runs completed</b>, 1 failed, 1 not run yet. 1 of 1 step time within the interval" in text
    assert "find the fastest layout of a model on a number of nodes" in text
    assert "run?run=done" in text
    assert "4.50 s (~4.00 s predicted)" in text
    assert "✕ failed: OOM" in text
    assert "<td>◌ not run</td>" in text


def test_a_plan_of_another_store(home: Path) -> None:
    assert '<span class="ss-name">plan-000000.</span> <b>1 of 4' in _text(home, "plans", plan="plan-000000")


def test_without_plans_the_page_shows_how_to_make_one(tmp_path: Path) -> None:
    home = make_real_home(tmp_path / "home", runs=[run_row("a")])
    page = look_at(home, "plans")
    assert "<b>No runs are planned.</b>" in text_of(page)
    assert "sweepscope plan --model" in page.code[0].value


def test_the_command_shown_makes_a_plan(tmp_path: Path) -> None:
    done = called(*shlex.split(texts.commands()[0])[1:], "--dry-run", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "GPU-hours" in done.stdout


def test_the_command_shown_asks_for_ones_own_model_where_it_can_be_named(tmp_path: Path) -> None:
    mine = {"model": "Qwen2.5 7B", "accelerator": "MI300X", "framework": "megatron"}
    home = make_real_home(tmp_path / "home", runs=[run_row("a", model="tiny-4M"), run_row("b", **mine)])
    command = look_at(home, "plans").code[0].value.splitlines()[0]
    assert "--model 'Qwen2.5 7B' --nodes 2 --accelerator MI300X" in command
    done = called(*shlex.split(command)[1:], "--dry-run", home=home)
    assert done.returncode == 0, done.stderr


def test_an_empty_cell_shows_the_runs_that_are_planned_in_it(tmp_path: Path) -> None:
    of_grid = {"model": "Llama 1.34B", "seq_len": 4096, "gbs_tokens": 1_048_576, "accelerator": "H100-SXM-80GB"}
    runs = [
        run_row("a", **of_grid, num_nodes=1, num_gpus=8),
        run_row("b", **of_grid, num_nodes=2, num_gpus=16),
        run_row("c", **{**of_grid, "model": "8B"}, num_nodes=1, num_gpus=8),
    ]
    waiting = planned_row(1, model="8B", num_nodes=2, num_gpus=16, dp=16, gas=8)
    home = make_real_home(tmp_path / "home", runs=runs, planned_runs=[waiting])
    text = _text(home, "best", model="8B", nodes="2")
    assert "<b>8B on 2 nodes was not run yet</b>: 1 run planned (plan-0a1b2c)." in text


def test_the_first_page_leads_to_planned_runs(home: Path) -> None:
    assert '<a href="plans" target="_self">2 planned runs not run yet</a>' in _text(home, "overview")
