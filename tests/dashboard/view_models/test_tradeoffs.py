"""The Pareto front, axes of parallel coordinates, and single changes, on small frames."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.dashboard.charts import tradeoffs as charts
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.text import tradeoffs as texts
from sweepscope.dashboard.view_models.tradeoffs import NOT_LOGGED, axes, best_and_lean, front, known, one_factor

GAIN, SPEND = "tokens_per_s_per_gpu", "mem_peak_bytes"


def row(run_id: str, speed: float, **changes: Any) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "layout": f"layout {run_id}",
        "model": "8B",
        "num_nodes": 1,
        "num_gpus": 8,
        "tp": 1,
        "pp": 1,
        "mbs": 1,
        "zero_stage": 0,
        "framework": "nanotron",
        "mfu": speed / 20_000,
        GAIN: speed,
        SPEND: 40 * 2**30,
    } | changes


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), infer_schema_length=None)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=12))
def test_nothing_beats_what_is_on_the_front_and_something_each_other(points: list[tuple[int, int]]) -> None:
    rows = frame(*(row(str(place), float(gain), **{SPEND: spend}) for place, (gain, spend) in enumerate(points)))
    found = {one["run_id"]: one["is_front"] for one in front(rows, GAIN, SPEND).to_dicts()}
    for place, (gain, spend) in enumerate(points):
        is_beaten = any(g >= gain and s <= spend and (g, s) != (gain, spend) for g, s in points)
        assert found[str(place)] != is_beaten


def test_what_is_not_logged_is_on_no_front() -> None:
    assert front(frame(row("a", 100.0, **{SPEND: None}), row("b", 50.0)), GAIN, SPEND)["run_id"].to_list() == ["b"]
    assert best_and_lean(front(frame(row("a", 1.0)).clear(), GAIN, SPEND), GAIN, SPEND) == ()


def test_the_answer_names_the_fastest_and_the_leanest_that_is_nearly_as_fast() -> None:
    rows = [row("fast", 100.0), row("lean", 95.0, **{SPEND: 20 * 2**30}), row("slow", 10.0, **{SPEND: 2**30})]
    text = texts.front_answer(front(frame(*rows), GAIN, SPEND), GAIN, SPEND).replace("\xa0", " ")
    assert text.startswith(
        "**3 of 3 layouts are on the front**; the fastest, layout fast, has 100 tokens/s/GPU with 40.0"
    )
    assert "layout lean keeps 95 % of that with 20.0 GiB." in text
    alone = texts.front_answer(front(frame(row("fast", 100.0)), GAIN, SPEND), GAIN, SPEND).replace("\xa0", " ")
    assert "1 of 1 layout is on the front" in alone
    assert "None within 10 % of it takes less." in alone


def test_an_unknown_value_has_a_tick_of_its_own() -> None:
    rows = frame(row("a", 1.0, tp=4, recompute=None), row("b", 2.0, tp=None, recompute="full"))
    by_name = {axis.name: axis for axis in axes(rows, ("tp", "pp", "recompute"))}
    assert set(by_name) == {"tp", "recompute"}  # pp is the same everywhere
    assert by_name["tp"].texts == (NOT_LOGGED, "4")
    assert by_name["tp"].positions == (1.0, 0.0)
    assert by_name["recompute"].texts == (NOT_LOGGED, "full")


def test_many_numbers_are_an_axis_of_numbers_with_the_unknown_below() -> None:
    rows = frame(*(row(str(n), float(n), mfu=None if n == 0 else n / 100) for n in range(40)))
    (axis,) = axes(rows, ("mfu",))
    assert axis.label == "MFU, %"
    assert min(axis.positions) == axis.positions[0] < 1.0
    assert axis.texts[0] == NOT_LOGGED
    figure = charts.draw_parallel([axis, axis], [None, 0.5], LIGHT)
    assert figure.data[0].dimensions[0].ticktext[0] == NOT_LOGGED


def test_changes_of_one_factor_are_those_of_the_cell_that_differ_in_nothing_else() -> None:
    base = row("base", 100.0, tp=4)
    rows = frame(
        base,
        row("tp8", 80.0, tp=8),
        row("tp8 again", 85.0, tp=8),
        row("both", 90.0, tp=8, mbs=2),
        row("other cell", 70.0, tp=4, mbs=2, num_nodes=2),
        row("zero", 110.0, tp=4, zero_stage=1),
        row("unknown", 60.0, tp=None),
    )
    found = [(one.factor, one.before, one.after, round(one.ratio, 2), one.run_id) for one in one_factor(rows, base)]
    assert found == [("tp", "4", "8", 0.85, "tp8 again"), ("zero_stage", "0", "1", 1.1, "zero")]
    answer = texts.factor_answer(one_factor(rows, base), base).replace("\xa0", " ")
    assert "**TP 4 → 8** costs most: −15.0 %; **ZeRO 0 → 1** least: 10.0 %." in answer
    assert "Nothing was changed alone" in texts.factor_answer([], base)


def test_only_columns_that_differ_are_offered() -> None:
    assert known(frame(row("a", 1.0), row("b", 2.0, tp=2)), ("tp", "pp", "colour", GAIN)) == ["tp", GAIN]


def test_names_of_layouts_are_no_tags() -> None:
    assert "<img" not in texts.hover(row("a", 1.0, layout="<img src=x>"), GAIN)


@pytest.mark.parametrize("values", [["a", "b"], [f"f{n}" for n in range(9)]])
def test_more_than_six_colours_are_grouped_as_others(values: list[str]) -> None:
    rows = frame(*(row(str(place), 1.0 + place, framework=name) for place, name in enumerate(values)))
    found = charts.colors(rows, "framework", LIGHT)
    assert len(found) == min(len(values), 6)
    assert ("others" in found) == (len(values) > 6)
