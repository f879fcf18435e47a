"""Fit status, profiles and the waterfall, from hand-made rows."""

from __future__ import annotations

import json
from datetime import date
from itertools import pairwise
from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.view_models import estimator
from sweepscope.dashboard.view_models.estimator import RECOUNTED, UNEXPLAINED
from sweepscope.pipeline.estimate.physics.profile import CALIBRATION, load_profiles
from tests.dashboard.store_rows import estimate_row


def compared(measured_s: float, **changes: Any) -> dict[str, Any]:
    row = estimate_row(**changes)
    ratio = measured_s / row["est_step_time_s"]
    return {"mfu": row["est_mfu"] / ratio, **row, "step_time_s": measured_s, "time_ratio": ratio}


def runs(*rows: tuple[str, str, float]) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema=["run_id", "pattern", "time_ratio"], orient="row")
    return frame.with_columns(est_mfu=pl.lit(0.4), mfu=0.4 / pl.col("time_ratio"))


def test_a_waterfall_ends_at_the_measured_mfu() -> None:
    row = compared(4.0)
    losses = estimator.losses(row)
    assert 1 - sum(loss.share for loss in losses) == pytest.approx(0.2)
    assert estimator.at_peak(row) == pytest.approx(0.2)
    shares = {loss.name: loss.share for loss in losses}
    # matrix products, attention and head take 1.2 s, and their FLOPs 0.4 * 2 s at peak
    assert shares["Kernels below peak"] == pytest.approx(0.4 / 4)
    assert shares["DP communication"] == pytest.approx(0.05)
    assert shares[UNEXPLAINED] == pytest.approx(0.5)
    assert shares["Recomputation"] == 0
    assert "CP communication" not in shares


def test_a_waterfall_ends_at_the_runs_own_mfu_whatever_flops_it_counts() -> None:
    for mfu in (0.18, 0.23):
        losses = estimator.losses(compared(4.0, mfu=mfu))
        assert losses[-1].name == RECOUNTED
        assert losses[-1].share == pytest.approx(0.2 - mfu)
        assert 1 - sum(loss.share for loss in losses) == pytest.approx(mfu)
    for same in (0.2001, None):
        assert estimator.losses(compared(4.0, mfu=same))[-1].name == UNEXPLAINED


def test_each_step_begins_where_the_last_one_ended() -> None:
    losses = estimator.losses(compared(4.0))
    assert losses[0].before == 1
    for earlier, later in pairwise(losses):
        assert later.before == pytest.approx(earlier.before - earlier.share)


def test_a_run_faster_than_estimated_has_a_negative_rest() -> None:
    losses = estimator.losses(compared(1.6))
    assert losses[-1].share == pytest.approx(-0.25)
    assert 1 - sum(loss.share for loss in losses) == pytest.approx(0.5)


def test_exchange_between_experts_is_drawn_where_there_is_some() -> None:
    losses = estimator.losses(compared(2.0, est_time_ep_s=0.1, est_time_rest_s=0.0))
    assert "Expert exchange" in [loss.name for loss in losses]


def test_only_the_study_of_a_profile_counts_as_fitted() -> None:
    study = str(load_profiles()["hopper-nanotron"].about["fitted_on"]).split(",", maxsplit=1)[0]
    frame = pl.DataFrame(
        [
            ("hopper-nanotron", study, "published"),
            ("hopper-nanotron", study, "measured"),
            ("hopper-nanotron", "mine", "published"),
            ("hopper", study, "published"),
            ("gone", study, "published"),
        ],
        schema=["est_profile", "sweep", "origin"],
        orient="row",
    )
    assert estimator.with_fit(frame)["fit"].to_list() == [
        "fitted",
        "other study",
        "other study",
        "not fitted",
        "not fitted",
    ]


def test_accuracy_is_that_of_rows_left_out_with_their_split() -> None:
    used = pl.DataFrame({"est_profile": ["hopper", "hopper-nanotron", "hopper-nanotron", "gone"]})
    found = estimator.accuracy(used, load_profiles(), date(2027, 1, 1))
    about = json.loads((CALIBRATION / "hopper-nanotron.json").read_text())["about"]
    first = found.row(0, named=True)
    assert (first["est_profile"], first["runs"]) == ("hopper-nanotron", 2)
    by_predicted = {row["predicted"]: row for row in found.filter(est_profile="hopper-nanotron").to_dicts()}
    assert list(by_predicted) == ["step time, by the hardware", "step time, with the penalty", "peak memory"]
    penalty = by_predicted["step time, with the penalty"]
    assert penalty["unseen_median_error"] == about["penalty"]["median_ape"]
    assert (penalty["split"], penalty["interval_coverage"]) == ("one cell out", about["penalty"]["interval_coverage"])
    assert by_predicted["peak memory"]["split"] == "one model out"
    assert first["age_days"] == (date(2027, 1, 1) - date.fromisoformat(about["learned_at"])).days
    gone = found.filter(est_profile="gone").row(0, named=True)
    assert (gone["predicted"], gone["unseen_median_error"]) == ("constants of publications", None)
    assert estimator.unseen_errors(found) == [about["penalty"]["median_ape"]]


