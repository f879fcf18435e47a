"""Queries of the estimator's page on the real views over hand-made runs and estimates."""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from sweepscope.dashboard.queries import estimator as queries
from sweepscope.dashboard.queries.failures import Scope
from tests.dashboard.store_rows import estimate_row, run_row, write_real_store

SCOPE = Scope("measured")
_PIPELINED = {"dp": 8, "tp": 1, "pp": 2, "zero_stage": 0}
RUNS = [
    run_row("near", step_time_s=2.5, mem_peak_allocated_bytes=125_000_000_000, num_nodes=1, dp=8, num_gpus=8),
    run_row("limit", step_time_s=3.0, mem_peak_allocated_bytes=None, num_nodes=1, dp=8, num_gpus=8),
    run_row("slow", step_time_s=10.0, mem_peak_allocated_bytes=80_000_000_000, **_PIPELINED),
    run_row("big", step_time_s=2.0, sweep="other", params=70_000_000_000, model="Llama 70B"),
    run_row("oom", status="oom", step_time_s=None),
    run_row("odd", model="nobody knows"),
    run_row("twice", duplicate_of="near"),
    run_row("blind", step_time_s=None),
]
ESTIMATES = [
    *(estimate_row(run["run_id"]) for run in RUNS if run["run_id"] != "odd"),
    {"run_id": "odd", "origin": "measured", "est_status": "shape unknown: num_layers not stated"},
]


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = write_real_store(tmp_path_factory.mktemp("store") / "results-1.duckdb", runs=RUNS, estimates=ESTIMATES)
    with duckdb.connect(str(path), read_only=True) as connection:
        yield connection


def test_origins_count_what_can_be_compared(con: Any) -> None:
    assert queries.origins().run(con).to_dicts() == [{"origin": "measured", "runs": 8, "compared": 4}]
    assert queries.sweeps("measured").run(con).rows() == [("rocm", 3), ("other", 1)]


def test_totals_take_the_error_from_the_measured_value(con: Any) -> None:
    row = queries.totals(SCOPE).run(con).row(0, named=True)
    assert (row["runs"], row["penalised"], row["mem_runs"]) == (4, 1, 3)
    # |2/2.5-1|, |2/3-1|, |2/10-1|, |2/2-1| = 0.2, 0.333, 0.8, 0: exactly 1.5 times is not penalised.
    assert row["time_error"] == pytest.approx((0.2 + 1 / 3) / 2)
    assert row["healthy_time_error"] == pytest.approx(0.2)
    assert row["penalised_ratio"] == pytest.approx(5)
    # |100/125-1|, |100/80-1|, |100/141.6-1|
    assert row["mem_error"] == pytest.approx(0.25)


def test_a_sweep_narrows_every_query(con: Any) -> None:
    other = Scope("measured", "other")
    assert queries.totals(other).run(con)["runs"].item() == 1
    assert queries.runs(other).run(con)["run_id"].to_list() == ["big"]
    assert queries.patterns(other).run(con)["runs"].sum() == 1
    assert queries.accuracy(other).run(con)["model_size"].to_list() == ["20B to 100B"]
    assert queries.account(other).run(con).rows() == [("compared", None, 1)]


def test_runs_begin_with_the_best_mfu(con: Any) -> None:
    assert queries.runs(SCOPE).run(con)["run_id"].to_list() == ["big", "near", "limit", "slow"]


def test_patterns_come_slowest_first_with_their_spread(con: Any) -> None:
    rows = {row["pattern"]: row for row in queries.patterns(SCOPE).run(con).to_dicts()}
    assert list(rows) == ["PP over nodes · ZeRO-0", "DP only · ZeRO-1"]
    spread = rows["DP only · ZeRO-1"]
    assert (spread["runs"], spread["penalised"], spread["time_ratio"]) == (3, 0, 1.25)
    assert spread["time_ratio_p10"] == pytest.approx(1.05)
    assert spread["time_ratio_p90"] == pytest.approx(1.45)


def test_accuracy_stands_apart_by_size(con: Any) -> None:
    rows = queries.accuracy(SCOPE).run(con).to_dicts()
    assert [(row["framework"], row["accelerator"], row["model_size"], row["runs"]) for row in rows] == [
        ("megatron", "MI300X", "5B to 20B", 3),
        ("megatron", "MI300X", "20B to 100B", 1),
    ]
    assert rows[0]["time_ratio"] == pytest.approx(1.5)
    assert (rows[0]["penalised"], rows[0]["mem_runs"]) == (1, 2)


def test_every_run_is_accounted_for(con: Any) -> None:
    rows = queries.account(SCOPE).run(con)
    assert rows["runs"].sum() == len(RUNS) - 1, "the one that repeats another counts once"
    assert {(row["fate"], row["reason"]): row["runs"] for row in rows.to_dicts()} == {
        ("compared", None): 4,
        ("not measured", "did not complete"): 1,
        ("not measured", "no step time"): 1,
        ("not estimated", "shape unknown: num_layers not stated"): 1,
    }


def test_a_breakdown_has_the_parts_beside_the_measurement(con: Any) -> None:
    row = queries.breakdown("slow").run(con).row(0, named=True)
    assert (row["est_time_linear_s"], row["step_time_s"], row["time_ratio"], row["est_mfu"]) == (0.9, 10.0, 5.0, 0.4)
    assert queries.breakdown("oom").run(con).is_empty()
