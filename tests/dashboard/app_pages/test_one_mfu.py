"""A run has one MFU on all pages, whatever FLOPs its estimate counts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from sweepscope.dashboard.navigation import PAGES
from tests.dashboard.app_pages.test_data_pages import look_at, text_of
from tests.dashboard.store_rows import estimate_row, make_real_home, run_row

OWN, OF_ESTIMATE = "21.6", "27.3"
"""MFU of the run in percent, and what the FLOPs of its estimate would make of its step time: 0.4 * 2 s / 2.93 s."""
SHOWING = {"overview", "best", "estimator", "frontier", "runs", "run"}
"""Pages that show the MFU of the store's only run; Scaling begins with efficiency."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one_mfu") / "home"
    return make_real_home(folder, runs=[run_row()], estimates=[estimate_row("a1", est_step_time_s=2.0, est_mfu=0.4)])


def percentages(app: AppTest) -> set[str]:
    """Every number with one decimal that a page shows, in texts, tables and charts."""
    shown = [text_of(app)]
    shown += [frame.value.to_csv(float_format="%.1f") for frame in app.dataframe]
    for chart in app.get("plotly_chart"):
        figure = json.loads(chart.proto.spec)
        shown.append(json.dumps(figure["layout"]))
        shown += [_rounded(trace.get(axis)) for trace in figure["data"] for axis in ("x", "y")]
        shown += [
            json.dumps(trace.get(name)) for trace in figure["data"] for name in ("text", "customdata", "hovertext")
        ]
    return set(re.findall(r"(?<![\d.])\d+\.\d(?!\d)", " ".join(shown)))


def _rounded(values: object) -> str:
    return (
        " ".join(f"{value:.1f}" for value in values if isinstance(value, int | float))
        if isinstance(values, list)
        else ""
    )


@pytest.mark.parametrize("page", [entry.file for entry in PAGES])
def test_every_page_shows_the_same_mfu(home: Path, page: str) -> None:
    found = percentages(look_at(home, page, **({"run": "a1"} if page == "run" else {})))
    assert OF_ESTIMATE not in found
    assert (OWN in found) >= (page in SHOWING)


def test_the_estimate_of_the_run_is_on_the_same_basis(home: Path) -> None:
    # 21.6 % * 2.93 s / 2 s, not the 40 % that count other FLOPs
    assert "31.6" in percentages(look_at(home, "estimator"))


@pytest.mark.parametrize("page", ["overview", "best", "frontier", "run"])
def test_a_page_that_ranks_a_run_says_that_its_log_prints_another_mfu(page: str, tmp_path: Path) -> None:
    home = make_real_home(tmp_path / "home", runs=[run_row(mfu_logged=0.356)])
    text = text_of(look_at(home, page, **({"run": "a1"} if page == "run" else {}))).replace("\xa0", " ")
    assert "35.6 %" in text
    if page != "run":
        assert "35.6 %, 14.0 points above the computed one" in text
    agreeing = make_real_home(tmp_path / "agreeing", runs=[run_row(mfu_logged=0.2161)])
    assert "above the computed one" not in text_of(look_at(agreeing, page))


def test_compare_has_the_printed_mfu_beside_a_computed_one_that_differs(tmp_path: Path) -> None:
    other = run_row("b1", tp=2, dp=8, layout="DP8 TP2")
    home = make_real_home(tmp_path / "home", runs=[run_row(mfu_logged=0.356), other])
    assert "MFU as printed" in text_of(look_at(home, "compare", runs="a1,b1"))
    home = make_real_home(tmp_path / "agreeing", runs=[run_row(mfu_logged=0.2161), other])
    assert "MFU as printed" not in text_of(look_at(home, "compare", runs="a1,b1"))
