from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.view_models.scaling import Baseline, against, drawn_lines, size_noun, with_size


def points(*rows: dict[str, Any]) -> pl.DataFrame:
    filled = []
    for row in rows:
        nodes = row.get("num_nodes", 1)
        speed = row.get("tokens_per_s_per_gpu", 1000.0)
        gpus = row.get("num_gpus", nodes * 8)
        filled.append(
            {
                "line": "8B",
                "num_nodes": nodes,
                "num_gpus": gpus,
                "run_id": f"{row.get('line', '8B')}-{nodes}-{gpus}",
                "layout": "DP8",
                "mfu": speed / 2500,
                "tokens_per_s": speed * gpus,
                "tokens_per_s_per_gpu": speed,
            }
            | row
        )
    return pl.DataFrame(filled)


def sized(*rows: dict[str, Any]) -> pl.DataFrame:
    return with_size(points(*rows), "node")


_THREE = (
    {"num_nodes": 1, "tokens_per_s_per_gpu": 800.0},
    {"num_nodes": 2, "tokens_per_s_per_gpu": 1000.0},
    {"num_nodes": 4, "tokens_per_s_per_gpu": 500.0},
)


@pytest.mark.parametrize(
    ("baseline", "expected"),
    [
        (Baseline("best"), [0.8, 1.0, 0.5]),
        (Baseline("first"), [1.0, 1.25, 0.625]),
        (Baseline("size", 4), [1.6, 2.0, 1.0]),
        (Baseline("size", 3), [None, None, None]),
    ],
)
def test_efficiency_is_relative_to_the_baseline(baseline: Baseline, expected: list[float | None]) -> None:
    assert against(sized(*_THREE), baseline)["scaling_efficiency"].to_list() == expected


def test_efficiency_is_the_ratio_of_mfu() -> None:
    found = against(sized(*_THREE), Baseline("best"))
    assert (found["mfu"] / found["mfu"].max()).to_list() == pytest.approx(found["scaling_efficiency"].to_list())


def test_the_ideal_grows_with_the_gpus_from_the_baseline_on() -> None:
    found = against(sized(*_THREE), Baseline("best"))
    assert found["ideal_tokens_per_s"].to_list() == [None, 16_000.0, 32_000.0]


def test_each_line_has_its_own_baseline() -> None:
    big = ({"line": "80B", "num_nodes": n, "tokens_per_s_per_gpu": speed} for n, speed in ((4, 40.0), (8, 50.0)))
    rows = (*_THREE, *big)
    found = against(sized(*rows), Baseline("best")).filter(pl.col("line") == "80B")
    assert found["scaling_efficiency"].to_list() == [0.8, 1.0]
    assert found["baseline_size"].to_list() == [8, 8]


def test_curves_grow_in_gpus_where_one_node_count_stands_for_several() -> None:
    rows = ({"num_nodes": 1, "num_gpus": 1}, {"num_nodes": 1, "num_gpus": 4}, {"num_nodes": 2, "num_gpus": 8})
    assert size_noun(points(*_THREE)) == "node"
    assert size_noun(points(*rows)) == "GPU"
    assert with_size(points(*rows), "GPU")["size"].to_list() == [1, 4, 8]


def test_the_faster_of_two_points_of_the_same_size_is_drawn() -> None:
    rows = (
        {"num_nodes": 1, "num_gpus": 4, "tokens_per_s_per_gpu": 900.0},
        {"num_nodes": 2, "num_gpus": 4, "tokens_per_s_per_gpu": 700.0},
    )
    assert with_size(points(*rows), "GPU")["num_nodes"].to_list() == [1]


def test_at_most_six_lines_are_drawn_and_single_points_are_none() -> None:
    rows = [{"line": f"m{i}", "num_nodes": n} for i in range(8) for n in range(1, 3 + (i == 7))]
    rows.append({"line": "lonely", "num_nodes": 1})
    assert drawn_lines(sized(*rows)) == ["m0", "m1", "m2", "m3", "m4", "m7"]
    assert drawn_lines(sized({"num_nodes": 1})) == []
