"""Calibration on a store's own runs: which are used, what is fitted, and that estimates use it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl
import pytest

from sweepscope.pipeline.commands.calibrate import fit_to_folder
from sweepscope.pipeline.derive.complete import complete_runs
from sweepscope.pipeline.estimate.calibration.cross_validate import cross_validate, fit_recipe
from sweepscope.pipeline.estimate.calibration.fit import figures
from sweepscope.pipeline.estimate.calibration.own_runs import FEWEST, own_recipes, usable_runs, with_own
from sweepscope.pipeline.estimate.calibration.profile_file import accuracy, render_profile
from sweepscope.pipeline.estimate.calibration.recipe_rows import gather_rows
from sweepscope.pipeline.estimate.physics.profile import Profile, choose_profile, with_values
from sweepscope.pipeline.estimate.rows.estimate_rows import estimate_frame

TRUE = {"gemm_peak_share": 0.5, "fixed_step_s": 0.05}


def slow_machine(generation: str, framework: str | None) -> Profile:
    return with_values(choose_profile(generation, framework), TRUE)


def measured_runs(**changes: object) -> pl.DataFrame:
    """Twelve completed runs of a machine whose constants are TRUE, as the store holds them."""
    rows = [
        {
            "run_id": f"{tp}-{mbs}-{gas}",
            "status": "completed",
            "framework": "litgpt",
            "accelerator": "H100-SXM-80GB",
            "model": "mine",
            "num_layers": 32,
            "hidden_size": 4096,
            "num_heads": 32,
            "num_kv_heads": 32,
            "ffn_hidden_size": 11008,
            "gated_mlp": True,
            "tie_word_embeddings": False,
            "vocab_size": 32000,
            "seq_len": 4096,
            "num_gpus": 8,
            "num_nodes": 1,
            "dp": 8 // tp,
            "tp": tp,
            "pp": 1,
            "cp": 1,
            "mbs": mbs,
            "gas": gas,
            "zero_stage": 1,
            "precision": "bf16",
            "recompute": "none",
            "sequence_parallel": True,
            **changes,
        }
        for tp in (1, 2, 4)
        for mbs in (1, 2)
        for gas in (4, 16)
    ]
    runs = complete_runs(pl.DataFrame(rows)).runs
    predicted = estimate_frame(runs, slow_machine)
    return complete_runs(
        runs.drop("step_time_s").with_columns(
            step_time_s=predicted["est_step_time_s"],
            mem_peak_allocated_bytes=predicted["est_mem_bytes"].cast(pl.Int64),
        )
    ).runs


def as_cells(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.cast({pl.Boolean: pl.String})


def test_a_fit_to_own_runs_predicts_unseen_layouts_better_than_the_bundled_profile() -> None:
    runs = measured_runs()
    usable = usable_runs(runs)
    (recipe,) = own_recipes(usable)
    assert recipe.profile == "hopper-litgpt"
    rows = gather_rows(recipe, as_cells(usable))
    unseen = cross_validate(rows)
    bundled = estimate_frame(runs)["est_step_time_s"].to_numpy()
    before = figures(bundled, runs["step_time_s"].to_numpy())["mape"]
    after = figures(unseen.step_time_s, rows.step_time_s)["mape"]
    assert before > 0.15  # of step times: far off enough for a fit to be worth it
    assert after < before / 4


@pytest.mark.parametrize(
    "change",
    [
        {"status": "oom"},
        {"accelerator": "CPU"},
        {"framework": None},
        {"quarantine_reason": "odd"},
        {"step_time_basis": "whole_run"},
    ],
)
def test_runs_that_say_nothing_are_not_fitted_on(change: dict[str, object]) -> None:
    assert own_recipes(usable_runs(measured_runs().with_columns(**{k: pl.lit(v) for k, v in change.items()}))) == []


def labelled_runs(growth: float) -> pl.DataFrame:
    """Runs of one machine whose activations take `growth` times the estimate: completed, or out of memory."""

    def hungry(generation: str, framework: str | None) -> Profile:
        return with_values(choose_profile(generation, framework), {**TRUE, "memory_growth": growth})

    shapes = ((16, 2048, 5632), (24, 4096, 11008), (32, 4096, 11008), (32, 4096, 14336))
    changed = [
        measured_runs(num_layers=layers, hidden_size=hidden, ffn_hidden_size=ffn, seq_len=length, num_heads=heads)
        .with_columns(run_id=pl.format("{}-{}-{}-{}", "run_id", pl.lit(layers), pl.lit(ffn), pl.lit(length)))
        .drop("step_time_s", "mem_peak_allocated_bytes")
        for layers, hidden, ffn in shapes
        for length in (2048, 4096, 8192, 16384)
        for heads in (hidden // 128,)
    ]
    runs = complete_runs(pl.concat(changed, how="diagonal")).runs
    found = estimate_frame(runs, hungry)
    is_oom = ~found["est_fits"]
    runs = runs.with_columns(
        status=pl.when(is_oom).then(pl.lit("oom")).otherwise(pl.lit("completed")),
        step_time_s=pl.when(~is_oom).then(found["est_step_time_s"]),
        mem_peak_allocated_bytes=pl.lit(None, pl.Int64),
    )
    return complete_runs(runs).runs


def test_runs_out_of_memory_bound_what_others_need() -> None:
    runs = labelled_runs(1.5)
    usable = usable_runs(runs)
    failed = usable.filter(status="oom").height
    assert min(failed, usable.height - failed) > 20
    (recipe,) = own_recipes(usable)
    rows = gather_rows(recipe, as_cells(usable))
    assert fit_recipe(rows)["memory_growth"] > 1.2
    facts = accuracy(cross_validate(rows))
    said = estimate_frame(usable)["est_fits"]
    is_oom = usable["status"] == "oom"
    before = (said.filter(~is_oom).mean() + (~said).filter(is_oom).mean()) / 2  # type: ignore[operator]
    assert facts["outcomes"] == usable.height
    assert facts["outcomes_right"] > before + 0.05
    assert facts["outcomes_right"] >= 0.92


def test_a_handful_of_failures_does_not_count() -> None:
    usable = usable_runs(labelled_runs(1.5))
    kept = pl.concat([usable.filter(status="completed"), usable.filter(status="oom").head(2)])
    (recipe,) = own_recipes(kept)
    assert not recipe.learns_outcomes
    assert "memory_growth" not in recipe.memory


def test_few_runs_are_no_profile() -> None:
    assert own_recipes(usable_runs(measured_runs().head(FEWEST - 1))) == []


def test_a_written_profile_is_used_by_estimates_of_the_same_home(tmp_path: Path) -> None:
    usable = usable_runs(measured_runs())
    (recipe,) = own_recipes(usable)
    rows = gather_rows(recipe, as_cells(usable))
    text = render_profile(recipe, fit_recipe(rows), accuracy(cross_validate(rows)), on=date(2026, 11, 21))
    (tmp_path / "hopper-litgpt.toml").write_text(text)
    choose = with_own(tmp_path)
    own = choose("hopper", "litgpt")
    assert own.about["fitted_at"] == "2026-11-21"
    assert own.about["fitted_on"] == "runs of this store, 12 rows"
    # One sequence length tells products and attention hardly apart, but what they take together.
    assert own.gemm_peak_share < choose_profile("hopper", "litgpt").gemm_peak_share - 0.05
    measured = usable["step_time_s"].to_list()
    assert estimate_frame(usable, choose)["est_step_time_s"].to_list() == pytest.approx(measured, rel=0.1)
    assert choose("hopper", "nanotron") == choose_profile("hopper", "nanotron")
    assert with_own(tmp_path / "missing")("hopper", "litgpt") == choose_profile("hopper", "litgpt")


def test_calibrating_writes_a_record_that_estimates_use_from_then_on(tmp_path: Path) -> None:
    runs = measured_runs()
    usable = usable_runs(runs)
    (recipe,) = own_recipes(usable)
    fitted = fit_to_folder(recipe, as_cells(usable), tmp_path)
    assert fitted["record"]["learned_on"] == "runs of this store"
    assert "penalty" not in fitted["record"]  # twelve runs are too few to learn one
    assert sum(row["runs"] for row in fitted["patterns"]) == 12
    before, after = estimate_frame(runs), estimate_frame(runs, with_own(tmp_path))
    assert (before["est_interval_basis"] != after["est_interval_basis"]).all()  # other frameworks' tables, then our own
    assert after["est_interval_runs"].to_list() == [12] * 12
    assert set(after["est_interval_basis"]) == {"80% of 12 runs of hopper-litgpt, all layouts"}
    inside = after.filter(pl.col("step_time_s").is_between("est_step_time_lo_s", "est_step_time_hi_s"))
    assert inside.height >= 9
    assert after["est_mem_lo_bytes"].is_not_null().all()


def test_a_fit_that_predicts_unseen_runs_no_better_than_the_bundled_constants_is_not_kept(tmp_path: Path) -> None:
    usable = usable_runs(measured_runs())
    (recipe,) = own_recipes(usable)
    done = fit_to_folder(recipe, as_cells(usable), tmp_path, choose=slow_machine)  # which the runs were made with
    assert not done["kept"]
    assert done["unfitted_median"] <= done["time_median"]
    assert list(tmp_path.iterdir()) == []
    kept = fit_to_folder(recipe, as_cells(usable), tmp_path, choose=choose_profile)
    assert kept["kept"]
    assert kept["time_median"] < kept["unfitted_median"]
    assert (tmp_path / "hopper-litgpt.toml").is_file()


def test_a_profile_of_older_equations_is_passed_over(tmp_path: Path) -> None:
    # Its constants may mean something else now, and some may be gone.
    path = tmp_path / "hopper-litgpt.toml"
    path.write_text('[about]\nkind = "fitted"\n\n[constants]\ngemm_peak_share = 0.1\ntp_network_share = 0.5\n')
    assert with_own(tmp_path)("hopper", "litgpt") == choose_profile("hopper", "litgpt")
    path.write_text("[constants]\ngemm_peak_share = 0.1\n")  # written by hand
    assert with_own(tmp_path)("hopper", "litgpt").gemm_peak_share == 0.1
