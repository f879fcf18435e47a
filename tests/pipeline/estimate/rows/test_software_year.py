"""The year of a row's software, and what follows from it."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import Any

import polars as pl
import pytest

from sweepscope.pipeline.estimate.physics.maturity import maturity
from sweepscope.pipeline.estimate.physics.profile import choose_profile, load_profiles
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame
from sweepscope.pipeline.estimate.rows.software_year import software_year, software_years
from tests.pipeline.estimate.rows.test_estimate_rows import predict, row


@pytest.mark.parametrize(
    ("facts", "year"),
    [
        ({"software_year": "2025.5", "framework_version": "NeMo 24.09"}, 2025.5),
        ({"software_year": "soon"}, None),
        ({"framework_version": "NeMo 25.04.01"}, 2025.3),
        ({"framework_version": "0.13.1", "torch_version": "2.7.1+cu126"}, 2025.3),
        ({"framework_version": "core_r0.12.0"}, None),
        ({"table_or_figure": "26.08 NeMo container, pre-training"}, 2026.6),
        ({"table_or_figure": "Table 24.13"}, None),
        ({"source_title": "recipes, v25.6"}, 2025.5),
        ({"source_id": "mlperf_training_v3.1", "source_url": "https://arxiv.org/abs/2001.00001"}, 2023.8),
        ({"started_at": datetime(2026, 3, 5), "source_id": "mine"}, 2026.2),
        ({"source_url": "https://arxiv.org/pdf/2405.04434v2"}, 2024.4),
        ({}, None),
    ],
)
def test_the_year_is_what_is_stated_or_what_a_version_or_date_names(facts: dict[str, Any], year: float | None) -> None:
    assert software_year(facts) == year


def test_a_column_of_years_is_in_the_order_of_its_rows() -> None:
    frame = pl.DataFrame({"torch_version": ["2.9.0", None, "2.3.1", "2.9.0"]})
    assert software_years(frame).to_list() == [2025.8, None, 2024.3, 2025.8]
    assert software_years(pl.DataFrame({"tp": [1, 2]})).to_list() == [None, None]


def test_later_software_is_faster_by_less_and_less() -> None:
    hopper = load_profiles()["hopper"]
    rates = [maturity(hopper, year) for year in (2022.0, 2022.8, 2023.8, 2024.8, 2025.8, 2035.0)]
    gains = [after - before for before, after in itertools.pairwise(rates)]
    assert gains[0] == 0.0  # nothing ran on it before its first release
    assert all(gain > 0 for gain in gains[1:])
    assert gains[1] > gains[2] > gains[3]
    assert maturity(hopper, hopper.software_of) == 1.0


def test_ampere_and_fitted_constants_do_not_age() -> None:
    assert maturity(load_profiles()["ampere"], 2021.0) == 1.0
    fitted = choose_profile("hopper", "torchtitan")
    assert fitted.about["kind"] == "fitted"
    old, new = predict(
        row(framework="torchtitan", software_year=2023.0), row(framework="torchtitan", software_year=2026.0)
    )["est_step_time_s"]
    assert old == new


def test_a_year_moves_what_the_processors_compute_and_nothing_else() -> None:
    old, new = predict(row(software_year=2023.5), row(software_year=2026.5)).iter_rows(named=True)
    assert old["est_time_linear_s"] > 1.2 * new["est_time_linear_s"]
    assert old["est_time_attention_s"] > 1.2 * new["est_time_attention_s"]
    for name in ("est_time_tp_s", "est_time_elementwise_s", "est_time_optimizer_s", "est_mem_bytes"):
        assert old[name] == pytest.approx(new[name], rel=0.25), name


def test_an_open_year_is_that_of_the_constants_and_says_so() -> None:
    stated, left_open = predict(row(), row(software_year=None)).iter_rows(named=True)
    assert left_open["est_step_time_s"] == stated["est_step_time_s"]
    assert left_open["est_assumptions"] == "software of 2024"


def test_runs_of_a_store_are_of_the_year_they_started_in() -> None:
    frame = pl.DataFrame([row(software_year=None), row(software_year=None)]).with_columns(
        started_at=pl.Series([datetime(2023, 6, 1), datetime(2026, 6, 1)])
    )
    old, new = estimate_frame(frame)["est_step_time_s"]
    assert old > 1.1 * new


@pytest.mark.parametrize(
    ("facts", "precision"),
    [
        ({"accelerator": "H100-SXM-80GB", "source_id": "mlperf_training_v3.0"}, "FP8"),
        ({"accelerator": "GB300", "source_id": "mlperf_training_v5.1"}, "FP4"),
        ({"accelerator": "GB200", "source_id": "mlperf_training_v5.0"}, "FP8"),
        ({"accelerator": "MI355X", "source_id": "mlperf_training_v5.1"}, "FP8"),
    ],
)
def test_submissions_that_state_no_precision_run_in_their_rounds(facts: dict[str, Any], precision: str) -> None:
    got = predict(row(precision=None, software_year=None, **facts)).row(0, named=True)
    assert f"{precision}, as in other submissions to MLPerf" in got["est_assumptions"]
