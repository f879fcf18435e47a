"""Compare: whatever ids an address names, the page says what it can and what it cannot."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard.app_pages.test_data_pages import look_at, text_of
from tests.dashboard.store_rows import (
    best_row,
    estimate_row,
    event_row,
    frontier_row,
    make_home,
    make_real_home,
    run_row,
    setting_row,
    step_rows,
)

LAYOUT = {"dp": 8, "tp": 2, "layout": "DP8 TP2 PP1 · GAS4 MBS5 · Z1", "gas": 4}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    nothing = dict.fromkeys(("mfu", "step_time_s", "tokens_per_s", "tokens_per_s_per_gpu", "last_step"))
    rows: dict[str, list[dict[str, Any]]] = {
        "runs": [
            run_row("a1"),
            run_row("b1", tokens_per_s_per_gpu=6_300.0, step_time_s=3.25, mfu=0.195, **LAYOUT),
            run_row("c1", tokens_per_s_per_gpu=6_900.0, framework="nanotron", framework_version="0.4"),
            run_row("o1", status="oom", status_evidence="CUDA <out> of memory", **nothing),
            run_row(
                "p1",
                origin="published",
                model="Llama 3.1 405B",
                params=405_000_000_000,
                accelerator="H100-SXM-80GB",
                num_gpus=16_384,
                mfu=None,
                mfu_logged=0.41,
                tokens_per_s_per_gpu=None,
                step_time_s=None,
                run_dir=None,
            ),
        ],
        "steps": [*step_rows("a1"), *step_rows("b1", (60.0, 3.2, 3.3, 3.25))],
        "estimates": [estimate_row("a1"), estimate_row("b1", est_time_tp_s=0.5, est_step_time_s=2.4, est_mfu=1 / 3)],
        "settings": [
            setting_row("a1", name="use_flash_attn", value="True"),
            setting_row("b1", name="use_flash_attn", value="False"),
        ],
        "events": [event_row("a1")],
        "published_runs": [{"run_id": "p1", "dataset": "frontier_configs", "comparability": "comparable"}],
    }
    return make_real_home(tmp_path_factory.mktemp("compare") / "home", **rows)


def shown(home: Path, **query: str) -> str:
    text = text_of(look_at(home, "compare", **query))
    return re.sub(r"<[^>]+>", "", text.replace("\xa0", " "))


def test_two_runs_are_told_apart_by_lead_noise_parts_and_settings(home: Path) -> None:
    text = shown(home, runs="a1,b1")
    assert "A is 11.0 % faster than B, more than the noise" in text
    assert "DP16 TP1 saves" in text
    assert "points of TP communication" in text
    assert re.search(r"DP168", text), "the setting that differs, side by side"
    assert "use_flash_attn" in text
    app = look_at(home, "compare", runs="a1,b1")
    assert len(app.get("plotly_chart")) == 2, "the difference and the curves"


def test_runs_without_steps_estimates_or_a_speed_have_their_reasons(home: Path) -> None:
    text = shown(home, runs="a1,o1,p1")
    assert "Llama 3.1 405B (C) reaches 41.0 % of its peak, 19.4 points more than Llama 8B (A)" in text
    assert "B ran out of GPU memory" in text
    assert "No curve: B logged no step time; C is published without steps." in text
    assert "CUDA &lt;out&gt; of memory" in text, "escaped"
    assert "The step times are not taken apart: there is no estimate for" in text
    assert "41.0 %" in text


def test_unknown_ids_are_named_and_left_out(home: Path) -> None:
    text = shown(home, runs="a1,zz,b1")
    assert "This store has no run zz" in text
    assert "A is 11.0 % faster than B" in text


def test_none_and_one_are_no_comparison_and_offer_some(home: Path) -> None:
    assert "No runs are chosen." in shown(home)
    assert "Where to begin" in shown(home)
    one = text_of(look_at(home, "compare", runs="b1"))
    assert "One run is chosen" in one
    assert "compare?runs=a1%2Cb1" in one, "with the best of its cell"
    assert "runs?beside=b1" in one


def test_the_same_configuration_elsewhere_is_one_link_away(home: Path) -> None:
    assert "compare?runs=c1%2Ca1" in text_of(look_at(home, "compare", runs="c1"))
    assert "compare?runs=c1%2Ca1" in text_of(look_at(home, "run", run="c1"))


def test_runs_are_put_together_by_what_they_share(home: Path) -> None:
    text = shown(home, runs="a1,b1,c1", by="framework")
    assert "2 runs: Llama 8B" in text
    assert "3 runs in 2 groups" in text


def test_groups_of_the_address_are_compared_by_their_medians(home: Path) -> None:
    app = look_at(home, "compare", group="a1,b1")
    assert "A is 11.0 %" in text_of(app).replace("\xa0", " ").replace("<b>", "").replace("</b>", "")


def test_cell_and_run_lead_to_their_comparison(home: Path) -> None:
    assert "compare?runs=a1%2Cc1" in text_of(look_at(home, "best", origin="measured"))
    assert "compare?runs=a1%2Cb1" in text_of(look_at(home, "run", run="b1")), "with this cell's best"
    assert "compare?runs=a1%2Cc1" in text_of(look_at(home, "run", run="a1")), "of the best with the runner-up"


def test_the_page_stands_on_an_empty_store(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    assert "No runs are chosen." in shown(home)
    assert "This store has no run a1" in shown(home, runs="a1,b1")


def test_frontier_sets_the_own_best_beside_the_runs_that_everybody_knows(tmp_path: Path) -> None:
    rows = [frontier_row("f1", num_gpus=8192), frontier_row("f2"), frontier_row("f3", model="DeepSeek-V3")]
    text = text_of(look_at(make_home(tmp_path / "home", best_configs=[best_row()], frontier=rows), "frontier"))
    assert "Compare layouts with Llama 3.1 405B and DeepSeek-V3:" in text
    assert "compare?runs=a1%2Cf1%2Cf3" in text, "of each the row of the nearest number of GPUs"


def test_frontier_lists_when_and_at_what_cost_each_was_published(tmp_path: Path) -> None:
    rows = {
        "frontier": [frontier_row("f1"), frontier_row("f2", model="DeepSeek-V3", source_url=None)],
        "published_runs": [
            {"run_id": "f2", "dataset": "frontier_configs", "extra": '{"gpu_hours_per_t_tokens": "180000"}'}
        ],
    }
    frame = look_at(make_home(tmp_path / "home", **rows), "frontier").dataframe[0].value
    found = frame.set_index("Model")[["Published on", "GPU-hours per trillion tokens"]].to_dict("index")
    assert found["Llama 3.1 405B"]["Published on"] == "2024-07"
    assert found["DeepSeek-V3"]["GPU-hours per trillion tokens"] == 180_000
