"""The report's arithmetic on cases small enough to check by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sweepscope.pipeline.estimate.calibration.cross_validate import Unseen
from sweepscope.pipeline.estimate.calibration.published_tables import FOLDS, published_table
from sweepscope.pipeline.estimate.calibration.recipe_rows import Recipe, Rows, Weights, gather_rows
from tests.pipeline.estimate.rows.test_estimate_rows import row
from tests.validation.cells import rank_cells
from tests.validation.html import against, write_report
from tests.validation.naive import naive_memory_bytes, naive_step_s
from tests.validation.nested import beaten, capped_error, choices, healthy_error, measured_sets, on_measured_sets
from tests.validation.recipes import PUBLISHED, Published, chosen, questions, recipes


def test_ranks_within_cells_only() -> None:
    measured = np.tile(np.arange(1.0, 9.0), 2)
    predicted = np.concatenate([np.arange(1.0, 9.0) * 100, np.arange(8.0, 0.0, -1.0)])
    found = rank_cells(["a"] * 8 + ["b"] * 8, predicted, measured)
    assert found.cells == 2
    assert found.top5 == 1  # in b the best run is liked least
    assert found.spearman == pytest.approx(0.0)
    assert found.regret == pytest.approx((0 + 7 / 8) / 2)
    assert found.pairs_right == pytest.approx(0.5)


def test_runs_as_close_as_equal_ones_have_no_order() -> None:
    measured = np.array([1.0, 1.02, 1.04, 1.06, 2.0, 2.02, 2.04, 2.06])
    swapped = np.array([1.06, 1.04, 1.02, 1.0, 2.06, 2.04, 2.02, 2.0])
    found = rank_cells(["a"] * 8, swapped, measured)
    assert found.spearman < 0.8
    assert found.pairs_right == 1.0


def test_a_layout_that_ran_twice_has_one_place_and_the_mean_of_its_times() -> None:
    predicted = np.array([1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    measured = np.array([1.2, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    found, turned = (
        rank_cells(["a"] * 8, predicted[order], measured[order]) for order in (np.arange(8), np.arange(7, -1, -1))
    )
    assert found.spearman == pytest.approx(turned.spearman)
    assert found.regret == turned.regret == pytest.approx(1 - 1.0 / 1.1)


def test_small_cells_are_not_ranked() -> None:
    times = np.concatenate([np.arange(1.0, 9.0), np.arange(1.0, 8.0)])
    assert rank_cells(["a"] * 8 + ["b"] * 7, times, times).cells == 1


def test_the_seed_documents_formulas_are_kept_as_written() -> None:
    # DP 8, TP 1, PP 1: only compute and 2 x 2(d-1)/d x 2P over NVLink in both directions
    table = pl.DataFrame([{k: str(v) for k, v in row(dp=8, tp=1, grad_accum=16, micro_batch_size=2).items()}])
    recipe = Recipe(profile="x", dataset="x", rows=pl.lit(True), group="model")
    (batch,) = gather_rows(recipe, table).batches
    params = batch.asked.shape.params
    compute = 6 * params * 8 * 16 * 2 * 4096 / (8 * 989e12)
    assert naive_step_s(batch)[0] == pytest.approx(compute + 4 * 7 / 8 * 2 * params / 900e9)
    states = params * (4 + 12 / 8)
    activations = 34 * 2 * 4096 * 4096 * 32
    assert naive_memory_bytes(batch)[0] == pytest.approx(1.1 * (states + activations))


def test_folds_are_even_and_tables_are_whole() -> None:
    table = published_table("llm_foundry")
    assert table.height == 144
    sizes = table["fold"].value_counts()["count"].to_list()
    assert len(sizes) == FOLDS
    assert max(sizes) - min(sizes) <= 1
    assert set(published_table("simumax_b200")["kind"]) == {"moe", "cp", "dense"}


def test_the_report_is_one_file_that_needs_no_network(tmp_path: Path) -> None:
    recipe = Recipe(profile="x", dataset="x", rows=pl.lit(True), group="model")
    table = pl.DataFrame(
        [{k: str(v) for k, v in {**row(), "step_time_s": 2.0, "model": model}.items()} for model in "ab"]
    )
    rows = gather_rows(recipe, table)
    unseen = Unseen(rows, np.array([1.0, 4.0]), np.full(2, np.nan))
    figure = against(unseen, (unseen.step_time_s, rows.step_time_s), title="t", unit="s", colour=pl.col("model"))
    assert [(list(trace.x), list(trace.y)) for trace in figure.data[:2]] == [([1.0], [2.0]), ([4.0], [2.0])]
    write_report(tmp_path / "new" / "r.html", [("A <b>", pl.DataFrame({"x": ["<i>", None]})), ("B", "a & b")], [figure])
    text = (tmp_path / "new" / "r.html").read_text()
    assert "<h2>A &lt;b&gt;</h2>" in text
    assert "<td>&lt;i&gt;</td>" in text
    assert "<p>a &amp; b</p>" in text
    assert 'src="http' not in text


def rows_of(seconds: list[float], **settings: object) -> Rows:
    """Runs of two models, each one cell, that took `seconds`."""
    runs = [
        {k: str(v) for k, v in {**row(), "step_time_s": s, "model": "ab"[at % 2]}.items()}
        for at, s in enumerate(seconds)
    ]
    recipe = Recipe(profile="x", dataset="x", rows=pl.lit(True), group="model", **settings)  # type: ignore[arg-type]  # of several types
    return gather_rows(recipe, pl.DataFrame(runs))


def test_errors_on_sets_that_no_estimate_selects() -> None:
    rows = rows_of([1.0, 10.0, 2.0, 20.0, 4.0, 40.0, 8.0, 80.0])
    sizes = {name: int(chosen.sum()) for name, chosen in measured_sets(rows).items()}
    assert list(sizes.values()) == [2, 2, 4, 2, 4, 8]
    unseen_rows = Unseen(rows, rows.step_time_s * np.array([1.2, 1.2, 1, 1, 0.1, 0.1, 0.1, 0.1]), np.full(8, np.nan))
    found = on_measured_sets(unseen_rows).rows_by_key("runs", named=True, unique=True)
    assert found["fastest quarter of each cell"]["MAPE %"] == pytest.approx(20)
    assert found["fastest quarter of each cell"]["beaten by 10 % %"] == pytest.approx(100)
    assert found["fastest half of each cell"]["MAPE %"] == pytest.approx(10)
    assert found["all runs"]["capped error, log %"] == pytest.approx(100 * (2 * np.log(1.2) + 4 * np.log(1.5)) / 8)
    assert beaten(rows, unseen_rows.step_time_s) == pytest.approx(0.25)
    # The runs that the estimate calls slow are not in its own figure, but cost their most in the other.
    assert healthy_error(rows, unseen_rows.step_time_s) == pytest.approx(0.1)
    assert capped_error(rows, rows.step_time_s / 100) == pytest.approx(np.log(1.5))


def test_every_choice_of_weights_is_shown_beside_the_nested_one() -> None:
    options = (Weights(pull=0.1), Weights(pull=10.0))
    rows = rows_of([1.0 + at for at in range(16)], time={"gemm_peak_share": 0.5}, weights=options)
    found = choices(rows)
    assert found["how errors weigh"].to_list()[0] == "chosen in each fold, as published"
    assert found.filter(pl.col("how errors weigh") == "the same in all folds")["pull/early"].to_list() == [
        "0.1/1",
        "10/1",
    ]
    assert found["top 5"].max() <= 2


def test_every_published_recipe_asks_what_can_be_answered() -> None:
    for recipe in PUBLISHED:
        asked, at = questions(recipe)
        assert at.shape[0] >= 1, recipe.name
        assert (at.num_gpus == at.num_gpus[0]).all()
        index, predicted = chosen(asked, at)
        assert np.isfinite(predicted.step_time_s).all()
        assert 0 <= index < at.shape[0]


def test_the_choice_that_counts_is_the_fastest_that_fits() -> None:
    small = Published(
        "a recipe",
        "a test",
        {"model": "Llama 2 7B", "accelerator": "H100", "seq_len": 4096, "num_gpus": 8, "dp": 8, "tp": 1, "pp": 1}
        | {"micro_batch_size": 1, "grad_accum": 1, "precision": "bf16"},
        {"recompute": ("full", "none"), "zero_stage": (0, 1)},
        mfu=0.4,
    )
    asked, at = questions(small)
    index, predicted = chosen(asked, at)
    assert predicted.fits[index]
    assert predicted.fits.sum() < at.shape[0]  # 16 bytes a parameter do not fit with ZeRO-0
    assert predicted.step_time_s[index] == predicted.step_time_s[predicted.fits].min()
    (judged,) = recipes((small,)).to_dicts()
    assert judged["fits"] == "yes"
    assert 1 <= judged["rank"] <= judged["layouts that fit"]
    assert judged["off by %"] == pytest.approx(100 * (judged["estimated %"] / 40 - 1))