def test_a_penalty_that_did_not_help_is_not_listed() -> None:
    found = estimator.accuracy(pl.DataFrame({"est_profile": ["ampere-composer"]}), load_profiles(), date(2027, 1, 1))
    assert json.loads((CALIBRATION / "ampere-composer.json").read_text())["about"]["penalty"]["kept"] is False
    assert found.filter(est_profile="ampere-composer")["predicted"].to_list() == ["step time, by the hardware"]


def test_examples_are_the_best_and_the_middle_of_each_pattern() -> None:
    slow = [(f"s{i}", "PP over nodes", 2.0 + i) for i in range(5)]
    few = [("f", "DP only", 1.0)]
    found = estimator.examples(runs(*few, *slow), None)
    assert found == {"f": "best MFU", "s2": "middle of PP over nodes"}
    assert next(iter(estimator.examples(runs(*few, *slow), "s4"))) == "s4"
    assert estimator.examples(runs(*few, *slow), "nonsense") == found
    assert estimator.examples(runs(*few).clear(), "f") == {}


def test_runs_are_compared_with_the_estimate_that_is_asked_for() -> None:
    runs = pl.DataFrame(
        {
            "run_id": ["a", "b"],
            "step_time_s": [4.0, 3.0],
            "mfu": [0.2, 0.3],
            "est_mfu": [0.4, 0.3],
            "est_step_time_s": [2.0, 3.0],
            "time_ratio": [2.0, 1.0],
            "hardware_time_ratio": [4.0, 1.0],
            "expected_time_ratio": [1.25, None],
            "is_penalised": [True, False],
        }
    )
    assert estimator.offered_against(runs) == ["estimate", "hardware", "expected"]
    assert estimator.compared_with(runs, "estimate").equals(runs)
    hardware = estimator.compared_with(runs, "hardware")
    assert hardware["est_step_time_s"].to_list() == [1.0, 3.0]
    assert hardware["est_mfu"].to_list() == pytest.approx([0.8, 0.3])
    expected = estimator.compared_with(runs, "expected")
    assert expected.select("run_id", "est_step_time_s", "is_penalised").rows() == [("a", 3.2, False)]


def test_an_estimate_that_says_the_same_of_all_runs_is_not_offered() -> None:
    runs = pl.DataFrame({"time_ratio": [2.0], "hardware_time_ratio": [2.0]})
    assert estimator.offered_against(runs) == ["estimate"]
    unknown = runs.with_columns(expected_time_ratio=pl.lit(None, pl.Float64))
    assert estimator.offered_against(unknown) == ["estimate"]


def test_the_best_run_is_none_that_cannot_be() -> None:
    impossible = ("wrong", "TP", 0.1)  # four times the peak
    assert next(iter(estimator.examples(runs(impossible, ("fast", "TP", 0.9)), None))) == "fast"
    assert list(estimator.examples(runs(impossible), None)) == ["wrong"]
    unknown = runs(("near", "TP", 1.1)).with_columns(mfu=pl.lit(None, pl.Float64))
    assert estimator.examples(unknown, None) == {"near": "closest to its estimate"}
    assert next(iter(estimator.examples(runs(impossible, ("fast", "TP", 0.9)), "wrong"))) == "wrong"


def scatter(count: int) -> pl.DataFrame:
    """Runs of which four at a time lie at one place, every other one slow."""
    return pl.DataFrame({"number": range(count)}).select(
        run_id=pl.format("r{}", "number"),
        est_mfu=0.2 + pl.col("number") // 4 % 100 * 0.005,
        mfu=0.1 + pl.col("number") // 4 % 50 * 0.01,
        is_penalised=pl.col("number") % 2 == 0,
        fit=pl.lit(estimator.FITTED),
    )


def test_few_points_are_all_drawn() -> None:
    runs = scatter(estimator.MOST_POINTS)
    assert estimator.thinned(runs, ("est_mfu", "mfu")) is runs


def test_of_many_points_at_one_place_one_of_each_mark_is_drawn() -> None:
    runs = scatter(40 * estimator.MOST_POINTS)
    drawn = estimator.thinned(runs, ("est_mfu", "mfu"))
    assert drawn.height <= 200
    assert set(drawn["is_penalised"]) == {True, False}
    assert set(drawn["run_id"]) <= set(runs["run_id"])
    for name in ("est_mfu", "mfu"):  # the cloud keeps its extent
        width = runs[name].max() / 100  # type: ignore[operator]  # of numbers, so its largest is one
        assert abs(drawn[name].max() - runs[name].max()) <= width  # type: ignore[operator]  # numbers, too
    assert drawn["run_id"][:2].to_list() == ["r0", "r1"]


def test_the_run_taken_apart_is_always_drawn() -> None:
    runs = scatter(2 * estimator.MOST_POINTS)
    assert "r4001" not in estimator.thinned(runs, ("est_mfu", "mfu"))["run_id"]
    assert "r4001" in estimator.thinned(runs, ("est_mfu", "mfu"), "r4001")["run_id"]
