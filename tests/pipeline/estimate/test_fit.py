"""The fit finds constants that made the rows, and never scores what it has seen as unseen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from pipeline.estimate import calibrate
from pipeline.estimate.calibrate import Recipe, cross_validate, fit_recipe, gather_rows
from pipeline.estimate.estimate import estimate
from pipeline.estimate.fit import batches, figures, fit
from pipeline.estimate.profile import load_profiles, with_values
from pipeline.estimate.recipes import RECIPES
from tests.pipeline.estimate.test_frame import row

TRUE = {"gemm_peak_share": 0.55, "attention_efficiency": 0.3}


def measured_rows() -> pl.DataFrame:
    """Rows whose step times and memory are those of a machine with the constants TRUE."""
    rows = [
        row(dp=8 // tp, tp=tp, micro_batch_size=mbs, grad_accum=16, seq_len=seq, status="success", model=f"m{seq}")
        for tp in (1, 2, 4)
        for mbs in (1, 2, 4)
        for seq in (2048, 8192)
    ]
    table = pl.DataFrame([{k: str(v) for k, v in entry.items()} for entry in rows])
    seconds = np.zeros(table.height)
    for batch in batches(table):
        asked = replace(batch.asked, profile=with_values(load_profiles()["default"], TRUE))
        seconds[batch.places] = estimate(asked, batch.at).step_time_s
    return table.with_columns(step_time_s=pl.Series(seconds))


def recipe(**changes: object) -> Recipe:
    start = {"gemm_peak_share": 0.8, "attention_efficiency": 0.5}
    return replace(
        Recipe(profile="mine", dataset="mine", rows=pl.lit(True), group="model", time=start, pull=0.0),
        **changes,  # type: ignore[arg-type]
    )


def test_finds_the_constants_that_made_the_rows() -> None:
    found = fit_recipe(gather_rows(recipe(), measured_rows()))
    assert found == pytest.approx(TRUE, rel=0.01)


def test_a_strong_pull_keeps_constants_where_they_start() -> None:
    found = fit_recipe(gather_rows(recipe(pull=100.0), measured_rows()))
    assert found["gemm_peak_share"] == pytest.approx(0.8, abs=0.02)


def test_a_group_is_predicted_by_a_fit_that_has_not_seen_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = gather_rows(recipe(), measured_rows())
    seen: list[set[str]] = []
    real = calibrate.fit_recipe

    def spy(given: calibrate.Rows, mask: np.ndarray) -> dict[str, float]:
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
    found = fit_recipe(gather_rows(recipe(simple=pl.col("tp") == "2"), table))
    assert found["gemm_peak_share"] == pytest.approx(0.55, rel=0.1)


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
