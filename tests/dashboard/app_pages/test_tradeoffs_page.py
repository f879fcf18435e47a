"""Trade-offs, headless over small stores with the real views."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboard.app_pages.test_data_pages import look_at, text_of
from tests.dashboard.store_rows import make_real_home, run_row

GIB = 2**30


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = [
        run_row("fast", tokens_per_s_per_gpu=9000.0, mem_peak_allocated_bytes=60 * GIB),
        run_row(
            "lean",
            tokens_per_s_per_gpu=8500.0,
            mem_peak_allocated_bytes=30 * GIB,
            zero_stage=3,
            layout="DP16 TP1 PP1 · GAS2 MBS5 · Z3",
        ),
        run_row(
            "beaten",
            tokens_per_s_per_gpu=5000.0,
            mem_peak_allocated_bytes=50 * GIB,
            tp=2,
            dp=8,
            recompute=None,
            layout="DP8 TP2 PP1 · GAS4 MBS5 · Z1",
        ),
        run_row("too large", status="oom", tokens_per_s_per_gpu=None, layout="DP16 TP1 PP1 · GAS1 MBS10 · Z1"),
        run_row("lost", status="nccl_error", tokens_per_s_per_gpu=None, layout="DP4 TP4 PP1 · GAS8 MBS5 · Z1"),
    ]
    return make_real_home(tmp_path_factory.mktemp("tradeoffs") / "home", runs=runs)


def plain(home: Path, **query: str) -> str:
    return text_of(look_at(home, "tradeoffs", **query)).replace("\xa0", " ")


def test_the_front_names_the_fastest_and_the_lean_one(home: Path) -> None:
    text = plain(home)
    assert "<b>2 of 3 layouts are on the front</b>" in text
    assert "keeps 94 % of that with 30.0 GiB" in text
    assert "Not drawn: 1 run that ran out of GPU memory and 1 run that failed otherwise." in text
    assert "Not drawn" not in plain(home, tp="2"), "both have another degree"


@pytest.mark.parametrize("kind", ["free", "parallel", "factor"])
def test_every_kind_draws_a_chart_and_has_a_table(home: Path, kind: str) -> None:
    app = look_at(home, "tradeoffs", show=kind)
    assert len(app.get("plotly_chart")) == 1
    assert "As a table" in [one.label for one in app.expander]


def test_single_changes_of_the_fastest(home: Path) -> None:
    text = plain(home, show="factor")
    assert "ZeRO 1 → 3" in text
    assert "Never varied here" in text


def test_a_free_plot_by_category_names_the_best_median(home: Path) -> None:
    text = plain(home, show="free", x="tp", y="tokens_per_s_per_gpu", color="tp")
    assert "the best median is at <b>TP 1</b>: 8,750 tokens/s/GPU over 2 layouts" in text


def test_one_layout_is_nothing_to_weigh(tmp_path: Path) -> None:
    home = make_real_home(tmp_path / "home", runs=[run_row()])
    for kind in ("front", "free", "parallel", "factor"):
        assert "<b>" in plain(home, show=kind)


def test_a_store_without_a_grid(tmp_path: Path) -> None:
    home = make_real_home(tmp_path / "home", runs=[run_row(model=None)])
    assert "No run has a cell yet." in plain(home)


def test_speed_is_not_weighed_against_its_mirror_image(tmp_path: Path) -> None:
    """On equal GPUs and batches a step takes less time exactly where tokens/s is higher: that is no trade-off."""
    speeds = {"a1": 9000.0, "a2": 7000.0}
    runs = [
        run_row(
            name,
            tokens_per_s_per_gpu=speed,
            step_time_s=45000.0 / speed,
            mem_peak_allocated_bytes=None,
            mem_peak_reserved_bytes=None,
            layout=name,
            tp=degree,
            mfu=speed / 25000,
        )
        for degree, (name, speed) in enumerate(speeds.items(), start=1)
    ]
    text = plain(make_real_home(tmp_path / "home", runs=runs))
    assert "Nothing to weigh here" in text
    assert "Log the peak memory" in text
