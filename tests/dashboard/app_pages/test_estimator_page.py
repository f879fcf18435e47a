"""Estimator, headless over small stores with the real views."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from sweepscope.pipeline.estimate.physics.profile import EQUATIONS
from tests.dashboard.app_pages.test_data_pages import look_at, open_page, text_of
from tests.dashboard.store_rows import estimate_row, make_real_home, run_row

RUNS = [
    run_row("near", step_time_s=2.5),
    *(run_row(f"slow{i}", step_time_s=10.0 + i, dp=8, pp=2, layout="DP8 PP2 <b>") for i in range(5)),
    run_row("cpu", accelerator="CPU"),
]
ESTIMATES = [
    *(estimate_row(run["run_id"]) for run in RUNS[:-1]),
    {"run_id": "cpu", "origin": "measured", "est_status": "unknown accelerator: CPU (add it to links.csv)"},
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_real_home(tmp_path_factory.mktemp("estimator") / "home", runs=RUNS, estimates=ESTIMATES)


def test_the_first_screen_says_how_good_the_estimates_are(home: Path) -> None:
    app = look_at(home, "estimator")
    text = text_of(app).replace("\xa0", " ")
    # |2/2.5-1| = 0.2 and |2/(10..14)-1| = 0.8 to 0.857
    assert "<b>Median error of estimated step time: 83 % over 6 runs</b>, 20 % over the 1 within 1.5 ×" in text
    assert "5 (83 %) are slower than their hardware allows, 6.0 × at the median" in text
    assert "; all of them have PP over nodes." in text
    assert "6 runs of other studies" in text
    assert any("7 runs: 6 beside their estimate; 1 that cannot be estimated" in box.label for box in app.expander)
    assert "Unknown accelerator: CPU (add it to links.csv)." in text


def test_the_run_with_the_best_mfu_is_taken_apart_at_first(home: Path) -> None:
    app = look_at(home, "estimator")
    assert "run?run=near" in text_of(app)
    (run,) = [box for box in app.selectbox if box.label.startswith("Run taken apart")]
    assert [option.split(":")[0] for option in run.options] == ["best MFU", "middle of PP over nodes · ZeRO-1"]


def test_the_address_names_the_run_to_take_apart(home: Path) -> None:
    text = text_of(look_at(home, "estimator", picked="slow4")).replace("\xa0", " ")
    assert "run?run=slow4" in text
    assert "Unexplained, 86 % of the step" in text
    assert "DP8 PP2 &lt;b&gt;" in text
    assert "run?run=near" in text_of(look_at(home, "estimator", picked="nonsense"))


def test_a_sweep_of_the_address_narrows_the_page(home: Path) -> None:
    assert "sweep rocm" in text_of(look_at(home, "estimator", sweep="rocm"))


def test_errors_are_shown_in_percent_and_ratios_in_two_decimals(home: Path) -> None:
    tables = [one.value for one in look_at(home, "estimator").dataframe]
    accuracy = next(table for table in tables if "Median ratio" in table.columns)
    assert accuracy["Median error, %"].to_list() == pytest.approx([100 * (0.8182 + 0.8333) / 2], abs=0.1)
    constants = next(table for table in tables if "Fitted on" in table.columns)
    used = constants[constants["Runs"] > 0]
    assert set(used["Constants"]) == {"hopper-nanotron"}
    assert "step time, with the penalty" in used["Predicted"].to_list()


def test_runs_that_cannot_be_estimated_still_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_real_home(tmp_path / "home", runs=RUNS[-1:], estimates=ESTIMATES[-1:])
    text = text_of(open_page(home, monkeypatch, "estimator"))
    assert "None of these runs can be compared with an estimate." in text
    assert "Unknown accelerator: CPU" in text


def test_without_a_run_the_page_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "sweepscope ingest PATH" in text_of(open_page(make_real_home(tmp_path / "home"), monkeypatch, "estimator"))


def test_a_store_from_before_estimates_existed_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_real_home(tmp_path / "home", runs=RUNS, estimates=ESTIMATES)
    with duckdb.connect(str(home / "store" / "results-1.duckdb")) as con:
        con.sql("DROP VIEW estimator_residuals")
        con.sql("DROP TABLE estimates")
    text = text_of(open_page(home, monkeypatch, "estimator"))
    assert "published before runs had estimates" in text
    assert "sweepscope ingest PATH" in text


def test_far_off_estimates_lead_to_constants_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [run_row(f"r{i}", step_time_s=10.0 + i) for i in range(9)]
    home = make_real_home(tmp_path / "home", runs=runs, estimates=[estimate_row(run["run_id"]) for run in runs])
    assert "<b>sweepscope calibrate</b> fits the constants to these runs" in text_of(
        open_page(home, monkeypatch, "estimator")
    )
    (home / "calibration").mkdir()
    (home / "calibration" / "hopper-megatron.toml").write_text(
        f'[about]\nkind = "fitted"\nequations = {EQUATIONS}\ntime_median = 0.07\n\n[constants]\ngemm_peak_share = 0.7\n'
    )
    text = text_of(open_page(home, monkeypatch, "estimator")).replace("\xa0", " ")
    assert "median error on runs left out of the fit: hopper-megatron 7 %." in text
