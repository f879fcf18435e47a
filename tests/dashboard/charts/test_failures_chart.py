"""Charts on failures: one trace whatever the number of rows, because each costs a browser as much as all their bars."""

from __future__ import annotations

import polars as pl

from sweepscope.dashboard.charts import failures as charts
from sweepscope.dashboard.format.symbols import OUTCOME
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.view_models.failures import Pattern


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def test_endings_are_bars_of_what_there_is() -> None:
    counts = {name: [0, 0] for name in OUTCOME if name != "running"} | {"completed": [8, 0], "oom": [2, 5]}
    rows = pl.DataFrame({"runs_tried": [10, 5], **counts})
    completed, oom = charts.draw_endings(rows, ["a", "b"], ["first", "second"], LIGHT).data
    assert (list(completed.x), list(completed.y), list(completed.base)) == ([8], [0], [0])
    assert (list(oom.x), list(oom.y), list(oom.base)) == ([2, 5], [0, 1], [8, 0])
    assert list(oom.hovertext) == ["first", "second"]


def test_rates_are_one_trace_with_a_colour_an_interval_and_counts_per_setting() -> None:
    above = Pattern("tp", "TP8", judged=40, failed=30, rate=0.75, low=0.6, high=0.86, is_above=True)
    usual = Pattern("pp", "PP2", judged=40, failed=8, rate=0.2, low=0.1, high=0.35, is_above=False)
    figure = charts.draw_patterns([above, usual], 0.3, LIGHT)
    (dots,) = figure.data
    assert list(dots.x) == [75, 20]
    assert list(dots.marker.color) == [LIGHT.failed, LIGHT.page]
    assert list(dots.marker.line.color) == [LIGHT.failed, LIGHT.soft]
    mean, *intervals = figure.layout.shapes
    assert (mean.x0, mean.x1) == (30, 30)
    assert [(one.x0, one.x1, one.y0) for one in intervals] == [(60, 86, 0), (10, 35, 1)]
    assert [one.text for one in figure.layout.annotations] == ["30 of 40", "8 of 40"]


def test_hours_are_one_trace_with_the_mark_of_each_ending() -> None:
    rows = [
        {"outcome": "completed", "runs": 9, "gpu_hours": 75.0, "runs_without_gpu_hours": 0},
        {"outcome": "undecided", "runs": 2, "gpu_hours": 25.0, "runs_without_gpu_hours": 1},
        {"outcome": "crash", "runs": 3, "gpu_hours": None, "runs_without_gpu_hours": 3},
    ]
    figure = charts.draw_hours(rows, LIGHT)
    (bars,) = figure.data
    assert list(bars.x) == [75, 25, 0]
    assert list(bars.marker.pattern.shape) == [OUTCOME[row["outcome"]].hatch for row in rows]
    assert [plain(note.text) for note in figure.layout.annotations] == [
        "<b>75.0</b> · 75 %",
        "<b>25.0</b> · 25 % · unknown for 1 of 2",
        "unknown for all 3",
    ]
    assert {note.font.size for note in figure.layout.annotations} == {12}, "however little room the plot has"


def test_nothing_to_draw_is_an_empty_chart() -> None:
    (bars,) = charts.draw_hours([], LIGHT).data
    assert not bars.x
