"""Two sweeps on Compare, headless: only what both completed is compared, and the coverage says how much that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboard.app_pages.test_data_pages import look_at, text_of
from tests.dashboard.store_rows import make_real_home, run_row

TP2 = {"dp": 8, "tp": 2, "gas": 4, "layout": "DP8 TP2 PP1 · GAS4 MBS5 · Z1"}
TP4 = {"dp": 4, "tp": 4, "gas": 8, "layout": "DP4 TP4 PP1 · GAS8 MBS5 · Z1"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    other = {"sweep": "new", "framework": "torchtitan", "accelerator": "H100-SXM-80GB"}
    runs = [
        run_row("a1", sweep="old", tokens_per_s_per_gpu=1000.0),
        run_row("a2", sweep="old", tokens_per_s_per_gpu=1000.0, **TP2),
        run_row("a3", sweep="old", tokens_per_s_per_gpu=900.0, **TP4),
        run_row("b1", tokens_per_s_per_gpu=1100.0, **other),
        run_row("b1 again", tokens_per_s_per_gpu=1300.0, **other),
        run_row("b2", tokens_per_s_per_gpu=900.0, **other, **TP2),
        run_row("b dead", status="oom", tokens_per_s_per_gpu=None, mfu=None, **other, **TP4),
        run_row("c1", sweep="apart", tokens_per_s_per_gpu=500.0, seq_len=4096),
    ]
    return make_real_home(tmp_path_factory.mktemp("sweeps") / "home", runs=runs)


def plain(home: Path, **query: str) -> str:
    return text_of(look_at(home, "compare", **query)).replace("\xa0", " ")


def test_only_what_both_completed_is_compared_and_the_coverage_is_stated(home: Path) -> None:
    text = plain(home, sweep_a="measured/old", sweep_b="measured/new")
    # 1,200 (the median of two) over 1,000, and 900 over 1,000: in the median 5 % more
    assert "<b>On the layouts that both completed, new is 5.0 % faster in the median</b>, and faster on 1 of 2." in text
    assert "Those are 2 of 3 layouts of old and 2 of new: 67 % and 100 %." in text
    assert "compare?runs=a1%2Cb1+again" in text


def test_sweeps_without_a_layout_in_common(home: Path) -> None:
    text = plain(home, sweep_a="measured/old", sweep_b="measured/apart")
    assert "Nothing to compare: old and apart have no completed layout in common" in text


def test_a_sweep_is_not_compared_with_itself_or_an_unknown_one(home: Path) -> None:
    for second in ("measured/old", "measured/none", ""):
        assert "in the median" not in plain(home, sweep_a="measured/old", sweep_b=second)


def test_one_sweep_is_no_pair(tmp_path: Path) -> None:
    text = plain(make_real_home(tmp_path / "home", runs=[run_row()]))
    assert "Or two sweeps" not in text
