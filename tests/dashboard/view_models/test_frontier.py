"""Published rows and own bests as dots: which are drawn, how they are named, which are comparable."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.format.columns import display_frame
from sweepscope.dashboard.queries import frontier as queries
from sweepscope.dashboard.view_models.frontier import dots, reached, table, with_ceilings
from sweepscope.pipeline.estimate.calibration.published_tables import published_table
from tests.dashboard.store_rows import Row, best_row, frontier_row, write_store


def published(*rows: Row) -> pl.DataFrame:
    given = [{"is_mfu_recomputed": False, **row} for row in rows]
    schema: dict[str, Any] = {
        "run_id": pl.String,
        "model": pl.String,
        "num_gpus": pl.Int64,
        "accelerator": pl.String,
        "seq_len": pl.Int64,
        "mfu": pl.Float64,
        "hfu": pl.Float64,
        "comparability": pl.String,
        "verification": pl.String,
        "source_title": pl.String,
        "source_url": pl.String,
        "extra": pl.String,
        "table_or_figure": pl.String,
        "is_mfu_recomputed": pl.Boolean,
        "dp": pl.Int64,
        "tp": pl.Int64,
        "pp": pl.Int64,
        "cp": pl.Int64,
        "ep": pl.Int64,
    }
    return pl.DataFrame(given, schema=schema)


NO_OWN = pl.DataFrame(schema={"run_id": pl.String})


def names(*rows: Row, is_short: bool = True) -> list[tuple[str, int | None]]:
    return [(dot.name, dot.num_gpus) for dot in dots(published(*rows), NO_OWN, is_short=is_short)]


def test_rows_are_sorted_by_mfu_or_else_hfu() -> None:
    rows = (
        frontier_row("a", model="A", mfu=0.4),
        frontier_row("b", model="B", mfu=None, hfu=0.5),
        frontier_row("c", model="C", mfu=0.3, hfu=0.6),
    )
    assert [name for name, _ in names(*rows)] == ["C", "A", "B"]


def test_a_row_without_any_figure_is_not_drawn() -> None:
    assert names(frontier_row("a", mfu=None)) == []


def test_short_keeps_the_largest_and_the_highest_comparable_of_each_model() -> None:
    rows = [
        frontier_row("a", num_gpus=1024, mfu=0.43),
        frontier_row("b", num_gpus=2048, mfu=0.42),
        frontier_row("c", num_gpus=4096, mfu=0.41),
        frontier_row("d", num_gpus=512, mfu=0.60, comparability="FP8"),
    ]
    assert [size for _, size in names(*rows)] == [4096, 1024]
    assert [size for _, size in names(*rows, is_short=False)] == [4096, 2048, 1024, 512]


def test_of_equal_figures_the_largest_run_speaks() -> None:
    rows = (frontier_row("a", num_gpus=1024, mfu=0.4), frontier_row("b", num_gpus=2048, mfu=0.4))
    assert [size for _, size in names(*rows)] == [2048]


def test_short_leaves_out_slides_that_repeat_a_paper() -> None:
    rows = (frontier_row("a"), frontier_row("b", mfu=None, hfu=0.5, verification="slides", seq_len=None))
    assert len(names(*rows)) == 1
    assert len(names(*rows, is_short=False)) == 2


def test_a_row_of_unknown_verification_and_size_stays() -> None:
    assert names(frontier_row("a", num_gpus=None, verification=None)) == [("Llama 3.1 405B", None)]


def test_only_a_model_trained_at_several_lengths_names_the_longer_ones() -> None:
    both = names(frontier_row("a", seq_len=8192), frontier_row("b", seq_len=131_072, mfu=0.38))
    assert {name for name, _ in both} == {"Llama 3.1 405B", "Llama 3.1 405B, 128k"}
    assert names(frontier_row("a", seq_len=131_072))[0][0] == "Llama 3.1 405B"


def test_only_a_printed_comparable_mfu_is_filled() -> None:
    rows = (
        frontier_row("a", model="A", mfu=0.1),
        frontier_row("b", model="B", mfu=0.2, comparability="FP8 mixed, BF16 peak"),
        frontier_row("c", model="C", mfu=0.3, is_mfu_recomputed=True, comparability="HFU, counts recomputation"),
        frontier_row(
            "d", model="D", mfu=0.4, is_mfu_recomputed=True, comparability="derived from GPU-hours, no MFU published"
        ),
        frontier_row("e", model="E", mfu=None, hfu=0.5),
    )
    found = dots(published(*rows), NO_OWN, is_short=True)
    assert [(dot.kind, dot.reason) for dot in found] == [
        ("comparable", None),
        ("other", "FP8 mixed, BF16 peak"),
        ("other", "recomputed from its throughput"),
        ("other", "derived from GPU-hours"),
        ("other", None),
    ]


def test_table_joins_the_known_dimensions_only() -> None:
    rows = published(frontier_row("a", cp=None, ep=None), frontier_row("b", dp=None, tp=None, pp=None, cp=None))
    assert table(rows)["layout"].to_list() == ["DP128 TP8 PP16", None]


def test_own_best_leaves_out_what_cannot_stand_beside_others(tmp_path: Any) -> None:
    import duckdb

    path = write_store(
        tmp_path / "results-1.duckdb",
        frontier=[frontier_row("f1")],
        best_configs=[
            best_row("a", mfu=0.3, num_gpus=8),
            best_row("b", mfu=0.2, num_gpus=64),
            best_row("fp8", mfu=0.6, precision="fp8"),
            best_row("wrong", mfu=1.4),
            best_row("none", mfu=None, num_gpus=512),
            best_row("f1", mfu=0.5),
            best_row("p", origin="published", mfu=0.4),
        ],
    )
    with duckdb.connect(str(path), read_only=True) as con:
        assert queries.own_best("measured").run(con)["run_id"].to_list() == ["a", "b"]
        assert queries.own_best("published").run(con)["run_id"].to_list() == ["p"]
        assert queries.own_best("simulated").run(con).is_empty()


def test_published_rows_carry_what_the_estimator_allows_them() -> None:
    bundled = published_table("frontier_configs").filter(pl.col("model") == "Nemotron-4 340B").head(1)
    stated = bundled.with_columns(run_id=pl.lit("f1"))
    rows = published(frontier_row("f1", model="Nemotron-4 340B", mfu=0.42), frontier_row("f2", mfu=0.41))
    bounded = with_ceilings(rows, stated)
    assert bounded["run_id"].to_list() == ["f1", "f2"]
    allowed = bounded["ceiling_mfu"][0]
    assert 0.38 < allowed < 0.47
    assert bounded["ceiling_mfu"][1] is None
    assert reached(bounded) == (pytest.approx(0.42 / allowed), 1)
    shown = {dot.name: dot for dot in dots(bounded, NO_OWN, is_short=False)}
    assert shown["Nemotron-4 340B"].ceiling == allowed
    assert str(shown["Nemotron-4 340B"].ceiling_layout).startswith("DP16 TP8 PP12 ")


def test_only_comparable_figures_are_held_against_the_estimate() -> None:
    bounds = {"ceiling_mfu": 0.5, "ceiling_layout": "DP8"}
    rows = [
        frontier_row("a", mfu=0.4),
        frontier_row("b", mfu=0.1, comparability="FP8"),
        frontier_row("c", mfu=0.2, is_mfu_recomputed=True),
        frontier_row("d", mfu=None),
    ]
    bounded = published(*rows).with_columns(**{name: pl.lit(value) for name, value in bounds.items()})
    assert reached(bounded) == (pytest.approx(0.8), 1)
    assert reached(bounded.clear()) is None


def test_the_table_shows_what_the_estimator_allows_in_the_unit_of_the_mfu_beside_it() -> None:
    shown = display_frame(pl.DataFrame({"mfu": [0.41], "ceiling_mfu": [0.5], "tflops_per_gpu": [400.0]}))
    assert shown.columns == ["MFU, %", "Estimate allows, %", "TFLOP/s/GPU"]
    assert shown.row(0) == pytest.approx((41.0, 50.0, 400.0))
