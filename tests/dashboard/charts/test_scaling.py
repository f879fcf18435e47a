from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.dashboard.charts import scaling as charts
from sweepscope.dashboard.format.theme import LIGHT
from sweepscope.dashboard.view_models.scaling import Baseline, against, with_size


def points(**speeds: list[float]) -> pl.DataFrame:
    rows = [
        {
            "line": line,
            "num_nodes": 2**i,
            "num_gpus": 8 * 2**i,
            "run_id": f"{line}{i}",
            "layout": "DP8",
            "mfu": speed / 2500,
            "tokens_per_s": speed * 8 * 2**i,
            "tokens_per_s_per_gpu": speed,
        }
        for line, values in speeds.items()
        for i, speed in enumerate(values)
    ]
    return against(with_size(pl.DataFrame(rows), "node"), Baseline("best"))


def share(frame: pl.DataFrame, column: str = "scaling_efficiency") -> charts.go.Figure:
    lines = frame["line"].unique(maintain_order=True).to_list()
    return charts.draw_share(frame, LIGHT, noun="node", column=column, lines=lines, hovers=["h"] * frame.height)


def test_efficiency_is_drawn_in_percent_with_its_ideal() -> None:
    figure = share(points(small=[1000.0, 900.0, 500.0]))
    assert list(figure.data[0].y) == pytest.approx([100, 90, 50])
    assert figure.layout.shapes[0].y0 == figure.layout.shapes[0].y1 == 100
    assert "ideal" in [note.text for note in figure.layout.annotations]


def test_axes_start_at_zero_and_hold_every_point() -> None:
    assert share(points(small=[1000.0, 900.0])).layout.yaxis.range[0] == 0
    steep = points(small=[100.0, 1000.0]).with_columns(scaling_efficiency=pl.Series([1.0, 1.84]))
    assert share(steep).layout.yaxis.range[1] > 184
    assert share(points(small=[1000.0, 900.0]), "mfu").layout.yaxis.range[1] == pytest.approx(52)


def test_every_tested_count_is_a_tick() -> None:
    axis = share(points(small=[3.0, 2.0, 1.0])).layout.xaxis
    assert (axis.type, list(axis.tickvals)) == ("log", [1, 2, 4])
    assert axis.title.text == "Nodes (8 GPUs each, log scale)"


def test_lines_are_named_at_their_end_in_their_colour() -> None:
    figure = share(points(small=[10.0, 5.0], large=[9.0, 8.0]))
    names = {note.text: note.font.color for note in figure.layout.annotations if note.text.startswith("<b>")}
    assert names == {"<b>small</b>  50": LIGHT.categories[0], "<b>large</b>  89": LIGHT.categories[1]}
    assert [trace.line.color for trace in figure.data] == list(LIGHT.categories[:2])
    assert len({trace.marker.symbol for trace in figure.data}) == 2


def test_a_line_that_ends_before_the_edge_says_where() -> None:
    frame = points(long=[10.0, 9.0, 5.0], short=[9.0, 8.0])
    figure = share(frame)
    names = [note.text for note in figure.layout.annotations if note.text.startswith("<b>")]
    assert names == ["<b>long</b>  50", "<b>short</b>  89 at 2"]
    (leader,) = [shape for shape in figure.layout.shapes if shape.line.dash == "dash"]
    assert (leader.x0, leader.x1) == (2, pytest.approx(10 ** figure.layout.xaxis.range[1]))
    assert (leader.y0, leader.line.color) == (pytest.approx(800 / 9), LIGHT.categories[1])
    lines = ["long", "short"]
    total = charts.draw_throughput(frame, LIGHT, noun="node", lines=lines, hovers=["h"] * frame.height)
    assert "<b>short</b>   at 2" in [note.text for note in total.layout.annotations]
    assert total.layout.shapes[0].y0 == pytest.approx(8.0 * 8 * 2)


def test_throughput_stands_beside_its_ideal() -> None:
    frame = points(small=[1000.0, 500.0])
    figure = charts.draw_throughput(frame, LIGHT, noun="node", lines=["small"], hovers=["h", "h"])
    ideal, measured = figure.data
    assert list(ideal.y) == [8000.0, 16000.0]
    assert ideal.line.dash == "dot"
    assert list(measured.y) == [8000.0, 8000.0]
    assert figure.layout.yaxis.type == "log"


@given(st.lists(st.floats(0, 100), min_size=1, max_size=6), st.floats(0.5, 20))
def test_labels_never_overlap_and_keep_their_order(positions: list[float], gap: float) -> None:
    moved = charts.spread(positions, gap)
    ordered = sorted(moved)
    assert all(b - a >= gap * 0.999 for a, b in pairwise(ordered))
    assert sorted(range(len(moved)), key=lambda i: moved[i]) == sorted(
        range(len(positions)), key=lambda i: positions[i]
    )


def test_labels_far_apart_stay_where_they_are() -> None:
    assert charts.spread([1.0, 50.0, 20.0], 5.0) == [1.0, 50.0, 20.0]


@given(st.floats(1.0, 9.0), st.floats(0.03, 6.0))
def test_a_log_axis_has_ticks_enough_to_place_a_point_by(low: float, span: float) -> None:
    ticks = charts._log_ticks(low, low + span)
    assert 3 <= len(ticks) <= 12
    assert all(10**low <= tick * (1 + 1e-9) and tick <= 10 ** (low + span) * (1 + 1e-9) for tick in ticks)
    assert sorted(set(ticks)) == ticks
