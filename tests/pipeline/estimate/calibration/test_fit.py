"""The fit finds constants that made the rows, and never scores what it has seen as unseen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from sweepscope.pipeline.estimate.calibration import cross_validate as calibrate
from sweepscope.pipeline.estimate.calibration.cross_validate import (
    choose_weights,
    cross_validate,
    fastest,
    fit_recipe,
    fit_time,
    shortfall,
)
from sweepscope.pipeline.estimate.calibration.fit import batches, figures, fit
from sweepscope.pipeline.estimate.calibration.recipe_rows import Recipe, Rows, Weights, gather_rows
from sweepscope.pipeline.estimate.calibration.recipes import RECIPES
from sweepscope.pipeline.estimate.physics.estimate import estimate
from sweepscope.pipeline.estimate.physics.profile import load_profiles, with_values
from tests.pipeline.estimate.rows.test_estimate_rows import row

TRUE = {"gemm_peak_share": 0.55, "attention_efficiency": 0.3}


def measured_rows(lengths: tuple[int, ...] = (2048, 8192)) -> pl.DataFrame:
    """Rows whose step times and memory are those of a machine with the constants TRUE."""
    rows = [
        row(dp=8 // tp, tp=tp, micro_batch_size=mbs, grad_accum=16, seq_len=seq, status="success", model=f"m{seq}")
        for tp in (1, 2, 4)
        for mbs in (1, 2, 4)
        for seq in lengths
    ]
    table = pl.DataFrame([{k: str(v) for k, v in entry.items()} for entry in rows])
    seconds = np.zeros(table.height)
    for batch in batches(table):
        asked = replace(batch.asked, profile=with_values(load_profiles()["default"], TRUE))
        seconds[batch.indices] = estimate(asked, batch.at).step_time_s
    return table.with_columns(step_time_s=pl.Series(seconds))


def recipe(**changes: object) -> Recipe:
    start = {"gemm_peak_share": 0.8, "attention_efficiency": 0.5}
    return replace(
        Recipe(
            profile="mine", dataset="mine", rows=pl.lit(True), group="model", time=start, weights=(Weights(pull=0.0),)
        ),
        **changes,  # type: ignore[arg-type]
    )


def test_finds_the_constants_that_made_the_rows() -> None:
    found = fit_recipe(gather_rows(recipe(), measured_rows()))
    assert found == pytest.approx(TRUE, rel=0.01)


def test_a_strong_pull_keeps_constants_where_they_start() -> None:
    found = fit_recipe(gather_rows(recipe(weights=(Weights(pull=100.0),)), measured_rows()))
    assert found["gemm_peak_share"] == pytest.approx(0.8, abs=0.02)


def test_a_group_is_predicted_by_a_fit_that_has_not_seen_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = gather_rows(recipe(), measured_rows())
    seen: list[set[str]] = []
    real = calibrate.fit_recipe

    def spy(given: Rows, mask: np.ndarray) -> dict[str, float]:
        seen.append(set(given.table.filter(pl.Series(mask))["model"]))
        return real(given, mask)

    monkeypatch.setattr(calibrate, "fit_recipe", spy)
    unseen = cross_validate(rows)
    assert seen == [{"m8192"}, {"m2048"}]
    assert figures(unseen.step_time_s, rows.step_time_s)["rows"] == rows.table.height


def test_a_bound_ignores_runs_that_no_physics_explains() -> None:
    table = measured_rows()
    slow = pl.int_range(pl.len()) % 3 == 0
    table = table.with_columns(step_time_s=pl.when(slow).then(9 * pl.col("step_time_s")).otherwise("step_time_s"))
    found = fit_recipe(gather_rows(recipe(is_bound=True), table))
    assert found["gemm_peak_share"] == pytest.approx(0.55, rel=0.1)


def spoilt(rows: Rows, group: str) -> Rows:
    """The same rows with those of a group taking three times as long, in no relation to their layout."""
    wrong = np.where(rows.groups == group, 3.0 + np.arange(rows.table.height) % 5, 1.0)
    return replace(rows, step_time_s=wrong * rows.step_time_s, fits={})


def test_neither_fit_nor_choice_of_weights_sees_the_group_that_they_predict() -> None:
    options = (Weights(pull=100.0), Weights(pull=0.0), Weights(pull=0.0, early=3.0))
    rows = gather_rows(recipe(weights=options), measured_rows((1024, 2048, 8192)))
    others = rows.groups != "m8192"
    assert choose_weights(rows, others) == choose_weights(spoilt(rows, "m8192"), others) != options[0]
    predicted, predicted_spoilt = cross_validate(rows).step_time_s, cross_validate(spoilt(rows, "m8192")).step_time_s
    assert predicted_spoilt[~others] == pytest.approx(predicted[~others], rel=1e-12)
    assert predicted_spoilt[others] != pytest.approx(predicted[others], rel=1e-3)


def test_weights_are_chosen_by_what_groups_say_of_one_another() -> None:
    options = (Weights(pull=100.0), Weights(pull=0.0))
    rows = gather_rows(recipe(weights=options), measured_rows())
    assert choose_weights(rows, rows.everywhere) == options[1]
    assert choose_weights(rows, rows.groups == "m2048") == options[0]  # nothing to choose on
    by_worst = choose_weights(rows, rows.everywhere, lambda given, predicted: -shortfall(given, predicted))
    assert by_worst == options[0]


def test_a_fit_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = gather_rows(recipe(), measured_rows())
    first = fit_time(rows, rows.everywhere, Weights())
    monkeypatch.setattr(calibrate, "fit", lambda *_args, **_settings: pytest.fail("fitted again"))
    assert fit_time(rows, rows.everywhere, Weights()) == first


def test_a_bound_is_asked_to_meet_the_fastest_and_not_to_be_beaten() -> None:
    rows = gather_rows(recipe(), measured_rows())
    times = np.where(rows.groups == "m2048", 1.0, 2.0) * (1.0 + np.arange(rows.table.height) / 100)
    times[3] = np.nan
    rows = replace(rows, step_time_s=times)
    chosen = fastest(rows, 0.25)
    assert chosen.sum() == 5  # a quarter of 8 and of 9 runs, rounded up
    for group in ("m2048", "m8192"):
        mine = (rows.groups == group) & np.isfinite(times)
        assert times[mine & chosen].max() < times[mine & ~chosen].min()
    assert shortfall(rows, 1.1 * times) == pytest.approx(0.1 / 0.05 - 1)  # 1 / 1.1 is not yet 10 % faster
    assert shortfall(rows, 1.2 * times) == pytest.approx(0.2 / 0.05 - 1 + 1 / 0.03 - 1)
    assert shortfall(rows, 1.04 * times) == 0.0
    # What is slow for reasons of its own is not held against an estimate.
    assert shortfall(rows, np.where(chosen, times, times / 9)) == 0.0


def test_large_residuals_count_less() -> None:
    def residuals(constants: dict[str, float]) -> np.ndarray:
        return np.log(constants["fixed_step_s"] / np.array([1.0, 1.0, 1.0, 1.0, 50.0]))

    assert fit(residuals, {"fixed_step_s": 2.0}, pull=0.0)["fixed_step_s"] == pytest.approx(1.0, rel=0.05)


def test_every_recipe_has_its_profile_and_known_constants() -> None:
    profiles = load_profiles()
    for entry in RECIPES:
        about = profiles[entry.profile].about
        assert about["kind"] == "fitted"
        assert set(about["fitted"]) == {*entry.time, *entry.memory}
        assert about["time_mape"] > 0
