"""Charts of the estimator's page: equal axes, filled against hollow, and bars that add up."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from sweepscope.dashboard.charts import estimator as charts
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.view_models.estimator import Hover, Loss


def frame(*rows: dict[str, Any]) -> pl.DataFrame:
    usual = {
        "run_id": "a",
        "est_mfu": 0.4,
        "mfu": 0.38,
        "is_penalised": False,
        "fit": "fitted",
        "mem_peak_allocated_bytes": 50 * 2**30,
        "est_mem_bytes": 40.0 * 2**30,
    }
    return pl.DataFrame([usual | row for row in rows])


def said(name: str) -> Hover:
    return Hover(name, "DP8", "4.00", "2.00", "2.0", "20.0", "40.0", "peak memory not logged")


def test_axes_are_equal_and_hold_every_point() -> None:
    figure = charts.draw_mfu(frame({}, {"run_id": "b", "mfu": 0.55}), [said("one"), said("two")], LIGHT)
    assert figure.layout.xaxis.range == figure.layout.yaxis.range
    assert figure.layout.xaxis.range[1] > 55
    assert figure.layout.yaxis.scaleanchor == "x"
    assert [note.text.replace("\xa0", " ") for note in figure.layout.annotations] == ["equal", "1.5 × slower"]
    slower = figure.layout.shapes[1]
    assert slower.y1 == pytest.approx(slower.x1 / 1.5)


def test_hollow_is_penalised_and_a_diamond_is_of_another_study() -> None:
    runs = frame({}, {"run_id": "slow", "is_penalised": True}, {"run_id": "new", "fit": "other study"})
    figure = charts.draw_mfu(runs, [said(name) for name in "xyz"], LIGHT, picked="slow")
    symbols = {trace.customdata[0][0]: trace.marker.symbol for trace in figure.data if trace.customdata is not None}
    assert symbols == {"a": "circle", "slow": "circle-open", "new": "diamond"}
    hovers = {trace.customdata[0][0]: trace.customdata[0][1] for trace in figure.data if trace.customdata is not None}
    assert hovers == {"a": "x", "slow": "y", "new": "z"}
    assert [list(trace.x) for trace in figure.data if trace.name == "picked"] == [[40.0]]


def test_memory_is_in_gib_and_leaves_out_runs_that_did_not_log_it() -> None:
    runs = frame({"run_id": "dark", "mem_peak_allocated_bytes": None}, {"run_id": "b"})
    (trace,) = charts.draw_memory(runs, [said("x"), said("y")], LIGHT).data
    assert (list(trace.x), list(trace.y), trace.customdata[0][:2]) == ([40.0], [50.0], ["b", "y"])


def test_a_point_carries_what_is_its_own_and_the_chart_the_rest() -> None:
    (trace,) = charts.draw_memory(frame({"est_mem_bytes": 41.23456 * 2**30}), [said("Home 1B")], LIGHT).data
    found = trace.hovertemplate.replace("\xa0", " ")
    for place, part in enumerate(trace.customdata[0]):
        found = found.replace(f"%{{customdata[{place}]}}", part)
    assert found == (
        "<b>Home 1B</b><br>DP8<br>4.00 s per step, estimated 2.00 s: 2.0 ×<br>MFU 20.0 %, estimated 40.0 %<br>"
        "peak memory not logged<extra></extra>"
    )
    assert trace.x == (41.23,)


def pattern(**changes: Any) -> dict[str, Any]:
    return {
        "pattern": "DP only",
        "runs": 9,
        "penalised": 0,
        "time_ratio": 1.0,
        "time_ratio_p10": 0.9,
        "time_ratio_p90": 1.2,
    } | changes


def test_patterns_are_dots_over_their_spread_with_the_count() -> None:
    rows = pl.DataFrame([pattern(pattern="PP <over> nodes", time_ratio=3.1, time_ratio_p90=21.0), pattern()])
    figure = charts.draw_patterns(rows, LIGHT)
    assert [trace.marker.color for trace in figure.data] == [LIGHT.page, LIGHT.categories[0]]
    texts = [note.text.replace("\xa0", " ") for note in figure.layout.annotations]
    assert texts == ["<b>3.1 ×</b> 9 runs", "<b>1.00 ×</b> 9 runs"]
    assert figure.layout.yaxis.ticktext[0] == "PP &lt;over&gt; nodes"
    assert list(figure.layout.xaxis.tickvals) == [1, 2, 5, 10, 20]


def test_a_narrow_spread_has_finer_ticks() -> None:
    assert 1.2 in charts.draw_patterns(pl.DataFrame([pattern()]), LIGHT).layout.xaxis.tickvals


def test_bars_hang_between_the_levels_and_a_gain_grows_to_the_right() -> None:
    losses = [Loss("Kernels below peak", 0.6, 1.0), Loss("Recomputation", 0.0, 0.4), Loss("Unexplained", -0.1, 0.4)]
    figure = charts.draw_waterfall(losses, 0.5, LIGHT)
    assert [(bar.base[0], bar.x[0]) for bar in figure.data] == [
        (0, 100),
        (pytest.approx(40), pytest.approx(60)),
        (pytest.approx(40), 0),
        (pytest.approx(40), pytest.approx(10)),
        (0, 50),
    ]
    assert [note.text.replace("\xa0", " ") for note in figure.layout.annotations] == [
        "100 %",
        "\u221260.0",
        "0",
        "+10.0",
        "<b>50.0 %</b>",
    ]
    assert [bar.marker.pattern.shape for bar in figure.data] == [None, None, None, "/", None]


def test_a_level_below_zero_stays_on_the_axis() -> None:
    losses = [Loss("Kernels below peak", 1.3, 1.0), Loss("Unexplained", -0.6, -0.3)]
    assert charts.draw_waterfall(losses, 0.3, LIGHT).layout.xaxis.range[0] < -30
